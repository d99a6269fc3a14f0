"""A case as the Python a user could have written: one file that runs and prints what it gives."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from wallaroo.components import OwnState
from wallaroo.kafka_records import KafkaRecord, kafka_timestamp
from wallaroo.records import Assigned, Consumed, End, Frame, Tick, Unused, Value
from wallaroo_conformance.cases.building import calls, expression, used_by
from wallaroo_conformance.cases.case import SOURCES, ConformanceCase
from wallaroo_conformance.cases.operators import (
    BUILDERS,
)
from wallaroo_conformance.cases.operators.triples import Values, deserialize, serialize
from wallaroo_conformance.cases.records import input_log_of

_CATALOGUE = "wallaroo_conformance.cases.operators"


def module_text(case: ConformanceCase, heading: str = "") -> str:
    """Return the case as the text of a Python module.

    It has `application_setup(args)`, as ``wallaroo run`` wants it, and `INPUT`; run as a script it
    prints the reference's outputs, dead letters, entities and open windows.
    """
    text = _Text(_components(case))
    text.need_records(case)
    parts = [f'"""{heading}"""'] if heading else []
    parts += ["from __future__ import annotations", text.imports()]
    parts += [*text.sources, _application(case), _input(case), _script(case)]
    return _spaced(parts)


def application_text(case: ConformanceCase) -> str:
    """Return only the operators and `application_setup`, for people who know the rest."""
    return _spaced([*_Text(_components(case)).sources, _application(case)])


def operator_text(component: Any) -> str:
    """Return the source of an operator, behind that of what it uses."""
    return _spaced(_Text([component]).sources)


def input_text(case: ConformanceCase) -> str:
    """Return the records, one a line; of a timed case with their arrival times."""
    lines = []
    for number, record in enumerate(input_log_of(case)):
        if isinstance(record, Frame):
            said = f"{record.source}  {record.payload!r}"
        elif isinstance(record, Value):
            said = f"{record.source}  value {record.value!r}"
        elif isinstance(record, Tick):
            said = "tick"
        elif isinstance(record, End):
            failed = f", raised {record.error_type}" * bool(record.error_type)
            part = "" if record.partition is None else f"'s partition {record.partition}"
            said = f"{record.source}{part} ends{failed}"
        elif isinstance(record, Consumed):
            read = record.record
            said = (
                f"{record.source}  partition {read.partition}, offset {read.offset}: {read.value!r}"
            )
            said += f", key {read.key!r}, headers {dict(read.headers)}, timestamp {read.timestamp}"
        elif isinstance(record, Unused):
            said = f"{record.source}  {record.numbers} offsets that hold nothing"
        elif isinstance(record, Assigned):
            numbers = ", ".join([str(number) for number, _, _ in record.partitions])
            said = f"{record.source} reads partition {numbers}"
        else:
            said = repr(record)
        lines.append(f"{number}: {f'at {record.at}  ' * case.timed}{said}")
    return "\n".join(lines)


def run_text(case: ConformanceCase) -> str:
    """Return how the case is run, as far as it is not the default."""
    parts = [f"{case.isolation} mode"]
    if case.batches is not None:
        parts.append(f"batches of {', '.join(map(str, case.batches))} and the rest")
    if case.number is not None:
        parts.append(f"{case.number} partition{'' if case.number == 1 else 's'}")
    if case.on_error == "stop":
        parts.append("--on-error stop")
    if case.small:
        parts.append("small thresholds")
    return ", ".join(parts)


class _Text:
    """The source of components, and of what they use."""

    def __init__(self, components: Sequence[Any]) -> None:
        self.sources: list[str] = []
        self._plain = {"wallaroo"}
        self._from = {"typing": {"Any"}, "wallaroo.engine": {"Case", "load_engine"}}
        self._seen: set[str] = set()
        for component in components:
            self._include(component)

    def need_records(self, case: ConformanceCase) -> None:
        """Note what a case's own text needs to have imported."""
        if case.timed:
            records = input_log_of(case)
            for record in records:
                if isinstance(record, Value) and type(record.value).__module__.startswith(
                    _CATALOGUE
                ):
                    self._include(type(record.value))
            kinds = {type(record).__name__ for record in records}
            self._from["wallaroo.records"] = kinds or {Frame.__name__}
            if Consumed.__name__ in kinds:
                self._from["wallaroo.kafka_records"] = {KafkaRecord.__name__}
        if case.form == "pipelines" and any(True for _ in case.stateful()):
            self._from[OwnState.__module__] = {OwnState.__name__}

    def imports(self) -> str:
        """Return the import statements."""
        lines = [f"import {name}" for name in sorted(self._plain)]
        lines += [
            f"from {one} import {', '.join(sorted(self._from[one]))}" for one in sorted(self._from)
        ]
        own = [line for line in lines if "wallaroo" in line]
        return "\n".join([*[line for line in lines if line not in own], "", *own])

    def _include(self, component: Any) -> None:
        """Add the source of a component, after the source of what it uses."""
        target = inspect.unwrap(component)
        if not inspect.isclass(target) and not inspect.isfunction(target):
            target = type(target)
        self._add(target.__name__, _definition(target), sys.modules[target.__module__])

    def _add(self, name: str, source: str, module: ModuleType) -> None:
        if name in self._seen:
            return
        self._seen.add(name)
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            if node.id in vars(module):
                self._need(node.id, module)
        self.sources.append(source)

    def _need(self, name: str, module: ModuleType) -> None:
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            self._plain.add(value.__name__)
        elif not hasattr(value, "__module__"):
            origin = _home(name, module)
            if origin.__name__.startswith(_CATALOGUE):
                self._add(name, _assignment(name, origin), origin)
            else:
                self._from.setdefault(origin.__name__, set()).add(name)
        elif str(value.__module__).startswith(_CATALOGUE):
            self._include(value)
        else:
            home = "typing" if name in ("Any", "NamedTuple") else value.__module__
            self._from.setdefault(home, set()).add(name)


def _components(case: ConformanceCase) -> list[Any]:
    """Return the components that a user would write."""
    used = [table[name] for table, name in used_by(case)]
    values = [Values] if any(source.generator for source in case.sources) else []
    codec = (serialize, deserialize) if case.codec else ()
    return [one for one in (*values, *used, *codec) if one is not kafka_timestamp]


def _application(case: ConformanceCase) -> str:
    lines = ["def application_setup(args: Any) -> Any:"]
    for number in sorted({step.partition for step in case.stateful()}):
        builder = case.partitions[number].builder
        if builder in BUILDERS.arguments:
            lines.append(f"    state_{number} = {expression(BUILDERS, builder)}")
    made = [call.text() for call in calls(case)]
    lines += [f"    {call}" for call in made[:-1]]
    return "\n".join([*lines, f"    return {made[-1]}"])


def _definition(target: Any) -> str:
    """Return the source of a function or class as a user writes it: without `@TABLE.add`."""
    lines = textwrap.dedent(inspect.getsource(target)).rstrip().splitlines()
    [definition] = ast.parse("\n".join(lines)).body
    assert isinstance(definition, (ast.FunctionDef, ast.ClassDef))
    for decorator in reversed(definition.decorator_list):
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(called, ast.Attribute) and called.attr == "add":
            assert decorator.end_lineno is not None
            del lines[decorator.lineno - 1 : decorator.end_lineno]
    return "\n".join(lines)


def _home(name: str, module: ModuleType) -> ModuleType:
    """Return the module that a global name is imported from, or else this one."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return sys.modules[str(node.module)]
    return module


def _assignment(name: str, module: ModuleType) -> str:
    """Return the source of the assignment to a global name."""
    source = inspect.getsource(module)
    for node in ast.parse(source).body:
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return str(ast.get_source_segment(source, node))
    raise LookupError(name)


def _input(case: ConformanceCase) -> str:
    if case.timed:
        return (
            f"INPUT = [\n{''.join([f'    {record!r},{chr(10)}' for record in input_log_of(case)])}]"
        )
    lines = [f'    ("{SOURCES[one.source]}", {one.payload!r}),\n' for one in case.inputs]
    return f"INPUT: list[tuple[str, bytes]] = [\n{''.join(lines)}]"


def _script(case: ConformanceCase) -> str:
    arguments = ["application_setup([])", "INPUT"]
    if case.batches is not None:
        arguments.append(f"batches={list(case.batches)}")
    if case.number is not None:
        arguments.append(f"partitions={case.number}")
    if case.on_error != "skip":
        arguments.append(f'on_error="{case.on_error}"')
    windows = "    for window in trace.windows:\n        print(window)\n" * case.timed
    return (
        f"CASE = Case({', '.join(arguments)})\n\n"
        'if __name__ == "__main__":\n'
        '    trace = load_engine("reference").run(CASE)\n'
        "    for sink, outputs in trace.outputs.items():\n"
        "        print(sink, *outputs)\n"
        "    for letter in trace.dead_letters:\n"
        "        print(letter)\n"
        f"{windows}"
        "    for entity in trace.entities:\n"
        "        print(entity)"
    )


def _spaced(parts: list[str]) -> str:
    text = ""
    for part in parts:
        definition = part.startswith(("def ", "class ", "@", "INPUT"))
        text += ("\n\n" if definition else "\n") if text else ""
        text += part + "\n"
    return text
