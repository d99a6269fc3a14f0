"""From a timed case to its application: the calls that a user would write, made or shown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, TypeAlias

import wallaroo
from wallaroo.topology import Application
from wallaroo.windows import WindowedAggregation
from wallaroo_conformance.cases.case import APPLICATION
from wallaroo_conformance.cases.timed.aggregations import AGGREGATIONS
from wallaroo_conformance.cases.timed.case import SOURCES, SourceSpec, TimedCase, TimedStep
from wallaroo_conformance.cases.timed.operators import (
    CODEC,
    EVENT_TIMES,
    KEYS,
    STATEFUL,
    Tally,
    Values,
    component,
    line,
    message,
    state_computation,
)

_SHARED = "shared"


@dataclass(frozen=True)
class Argument:
    """An argument of a call: a value, and how a user would write it."""

    text: str
    value: Any


@dataclass(frozen=True)
class Call:
    """A call that makes an application.

    Args:
        made: the name that its result gets; empty: none.
        on: the name of what it is a method of.
        method: the method's name.
        arguments: values, or the names of results of earlier calls.
    """

    made: str
    on: str
    method: str
    arguments: tuple[Argument | str, ...]

    def text(self) -> str:
        """Return the call as a user would write it."""
        given = ", ".join([one if isinstance(one, str) else one.text for one in self.arguments])
        return f"{self.made}{' = ' * bool(self.made)}{self.on}.{self.method}({given})"


def application_of(case: TimedCase) -> Application:
    """Return the case's application, made by the calls that `calls` gives."""
    known: dict[str, Any] = {"wallaroo": wallaroo}
    result: Any = None
    for call in calls(case):
        given = [known[one] if isinstance(one, str) else one.value for one in call.arguments]
        result = getattr(known[call.on], call.method)(*given)
        if call.made:
            known[call.made] = result
    assert isinstance(result, Application)
    return replace(result, codec=CODEC) if case.codec else result


def calls(case: TimedCase) -> Iterator[Call]:
    """Yield the calls that make a case's application; the last one returns it."""
    yield from _builder_calls(case) if case.form == "builder" else _pipeline_calls(case)


def used_steps(case: TimedCase) -> list[tuple[int, TimedStep]]:
    """Return the steps with their numbers; keys and graphs do not belong to the builder's form."""
    graph = case.form == "pipelines"
    return [
        (number, step)
        for number, step in enumerate(case.steps)
        if graph or (step.operator not in KEYS and step.operator not in ("collect", "merge"))
    ]


def origins(case: TimedCase, number: int) -> tuple[int, ...]:
    """Return the nodes that a step takes messages from: sources come first, then steps."""
    step = case.steps[number]
    nodes = len(case.sources) + number
    if step.operator == "merge":
        return (nodes - 1 - step.origin % nodes, nodes - 1 - step.other % nodes)
    return (nodes - 1 - step.origin % nodes,)


def step_name(number: int, step: TimedStep) -> str:
    """Return the name of a step."""
    return f"{step.operator} {number}"


def _pipeline_calls(case: TimedCase) -> Iterator[Call]:
    names = [SOURCES[number] for number in range(len(case.sources))]
    keyed = [False] * len(names)
    for name, source in zip(names, case.sources, strict=True):
        yield Call(name, "wallaroo", "source", (_value(name), _source(source)))
    taken: set[int] = set()
    ends: list[str] = []
    for number, step in enumerate(case.steps):
        sides = origins(case, number)
        taken.update(sides)
        on, name = names[sides[0]], f"step_{number}"
        method, arguments = _step(case, number, step)
        given: tuple[Argument | str, ...] = arguments
        has_key = keyed[sides[0]] or step.operator in KEYS or step.operator == "collect"
        if step.operator == "merge":
            other = names[sides[1]]
            has_key = keyed[sides[0]] or keyed[sides[1]]
            if keyed[sides[0]] != keyed[sides[1]]:  # graph-3: both sides, or neither
                bare = f"keyed_{number}"
                yield Call(bare, other if keyed[sides[0]] else on, "collect", ())
                on, other = (on, bare) if keyed[sides[0]] else (bare, other)
            given = (other,)
        has_key = has_key or step.operator in STATEFUL or step.operator in AGGREGATIONS
        yield Call(name, on, method, given)
        names.append(name)
        keyed.append(has_key)
        if step.sink:
            ends.append(f"end_{len(ends)}")
            yield Call(ends[-1], name, "to_sink", (_SINK,))
    for node, name in enumerate(names):
        if node not in taken and not (node >= len(case.sources) and _has_sink(case, node)):
            ends.append(f"end_{len(ends)}")
            yield Call(ends[-1], name, *_END[case.done])
    yield Call("", "wallaroo", "build_application", (_value(APPLICATION), *ends))


def _has_sink(case: TimedCase, node: int) -> bool:
    return case.steps[node - len(case.sources)].sink


def _builder_calls(case: TimedCase) -> Iterator[Call]:
    yield Call("builder", "wallaroo", "ApplicationBuilder", (_value(APPLICATION),))
    for index, source in enumerate(case.sources):
        name = SOURCES[index]
        yield Call("", "builder", "new_pipeline", (_value(name), _source(source)))
        for number, step in used_steps(case):
            if step.origin % len(case.sources) == index:
                method, arguments = _step(case, number, step)
                yield Call("", "builder", method, arguments)
        yield Call("", "builder", *_END[case.done])
    yield Call("", "builder", "build", ())


def _step(case: TimedCase, number: int, step: TimedStep) -> tuple[str, tuple[Argument, ...]]:
    """Return the method of a step, and its arguments."""
    name, builder = step_name(number, step), case.form == "builder"
    route = Argument("None", None) if step.route is None else _component(step.route, step.route)
    if step.operator in ("collect", "merge"):
        return step.operator, ()
    if step.operator in KEYS:
        return "key_by", (_component(step.operator, name),)
    if step.operator in AGGREGATIONS:
        window = _window(step, name)
        if not builder:
            return "to", (window,)
        return "to_window", (window, route, _value(name))
    if step.operator not in STATEFUL:
        return "to", (_component(step.operator, name),)
    state = _SHARED + step.operator if case.shared else name
    if not builder:
        made = state_computation(step.operator, name, state, case.expire_after)
        said = f"{step.operator!r}, {name!r}, {state!r}, {case.expire_after}"
        return "to", (Argument(f"state_computation({said})", made),)
    made = state_computation(step.operator, name, None, None)
    shown = Argument(f"state_computation({step.operator!r}, {name!r}, None, None)", made)
    expires = _value(case.expire_after)
    if step.route is None or case.shared:
        return "to_stateful", (shown, _TALLY, _value(state), expires)
    return "to_state_partition", (shown, _TALLY, _value(state), route, _value(None), expires)


def _window(step: TimedStep, name: str) -> Argument:
    return _windowed(replace(step, origin=0, other=0, route=None, sink=False), name)


@cache
def _windowed(step: TimedStep, name: str) -> Argument:
    spec = step.window
    assert spec is not None
    made: Any = getattr(wallaroo, f"{spec.kind}_windows")(spec.size)
    text = f"wallaroo.{spec.kind}_windows({spec.size})"
    given: dict[str, Any] = {}
    if spec.kind == "count":
        given["with_timeout"] = spec.timeout
    else:
        given["with_slide"] = spec.slide if spec.kind == "range" else None
        given["with_delay"] = spec.delay or None
        given["with_late_data_policy"] = None if spec.late == "dead-letter" else spec.late
    for method, value in given.items():
        if value is not None:
            made = getattr(made, method)(value)
            text += f".{method}({value!r})"
    aggregation = _component(step.operator, name)
    windowed: WindowedAggregation[Any, Any, Any] = made.over(aggregation.value)
    return Argument(f"{text}.over({aggregation.text})", windowed)


@cache
def _component(operator: str, name: str) -> Argument:
    shown = component(operator, name)
    return Argument(f"{type(shown).__name__}({name!r})", shown)


@cache
def _source(spec: SourceSpec) -> Argument:
    function = None if spec.event_time is None else EVENT_TIMES[spec.event_time]
    how: dict[str, Any] = {"event_time": function, "idle_after": spec.idle_after}
    said = f", event_time={spec.event_time}" * (function is not None)
    said += f", idle_after={spec.idle_after}" * (spec.idle_after is not None)
    if spec.generator:
        made: Any = wallaroo.GenSourceConfig(Values(), **how)
        return Argument(f"wallaroo.GenSourceConfig(Values(){said})", made)
    made = wallaroo.TCPSourceConfig("127.0.0.1", 0, message, **how)
    return Argument(f'wallaroo.TCPSourceConfig("127.0.0.1", 0, message{said})', made)


def _value(value: Any) -> Argument:
    return Argument(repr(value), value)


_TALLY = Argument("Tally", Tally)
_SINK = Argument(
    'wallaroo.TCPSinkConfig("127.0.0.1", 7020, line)',
    wallaroo.TCPSinkConfig("127.0.0.1", 7020, line),
)
_Method: TypeAlias = "tuple[str, tuple[Argument, ...]]"
_END: Final[dict[bool, _Method]] = {False: ("to_sink", (_SINK,)), True: ("done", ())}
"""The method that ends a pipeline, and its arguments, by whether the case is `done`."""
