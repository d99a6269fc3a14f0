"""A case as the Python a user could have written: one file that runs and prints what it gives."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from wallaroo.components import OwnState
from wallaroo.kafka_records import KafkaRecord, kafka_timestamp
from wallaroo.records import Assigned, Consumed, End, Frame, Record, Tick, Unused, Value
from wallaroo_conformance.cases.building import calls, expression, states, used_by
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.operators import DECODERS
from wallaroo_conformance.cases.operators.triples import Values, deserialize, serialize
from wallaroo_conformance.cases.records import input_log_of, with_entries

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
    """Return the records, one a line; with their arrival times if there are others than 0."""
    lines = []
    log = input_log_of(case)
    with_times = any(record.at for record in log)
    for number, record in enumerate(log):
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
        lines.append(f"{number}: {f'at {record.at}  ' * with_times}{said}")
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
        self._imports = {"import wallaroo", "from typing import Any"}
        self._imports |= {"from wallaroo.engine import Case, load_engine"}
        self._seen: set[str] = set()
        for component in components:
            self._include(component)

    def need_records(self, case: ConformanceCase) -> None:
        """Note what a case's own text needs to have imported."""
        records = [record for record in input_log_of(case) if not _is_plain(record)]
        kinds = sorted({type(record).__name__ for record in records})
        if kinds:
            self._imports.add(f"from wallaroo.records import {', '.join(kinds)}")
        if Consumed.__name__ in kinds:
            self._imports.add(f"from {KafkaRecord.__module__} import {KafkaRecord.__name__}")
        if case.form == "pipelines" and any(True for _ in case.stateful()):
            self._imports.add(f"from {OwnState.__module__} import {OwnState.__name__}")

    def imports(self) -> str:
        """Return the import statements, those of the standard library first."""
        lines = sorted(self._imports, key=lambda line: (line.startswith("from"), line))
        own = [line for line in lines if "wallaroo" in line]
        return "\n".join([*[line for line in lines if line not in own], "", *own])

    def _include(self, component: Any) -> None:
        """Add the source of a component, after the source of what it uses."""
        target = inspect.unwrap(component)
        if not inspect.isclass(target) and not inspect.isfunction(target):
            target = type(target)
        self._add(target.__name__, target.__module__)

    def _add(self, name: str, module: str) -> None:
        """Add the statement by which a module has a name: a definition, or an import."""
        if name in self._seen:
            return
        statement, source = _statements(module)[name]
        if isinstance(statement, ast.ImportFrom) and str(statement.module).startswith(_CATALOGUE):
            self._add(name, str(statement.module))
            return
        self._seen.add(name)
        if isinstance(statement, ast.Import):
            self._imports.add(f"import {name}")
        elif isinstance(statement, ast.ImportFrom):
            self._imports.add(f"from {statement.module} import {name}")
        else:
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Name) and node.id in _statements(module):
                    self._add(node.id, module)
            self.sources.append(source)


@cache
def _statements(module: str) -> dict[str, tuple[ast.stmt, str]]:
    """Return the statements by which a module has its names, each with its source.

    Definitions are as a user writes them: without `@TABLE.add`.
    """
    text = inspect.getsource(sys.modules[module])
    found: dict[str, tuple[ast.stmt, str]] = {}
    for node in ast.parse(text).body:
        names: list[str] = []
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names]
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names = [node.name]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [target.id for target in targets if isinstance(target, ast.Name)]
        lines = text.splitlines()[_first_line(node) - 1 : node.end_lineno]
        found |= dict.fromkeys(names, (node, "\n".join(lines)))
    return found


def _first_line(node: ast.stmt) -> int:
    """Return the line in which a definition begins for a user, or any statement."""
    for decorator in getattr(node, "decorator_list", ()):
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        if not (isinstance(called, ast.Attribute) and called.attr == "add"):
            return int(decorator.lineno)
    return node.lineno


def _components(case: ConformanceCase) -> list[Any]:
    """Return the components that a user would write."""
    used = [table[name] for table, name in used_by(case)]
    generators = [source for source in case.sources if source.generator]
    values = [Values] * bool(generators) + [DECODERS[source.decoder] for source in generators]
    codec = (serialize, deserialize) if case.codec else ()
    return [one for one in (*values, *used, *codec) if one is not kafka_timestamp]


def _application(case: ConformanceCase) -> str:
    lines = ["def application_setup(args: Any) -> Any:"]
    lines += [f"    {name} = {text}" for name, text in states(case).items()]
    made = [call.text() for call in calls(case)]
    lines += [f"    {call}" for call in made[:-1]]
    return "\n".join([*lines, f"    return {made[-1]}"])


def _input(case: ConformanceCase) -> str:
    lines = []
    decoders = {source.id: source.decoder for source in case.sources}
    for entry, record in with_entries(case):
        shown = repr(record)
        if isinstance(record, Frame) and _is_plain(record):
            shown = f'("{record.source}", {record.payload!r})'
        elif isinstance(record, Value) and entry is not None:
            made = _value_text(decoders[entry.source], entry.payload)
            shown = f'Value("{record.source}", {made}, {record.at})'
        lines.append(f"    {shown},\n")
    return f"INPUT: list[Any] = [\n{''.join(lines)}]"


def _value_text(decoder: str, payload: bytes) -> str:
    """Return how a generator's value is made of a payload."""
    shown = expression(DECODERS, decoder)
    made = f"{shown}().decode" if inspect.isclass(DECODERS[decoder]) else shown
    return f"{made}({payload!r})"


def _is_plain(record: Record) -> bool:
    """Whether a record is a frame at time 0, for which its source and payload are enough."""
    return isinstance(record, Frame) and record.at == 0


def _script(case: ConformanceCase) -> str:
    arguments = ["application_setup([])", "INPUT"]
    if case.batches is not None:
        arguments.append(f"batches={list(case.batches)}")
    if case.number is not None:
        arguments.append(f"partitions={case.number}")
    if case.on_error != "skip":
        arguments.append(f'on_error="{case.on_error}"')
    return (
        f"CASE = Case({', '.join(arguments)})\n\n"
        'if __name__ == "__main__":\n'
        '    trace = load_engine("reference").run(CASE)\n'
        "    for sink, outputs in trace.outputs.items():\n"
        "        print(sink, *outputs)\n"
        "    for letter in trace.dead_letters:\n"
        "        print(letter)\n"
        "    for window in trace.windows:\n"
        "        print(window)\n"
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
