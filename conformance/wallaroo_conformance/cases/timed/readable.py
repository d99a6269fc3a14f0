"""A timed case as the Python a user could have written."""

from __future__ import annotations

from types import ModuleType

from wallaroo.records import End, Frame, Tick, Value
from wallaroo_conformance.cases.timed import aggregations, operators
from wallaroo_conformance.cases.timed.building import calls
from wallaroo_conformance.cases.timed.case import TimedCase


def timed_application_text(case: TimedCase) -> str:
    """Return `application_setup`, without the components that it uses."""
    made = [call.text() for call in calls(case)]
    made[-1] = f"return {made[-1]}"
    return "\n".join(["def application_setup(args):", *[f"    {line}" for line in made]]) + "\n"


def timed_input_text(case: TimedCase) -> str:
    """Return the records, one a line, with their arrival times."""
    lines = []
    for number, record in enumerate(case.input_log):
        if isinstance(record, Frame):
            said = f"{record.source}  {record.payload!r}"
        elif isinstance(record, Value):
            said = f"{record.source}  value {record.value!r}"
        elif isinstance(record, Tick):
            said = "tick"
        else:
            said = f"{record.source} ends" + f", raised {record.error_type}" * bool(
                record.error_type
            )
        lines.append(f"{number}: at {record.at}  {said}")
    return "\n".join(lines)


def timed_readable(case: TimedCase, heading: str = "") -> str:
    """Return the case as the text of a Python module that prints what the reference gives."""
    records = ",\n    ".join(map(repr, case.input_log))
    kinds = ", ".join(kind.__name__ for kind in (End, Frame, Tick, Value))
    codec = ["serialize", "deserialize"] * case.codec
    parts = [
        *([f'"""{heading}"""', ""] if heading else []),
        "import wallaroo",
        "import wallaroo.testing",
        f"from wallaroo.records import {kinds}",
        *_imports(aggregations, []),
        *_imports(operators, codec),
        "",
        "",
        timed_application_text(case),
        "",
        "INPUT = [",
        f"    {records},",
        "]",
        "",
        'if __name__ == "__main__":',
        "    result = wallaroo.testing.run(application_setup([]), INPUT, end=False)",
        "    for found in (result.outputs, result.dead_letters, result.entities):",
        "        print(found)",
        "    print(result.open_windows)",
    ]
    return "\n".join(parts) + "\n"


def _imports(module: ModuleType, others: list[str]) -> list[str]:
    """Return the lines that import a module's components, and what else is named."""
    names = [name for name, value in vars(module).items() if _is_component(module, name, value)]
    return [f"from {module.__name__} import (", f"    {', '.join([*others, *names])},", ")"]


def _is_component(module: ModuleType, name: str, value: object) -> bool:
    if name.startswith("_") or name in ("serialize", "deserialize", "decoded"):
        return False
    return callable(value) and getattr(value, "__module__", "") == module.__name__
