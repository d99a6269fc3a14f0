"""From a case to its application: the calls that a user would write, and what they make."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Any

import wallaroo
from wallaroo.components import OwnState
from wallaroo.engine import Case
from wallaroo.topology import Application
from wallaroo_conformance.cases.case import (
    APPLICATION,
    PARTITIONS,
    SOURCES,
    ConformanceCase,
    SinkSpec,
    SourceSpec,
    StepSpec,
    WindowSpec,
)
from wallaroo_conformance.cases.operators import (
    AGGREGATIONS,
    BUILDERS,
    DECODERS,
    ENCODERS,
    EVENT_TIMES,
    GRAPH,
    KEY_LISTS,
    KEYS,
    ROUTES,
    STATEFUL,
    STEPS,
    Table,
    Trait,
)
from wallaroo_conformance.cases.operators.topics import MAX_SENT
from wallaroo_conformance.cases.operators.triples import CODEC, Values
from wallaroo_conformance.cases.records import input_log_of, topic_of

COMPONENTS = Table(STEPS, AGGREGATIONS, KEYS)
"""What a step of a case can have, but `GRAPH`."""
_PORT = 7010  # which no bounded case opens
_HOST = '"127.0.0.1"'
_BROKERS = '"127.0.0.1:9092"'  # which need not run
_MOST_BUILT = 4_096  # applications that are kept: a job may have so many cases
_MOST_VALUES = 1 << 16


@dataclass(frozen=True)
class Call:
    """A call that makes an application.

    Args:
        made: the name that its result gets; empty: none.
        on: the name of what it is a method of.
        method: the method's name.
        arguments: as a user would write them; some are the names of what was made before.
    """

    made: str
    on: str
    method: str
    arguments: tuple[str, ...] = ()

    def text(self) -> str:
        """Return the call as a user would write it."""
        return (
            f"{self.made}{' = ' * bool(self.made)}{_called(self.on, self.method, *self.arguments)}"
        )


@dataclass(frozen=True, kw_only=True)
class GeneratedCase(Case):
    """A case for an engine, with the generated case it was made from, which is sent as JSON."""

    made_from: ConformanceCase


def engine_case(
    case: ConformanceCase,
    application: Application | None = None,
    options: Mapping[str, Any] | None = None,
) -> Case:
    """Return the case as an engine takes it.

    Args:
        case: what to run.
        application: the case's application, if it has been made already.
        options: thresholds of the engine.
    """
    return GeneratedCase(
        application=application or assemble(case),
        input_log=input_log_of(case),
        batches=case.batches,
        partitions=case.number,
        isolation=case.isolation,
        on_error=case.on_error,
        options=options or {},
        made_from=case,
    )


_REMEMBERING = frozenset(Table(DECODERS, BUILDERS, AGGREGATIONS).having(Trait.REMEMBERS))


def assemble(case: ConformanceCase) -> Application:
    """Return the case's application, whose ports nobody opens.

    Cases with equal applications share one, unless a component keeps something from call to call.
    """
    if _remembers(case):
        return build(case)
    parts = (case.sources, case.steps, case.sinks, case.partitions)
    return _assembled(ConformanceCase(*parts, form=case.form, codec=case.codec))


def build(case: ConformanceCase) -> Application:
    """Return the case's application, made by the calls that `calls` yields."""
    remembers = _remembers(case)
    made: dict[str, Any] = {"wallaroo": wallaroo}
    made |= {name: _new_value(text) for name, text in states(case).items()}

    def value(text: str) -> Any:
        if text in made:
            return made[text]
        # What is kept from call to call, or holds a state of this case, is the case's own.
        return _new_value(text, made) if remembers or "state_" in text else _value(text)

    result: Any = None
    for call in calls(case):
        result = getattr(made[call.on], call.method)(*map(value, call.arguments))
        if call.made:
            made[call.made] = result
    assert isinstance(result, Application)
    return replace(result, codec=CODEC) if case.codec else result


def _remembers(case: ConformanceCase) -> bool:
    names = [*[source.decoder for source in case.sources], *[one.operator for one in case.steps]]
    return not _REMEMBERING.isdisjoint([*names, *[one.builder for one in case.partitions]])


_assembled = lru_cache(_MOST_BUILT)(build)


def _new_value(text: str, own: Mapping[str, Any] | None = None) -> Any:
    """Return what a user's expression gives, with the names of the catalogue."""
    return eval(text, _NAMES, own)  # noqa: S307 - literals, and names that tables have


_value = lru_cache(_MOST_VALUES)(_new_value)


def states(case: ConformanceCase) -> dict[str, str]:
    """Return the names of builders of state that are instances, and how they are made.

    They have names, since all steps over a partition must be given the same (state-8).
    """
    used = sorted({step.partition for step in case.stateful()})
    builders = [(number, case.partitions[number].builder) for number in used]
    return {
        f"state_{number}": expression(BUILDERS, name)
        for number, name in builders
        if name in BUILDERS.arguments
    }


def calls(case: ConformanceCase) -> Iterator[Call]:
    """Yield the calls that make a case's application; the last one returns it."""
    sinks = _Sinks(case)
    if case.form == "builder":
        yield Call("builder", "wallaroo", "ApplicationBuilder", (_text(APPLICATION),))
        for source in case.sources:
            yield Call("", "builder", "new_pipeline", (_text(SOURCES[source.id]), _source(source)))
            last = source.id
            for step in case.row(source.id):
                yield Call("", "builder", *_step(case, step))
                last = step.id
            yield Call("", "builder", *sinks.end(last, source.id))
        yield Call("", "builder", "build")
        return
    names: dict[int, str] = {}
    keyed: dict[int, bool] = {}  # whether a node's messages have a key
    pipelines: dict[int, int] = {}
    ends: list[str] = []
    taken = {origin for step in case.steps for origin in step.origins}
    nodes: list[SourceSpec | StepSpec] = [*case.sources, *case.steps]
    for node in nodes:
        if isinstance(node, SourceSpec):
            name, has_key, pipeline = f"source_{node.id}", False, node.id
            yield Call(name, "wallaroo", "source", (_text(SOURCES[node.id]), _source(node)))
        else:
            name, pipeline = f"step_{node.id}", pipelines[node.origins[0]]
            method, given = _step(case, node)
            sides = [names[origin] for origin in node.origins]
            have = [keyed[origin] for origin in node.origins]
            has_key = any(have) or node.operator in ("collect", *KEYS) or case.meets_state(node)
            if len(set(have)) > 1:  # graph-3: both sides, or neither
                bare = have.index(False)
                yield Call(f"keyed_{node.id}", sides[bare], "collect")
                sides[bare] = f"keyed_{node.id}"
            yield Call(name, sides[0], method, (*given, *sides[1:]))
        names[node.id], keyed[node.id], pipelines[node.id] = name, has_key, pipeline
        if node.id not in taken or sinks.at(node.id):
            ends.append(f"end_{len(ends)}")
            yield Call(ends[-1], name, *sinks.end(node.id, pipeline))
    yield Call("", "wallaroo", "build_application", (_text(APPLICATION), *ends))


def used_by(case: ConformanceCase) -> Iterator[tuple[Table, str]]:
    """Yield the operators in a case with their tables: of steps first, of its edges last."""
    for step in case.steps:
        routed = case.form == "builder" and step.window is not None and step.route is not None
        if step.operator in STATEFUL:
            spec = case.partitions[step.partition]
            yield BUILDERS, spec.builder
            routed = case.form == "builder" and spec.shape != "single"
        if routed:
            yield ROUTES, str(step.route)
        if step.operator not in GRAPH:
            yield COMPONENTS, step.operator
    for source in case.sources:
        if not source.generator:
            yield DECODERS, source.decoder
        if source.event_time is not None:
            yield EVENT_TIMES, source.event_time
    yield from [(ENCODERS, sink.encoder) for sink in case.sinks]


def expression(table: Table, name: str, step: str = "") -> str:
    """Return how a user writes a component of the catalogue: as a function, class or instance.

    Args:
        table: its table.
        name: its name there.
        step: the name of its step, for components that are made anew for each.
    """
    if table.has(name, Trait.OF_STEP):
        return f'{table[name].__name__}("{step}")'
    if name not in table.arguments:
        return name
    return f"{type(table[name]).__name__}({', '.join(map(ascii, table.arguments[name]))})"


def _names() -> Iterator[tuple[str, Any]]:
    """Yield the names in expressions, and what they mean."""
    yield from (("wallaroo", wallaroo), (OwnState.__name__, OwnState), (Values.__name__, Values))
    for table in (COMPONENTS, ROUTES, DECODERS, ENCODERS, BUILDERS, EVENT_TIMES):
        for name, component in table.items():
            if table.has(name, Trait.OF_STEP):
                yield component.__name__, component
            elif name in table.arguments:
                yield type(component).__name__, type(component)
            else:
                yield name, component


_NAMES = dict(_names())


class _Sinks:
    """The calls that end a case's pipelines."""

    def __init__(self, case: ConformanceCase) -> None:
        self._case = case
        self._next: dict[int, int] = {}  # index of the next sink of each pipeline

    def at(self, node: int) -> list[SinkSpec]:
        """Return the sinks of a node."""
        return [sink for sink in self._case.sinks if sink.origin == node]

    def end(self, node: int, pipeline: int) -> tuple[str, tuple[str, ...]]:
        """Return the method that ends a pipeline at a node, and its arguments."""
        first = self._next.get(pipeline, 0)
        self._next[pipeline] = first + len(self.at(node))
        configs = [
            _sink(spec, pipeline, number) for number, spec in enumerate(self.at(node), first)
        ]
        if len(configs) < 2:
            return ("to_sink", tuple(configs)) if configs else ("done", ())
        return "to_sinks", (f"[{', '.join(configs)}]",)


def _step(case: ConformanceCase, step: StepSpec) -> tuple[str, tuple[str, ...]]:
    """Return the method of a step, and its arguments but other pipelines."""
    name, builder = f"{step.operator} {step.id}", case.form == "builder"
    if step.operator in ("collect", "merge"):
        return step.operator, ()
    shown = expression(COMPONENTS, step.operator, name)
    route = _text(None) if step.route is None else expression(ROUTES, step.route, step.route)
    if step.window is not None:
        windowed = f"{_windows(step.window)}.over({shown})"
        return ("to_window", (windowed, route, _text(name))) if builder else ("to", (windowed,))
    if step.operator in KEYS:
        return "key_by", (shown,)
    if step.operator not in STATEFUL:
        return "to_parallel" if step.parallel else "to", (shown,)
    spec, state_name = case.partitions[step.partition], _text(PARTITIONS[step.partition])
    has_name = spec.builder in BUILDERS.arguments
    state = f"state_{step.partition}" if has_name else spec.builder
    if not builder:
        own = f"OwnState({state}, {state_name}, {spec.expire_after})"
        return "to", (f'{STEPS[step.operator].__name__}("{name}", {own})',)
    given = [shown, state, state_name]
    if spec.shape == "single":
        return "to_stateful", (*given, *_given(spec.expire_after))
    method = "to_state_partition_u64" if spec.shape == "u64" else "to_state_partition"
    keys = None if spec.keys is None else KEY_LISTS[spec.keys].keys
    listed = (_text(keys), _text(spec.expire_after)) if spec.expire_after else _given(keys)
    return method, (*given, route, *listed)


@cache
def _windows(spec: WindowSpec) -> str:
    made = _called("wallaroo", f"{spec.kind}_windows", _text(spec.size))
    given: dict[str, Any] = {"with_timeout": spec.timeout}
    if spec.kind != "count":
        given = {
            "with_slide": spec.slide if spec.kind == "range" else None,
            "with_delay": spec.delay or None,
            "with_late_data_policy": None if spec.late == "dead-letter" else spec.late,
        }
    for method, value in given.items():
        if value is not None:
            made = _called(made, method, _text(value))
    return made


@cache
def _source(spec: SourceSpec) -> str:
    decoder = expression(DECODERS, spec.decoder)
    how: dict[str, str] = {}
    if spec.event_time is not None:
        of_library = EVENT_TIMES[spec.event_time] is wallaroo.kafka_timestamp
        how["event_time"] = f"{'wallaroo.' * of_library}{spec.event_time}"
    if spec.idle_after is not None:
        how["idle_after"] = _text(spec.idle_after)
    if spec.event_time is not None and spec.max_ahead is not None:
        how["max_ahead"] = _text(spec.max_ahead)
    if spec.generator:
        return _called("wallaroo", "GenSourceConfig", "Values()", **how)
    if spec.topic:
        topic = _text(topic_of(spec.id))
        return _called("wallaroo", "KafkaSourceConfig", topic, _BROKERS, decoder, **how)
    port = str(_PORT + spec.id)
    return _called("wallaroo", "TCPSourceConfig", _HOST, port, decoder, **how)


@cache
def _sink(spec: SinkSpec, pipeline: int, number: int) -> str:
    encoder = expression(ENCODERS, spec.encoder)
    if spec.topic:
        how = {"max_message_size": _text(MAX_SENT)}
        if spec.topic > 0:
            how["partitions"] = _text(spec.topic)
        topic = _text(f"OUT-{pipeline}-{number}")
        return _called("wallaroo", "KafkaSinkConfig", topic, _BROKERS, encoder, **how)
    port = str(_PORT + 10 + 10 * pipeline + number)
    return _called("wallaroo", "TCPSinkConfig", _HOST, port, encoder)


def _called(on: str, method: str, *given: str, **how: str) -> str:
    """Return a call as a user would write it."""
    arguments = [*given, *[f"{name}={text}" for name, text in how.items()]]
    return f"{on}.{method}({', '.join(arguments)})"


def _given(value: Any) -> tuple[str, ...]:
    return () if value is None else (_text(value),)


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, str) else ascii(value)
