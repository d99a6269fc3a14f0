"""From a case to its application: the calls that a user would write, made or shown."""

from __future__ import annotations

import json
import pickle
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
    PartitionSpec,
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
_PORT = 7010  # in what is shown
_HOST = "127.0.0.1"
_BROKERS = f"{_HOST}:9092"  # which need not run
_MOST_BUILT = 4_096  # applications that are kept: a job may have so many cases


@dataclass(frozen=True)
class Argument:
    """An argument of a call: how a user would write it, and its value."""

    text: str
    value: Any


_LIBRARY = Argument("wallaroo", wallaroo)


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
    arguments: tuple[Argument | str, ...] = ()

    def text(self) -> str:
        """Return the call as a user would write it."""
        given = ", ".join([one if isinstance(one, str) else one.text for one in self.arguments])
        return f"{self.made}{' = ' * bool(self.made)}{self.on}.{self.method}({given})"


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
    """Return the case's application; sources listen on port 0.

    Cases with equal applications share one, unless a component keeps something from call to call.
    """
    names = [*[source.decoder for source in case.sources], *[one.operator for one in case.steps]]
    if not _REMEMBERING.isdisjoint([*names, *[one.builder for one in case.partitions]]):
        return build(case)
    parts = (case.sources, case.steps, case.sinks, case.partitions)
    return _assembled(ConformanceCase(*parts, form=case.form, codec=case.codec))


def build(case: ConformanceCase) -> Application:
    """Return the case's application, made by the calls that `calls` yields."""
    made: dict[str, Any] = {"wallaroo": wallaroo}
    result: Any = None
    for call in calls(case):
        given = [made[one] if isinstance(one, str) else one.value for one in call.arguments]
        result = getattr(made[call.on], call.method)(*given)
        if call.made:
            made[call.made] = result
    assert isinstance(result, Application)
    return replace(result, codec=CODEC) if case.codec else result


_assembled = lru_cache(_MOST_BUILT)(build)


def calls(case: ConformanceCase) -> Iterator[Call]:
    """Yield the calls that make a case's application; the last one returns it."""
    states = [_state(number, spec) for number, spec in enumerate(case.partitions)]
    sinks = _Sinks(case)
    if case.form == "builder":
        yield Call("builder", "wallaroo", "ApplicationBuilder", (_value(APPLICATION),))
        for source in case.sources:
            yield Call(
                "",
                "builder",
                "new_pipeline",
                (_name(source), _made_by(_source, source.decoder)(source)),
            )
            last = source.id
            for step in case.row(source.id):
                yield Call("", "builder", *_step(case, step, states))
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
            yield Call(
                name, "wallaroo", "source", (_name(node), _made_by(_source, node.decoder)(node))
            )
        else:
            name, pipeline = f"step_{node.id}", pipelines[node.origins[0]]
            method, given = _step(case, node, states)
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
    yield Call("", "wallaroo", "build_application", (_value(APPLICATION), *ends))


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


def operators_of(case: ConformanceCase) -> tuple[str, ...]:
    """Return the names of the operators in a case, lists of keys among them."""
    specs = [case.partitions[step.partition] for step in case.stateful()]
    listed = [spec for spec in specs if spec.shape != "single" and case.form == "builder"]
    lists = [spec.keys for spec in listed if spec.keys is not None]
    return tuple(dict.fromkeys([*lists, *[name for _, name in used_by(case)]]))


def expression(table: Table, name: str) -> str:
    """Return how a user writes a component of the catalogue: as a function, class or instance."""
    if name not in table.arguments:
        return name
    return f"{type(table[name]).__name__}({', '.join(map(ascii, table.arguments[name]))})"


class _Sinks:
    """The calls that end a case's pipelines."""

    def __init__(self, case: ConformanceCase) -> None:
        self._case = case
        self._next: dict[int, int] = {}  # index of the next sink of each pipeline

    def at(self, node: int) -> list[SinkSpec]:
        """Return the sinks of a node."""
        return [sink for sink in self._case.sinks if sink.origin == node]

    def end(self, node: int, pipeline: int) -> tuple[str, tuple[Argument, ...]]:
        """Return the method that ends a pipeline at a node, and its arguments."""
        first = self._next.get(pipeline, 0)
        self._next[pipeline] = first + len(self.at(node))
        configs = [
            _sink(spec, pipeline, number) for number, spec in enumerate(self.at(node), first)
        ]
        if len(configs) < 2:
            return ("to_sink", tuple(configs)) if configs else ("done", ())
        shown = f"[{', '.join([config.text for config in configs])}]"
        return "to_sinks", (Argument(shown, [config.value for config in configs]),)


def _step(
    case: ConformanceCase, step: StepSpec, states: list[Argument]
) -> tuple[str, tuple[Argument, ...]]:
    """Return the method of a step, and its arguments but other pipelines."""
    name, builder = f"{step.operator} {step.id}", case.form == "builder"
    if step.operator in ("collect", "merge"):
        return step.operator, ()
    if step.window is not None:
        windowed = _made_by(_windowed, step.operator)(step.operator, step.window, name)
        if not builder:
            return "to", (windowed,)
        route = _value(None) if step.route is None else _route(step.route)
        return "to_window", (windowed, route, _value(name))
    if step.operator in KEYS:
        return "key_by", (_component(step.operator, name),)
    if step.operator not in STATEFUL:
        return "to_parallel" if step.parallel else "to", (_component(step.operator, name),)
    spec, state = case.partitions[step.partition], states[step.partition]
    state_name = PARTITIONS[step.partition]
    if not builder:
        own: OwnState[Any] = OwnState(state.value, state_name, spec.expire_after)
        made = STEPS[step.operator](name, own)
        said = f'OwnState({state.text}, "{state_name}", {spec.expire_after})'
        return "to", (Argument(f'{type(made).__name__}("{name}", {said})', made),)
    shown = _component(step.operator, name)
    given = [shown, state, _value(state_name)]
    if spec.shape == "single":
        return "to_stateful", (*given, *_given(spec.expire_after))
    assert step.route is not None
    method = "to_state_partition_u64" if spec.shape == "u64" else "to_state_partition"
    keys = None if spec.keys is None else KEY_LISTS[spec.keys].keys
    listed = (_value(keys), _value(spec.expire_after)) if spec.expire_after else _given(keys)
    return method, (*given, _route(step.route), *listed)


@cache
def _component(operator: str, name: str) -> Argument:
    if not COMPONENTS.has(operator, Trait.OF_STEP):
        return Argument(expression(COMPONENTS, operator), COMPONENTS[operator])
    made = COMPONENTS[operator](name)
    return Argument(f'{type(made).__name__}("{name}")', made)


@cache
def _route(name: str) -> Argument:
    if name in KEYS:
        return _component(name, name)
    return Argument(expression(ROUTES, name), ROUTES[name])


@cache
def _windowed(operator: str, spec: WindowSpec, name: str) -> Argument:
    made = _called(_LIBRARY, f"{spec.kind}_windows", _value(spec.size))
    given: dict[str, Any] = {}
    if spec.kind == "count":
        given["with_timeout"] = spec.timeout
    else:
        given["with_slide"] = spec.slide if spec.kind == "range" else None
        given["with_delay"] = spec.delay or None
        given["with_late_data_policy"] = None if spec.late == "dead-letter" else spec.late
    for method, value in given.items():
        if value is not None:
            made = _called(made, method, _value(value))
    return _called(made, "over", _made_by(_component, operator)(operator, name))


def _made_by(function: Any, operator: str) -> Any:
    """Return a function that makes what has an operator: anew if that keeps something."""
    return function.__wrapped__ if operator in _REMEMBERING else function


@cache
def _source(spec: SourceSpec) -> Argument:
    function = None if spec.event_time is None else EVENT_TIMES[spec.event_time]
    library = "wallaroo." if function is wallaroo.kafka_timestamp else ""
    how = {
        "event_time": function and Argument(f"{library}{spec.event_time}", function),
        "idle_after": None if spec.idle_after is None else _value(spec.idle_after),
    }
    if function is not None and spec.max_ahead is not None:
        how["max_ahead"] = _value(spec.max_ahead)
    if spec.generator:
        return _called(_LIBRARY, "GenSourceConfig", Argument("Values()", Values()), **how)
    decoder = Argument(expression(DECODERS, spec.decoder), _own(DECODERS, spec.decoder))
    if spec.topic:
        topic, brokers = _value(topic_of(spec.id)), _value(_BROKERS)
        return _called(_LIBRARY, "KafkaSourceConfig", topic, brokers, decoder, **how)
    port = Argument(str(_PORT + spec.id), 0)
    return _called(_LIBRARY, "TCPSourceConfig", _value(_HOST), port, decoder, **how)


@cache
def _sink(spec: SinkSpec, pipeline: int, number: int) -> Argument:
    encoder = Argument(expression(ENCODERS, spec.encoder), ENCODERS[spec.encoder])
    if spec.topic:
        how = {"max_message_size": _value(MAX_SENT)}
        if spec.topic > 0:
            how["partitions"] = _value(spec.topic)
        topic = _value(f"OUT-{pipeline}-{number}")
        return _called(_LIBRARY, "KafkaSinkConfig", topic, _value(_BROKERS), encoder, **how)
    port = Argument(f"{_PORT + 10 + 10 * pipeline + number}", 1)
    return _called(_LIBRARY, "TCPSinkConfig", _value(_HOST), port, encoder)


def _called(on: Argument, method: str, *given: Argument, **how: Argument | None) -> Argument:
    """Return what a call makes, and the call; what is `None` is left out."""
    named = {name: one for name, one in how.items() if one is not None}
    value = getattr(on.value, method)(
        *[one.value for one in given], **{name: one.value for name, one in named.items()}
    )
    said = [*[one.text for one in given], *[f"{name}={one.text}" for name, one in named.items()]]
    return Argument(f"{on.text}.{method}({', '.join(said)})", value)


def _state(number: int, spec: PartitionSpec) -> Argument:
    # An instance has a name, since all steps over the partition must be given the same (state-8).
    shown = f"state_{number}" if spec.builder in BUILDERS.arguments else spec.builder
    return Argument(shown, _own(BUILDERS, spec.builder))


def _own(table: Table, name: str) -> Any:
    """Return a component; of one that keeps something, a copy, so that each case has its own."""
    if not table.has(name, Trait.REMEMBERS):
        return table[name]
    return pickle.loads(pickle.dumps(table[name]))  # noqa: S301 - our own bytes


def _name(source: SourceSpec) -> Argument:
    return _value(SOURCES[source.id])


def _given(value: Any) -> tuple[Argument, ...]:
    return () if value is None else (_value(value),)


def _value(value: Any) -> Argument:
    return Argument(json.dumps(value) if isinstance(value, str) else ascii(value), value)
