"""A case as the Python a user could have written: one file that runs and prints what it gives."""

from __future__ import annotations

import ast
import inspect
import json
import sys
import textwrap
from types import ModuleType
from typing import Any

from wallaroo_conformance.cases.building import keys_of
from wallaroo_conformance.cases.case import (
    APPLICATION,
    PARTITIONS,
    PIPELINES,
    ConformanceCase,
    StepSpec,
)
from wallaroo_conformance.cases.operators import (
    BUILDERS,
    DECODERS,
    ENCODERS,
    ROUTES,
    STATEFUL,
    STEPS,
    Table,
)

_CATALOGUE = "wallaroo_conformance.cases.operators"
_PORT = 7010


def readable(case: ConformanceCase, heading: str = "") -> str:
    """Return the case as the text of a Python module.

    It has `application_setup(args)`, as ``wallaroo run`` wants it, and `INPUT`; run as a script it
    prints the reference's outputs, dead letters and entities.
    """
    application = _application(case)
    text = _Text()
    for component in _components(case):
        text.include(component)
    parts = [f'"""{heading}"""'] if heading else []
    parts += ["from __future__ import annotations", text.imports(case)]
    parts += [*text.sources, application, _input(case), _script(case)]
    return _spaced(parts)


def application_text(case: ConformanceCase) -> str:
    """Return only the operators and `application_setup`, for people who know the rest."""
    text = _Text()
    for component in _components(case):
        text.include(component)
    return _spaced([*text.sources, _application(case)])


def input_text(case: ConformanceCase) -> str:
    """Return the input frames, one a line."""
    return "\n".join(
        f"{number}: {PIPELINES[entry.pipeline]}  {entry.payload!r}"
        for number, entry in enumerate(case.inputs)
    )


class _Text:
    """Collects the source of components, and of what they use."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self._plain: set[str] = set()
        self._from: dict[str, set[str]] = {}
        self._seen: set[str] = set()

    def include(self, component: Any) -> None:
        """Add the source of a component, after the source of what it uses."""
        target = inspect.unwrap(component)
        if not inspect.isclass(target) and not inspect.isfunction(target):
            target = type(target)
        if target.__name__ in self._seen:
            return
        self._seen.add(target.__name__)
        source = _definition(target)
        names = sys.modules[target.__module__].__dict__
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in names:
                self._need(node.id, names[node.id])
        self.sources.append(source)

    def _need(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType):
            self._plain.add(value.__name__)
        elif str(getattr(value, "__module__", "")).startswith(_CATALOGUE):
            self.include(value)
        else:
            module = "typing" if name in ("Any", "NamedTuple") else value.__module__
            self._from.setdefault(module, set()).add(name)

    def imports(self, case: ConformanceCase) -> str:
        """Return the import statements."""
        lines = [f"import {name}" for name in sorted(self._plain | {"wallaroo"})]
        named = {**self._from}
        for module, name in (
            ("typing", "Any"),
            ("wallaroo.engine", "Case"),
            ("wallaroo.engine", "load_engine"),
        ):
            named[module] = named.get(module, set()) | {name}
        lines += [f"from {one} import {', '.join(sorted(named[one]))}" for one in sorted(named)]
        own = [line for line in lines if "wallaroo" in line]
        return "\n".join([*[line for line in lines if line not in own], "", *own])


def _components(case: ConformanceCase) -> list[Any]:
    components: list[Any] = []
    for pipeline in case.pipelines:
        components.append(DECODERS[pipeline.decoder])
        for step in pipeline.steps:
            components.append(STEPS[step.operator])
            if step.operator in STATEFUL:
                spec = case.partitions[case.partition_of(step)]
                components.append(BUILDERS[spec.builder])
                if spec.shape != "single":
                    components.append(ROUTES[step.route])
        components += [ENCODERS[sink] for sink in pipeline.sinks]
    return components


def _application(case: ConformanceCase) -> str:
    lines = ["def application_setup(args: Any) -> Any:"]
    used = {case.partition_of(step) for _, _, step in case.steps() if step.operator in STATEFUL}
    for number in sorted(used):
        builder = case.partitions[number].builder
        if not inspect.isclass(BUILDERS[builder]):
            lines.append(f"    state_{number} = {_expression(BUILDERS, builder)}")
    lines.append(f'    builder = wallaroo.ApplicationBuilder("{APPLICATION}")')
    port = _PORT
    for index, pipeline in enumerate(case.pipelines):
        decoder = _expression(DECODERS, pipeline.decoder)
        source = f'wallaroo.TCPSourceConfig("127.0.0.1", {port + index}, {decoder})'
        lines.append(f'    builder.new_pipeline("{PIPELINES[index]}", {source})')
        lines += [f"    builder.{_step(case, step)}" for step in pipeline.steps]
        sinks = [
            f'wallaroo.TCPSinkConfig("127.0.0.1", {port + 10 + 10 * index + number}, '
            f"{_expression(ENCODERS, sink)})"
            for number, sink in enumerate(pipeline.sinks)
        ]
        if len(sinks) > 1:
            inside = "".join(f"            {sink},\n" for sink in sinks)
            lines.append(f"    builder.to_sinks(\n        [\n{inside}        ]\n    )")
        else:
            lines.append(f"    builder.to_sink({sinks[0]})" if sinks else "    builder.done()")
    lines.append("    return builder.build()")
    return "\n".join(lines)


def _step(case: ConformanceCase, step: StepSpec) -> str:
    component = _expression(STEPS, step.operator)
    if step.operator not in STATEFUL:
        return f"{'to_parallel' if step.parallel else 'to'}({component})"
    number = case.partition_of(step)
    spec = case.partitions[number]
    state = spec.builder if inspect.isclass(BUILDERS[spec.builder]) else f"state_{number}"
    name = json.dumps(PARTITIONS[number])
    if spec.shape == "single":
        return f"to_stateful({component}, {state}, {name})"
    method = "to_state_partition_u64" if spec.shape == "u64" else "to_state_partition"
    keys = keys_of(spec)
    listed = "" if keys is None else f", {keys!a}"
    return f"{method}({component}, {state}, {name}, {_expression(ROUTES, step.route)}{listed})"


def _expression(table: Table, name: str) -> str:
    """Return how a user writes a component of the catalogue: as a function, class or instance."""
    if name not in table.arguments:
        return name
    made = type(table[name]).__name__
    return f"{made}({', '.join(map(ascii, table.arguments[name]))})"


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


def _input(case: ConformanceCase) -> str:
    lines = [f'    ("{PIPELINES[entry.pipeline]}", {entry.payload!r}),\n' for entry in case.inputs]
    return f"INPUT: list[tuple[str, bytes]] = [\n{''.join(lines)}]"


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
