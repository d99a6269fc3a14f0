"""From a case to its application.

`build` uses the builder, as a user would; `assemble` puts the same graph together from records made
once, about thirty times as fast, and can watch the calls. A test makes sure that both give the
same.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, TypeAlias, TypeVar

import wallaroo
from wallaroo.components import (
    StateBuilder,
    computation_of,
    partition_function_of,
    state_builder_of,
    state_computation_of,
)
from wallaroo.keys import SINGLE_KEY
from wallaroo.operations import Operation, Stateful, Stateless
from wallaroo.topology import Application, Node, Sink, Source, StatePartition, Step
from wallaroo_conformance.cases.case import (
    APPLICATION,
    PARTITIONS,
    PIPELINES,
    ConformanceCase,
    PartitionSpec,
    StepSpec,
)
from wallaroo_conformance.cases.operators import (
    BUILDERS,
    DECODERS,
    ENCODERS,
    KEY_LISTS,
    ROUTES,
    STATEFUL,
    STATELESS,
    STEPS,
    U64_KEY_LISTS,
    Trait,
)

C = TypeVar("C")

Addresses: TypeAlias = Mapping[tuple[str, int], tuple[str, int]]
"""Where a case's sinks are, by (pipeline, index)."""

Watch: TypeAlias = Callable[[str, str, int, Any], Any]
"""Called with (role, pipeline, position, record); returns the record to use instead."""


def build(case: ConformanceCase, sinks: Addresses | None = None) -> Application:
    """Return the case's application, by the builder's calls; sources listen on port 0."""
    builder = wallaroo.ApplicationBuilder(APPLICATION)
    states = [_builder(spec.builder).component for spec in case.partitions]
    for index, pipeline in enumerate(case.pipelines):
        name = PIPELINES[index]
        builder.new_pipeline(name, _source(pipeline.decoder))
        for step in pipeline.steps:
            _add_step(builder, case, step, states)
        configs = [
            wallaroo.TCPSinkConfig(*_address(sinks, (name, number)), ENCODERS[encoder])
            for number, encoder in enumerate(pipeline.sinks)
        ]
        if configs:
            builder.to_sinks(configs)
        else:
            builder.done()
    return builder.build()


def assemble(case: ConformanceCase, watch: Watch | None = None) -> Application:
    """Return the same application as `build`, put together from records made once."""
    watched = watch or _unwatched
    nodes: list[Node] = []
    partitions: dict[int, StatePartition] = {}
    for index, pipeline in enumerate(case.pipelines):
        name = PIPELINES[index]
        source = _source(pipeline.decoder)
        if watch is not None:
            source = _with(source, "decoder", watched("decode", name, -1, source.decoder))
        nodes.append(Source(name, source))
        for position, step in enumerate(pipeline.steps):
            record = watched("compute", name, position, _record(step.operator))
            operation: Operation
            if step.operator in STATELESS:
                operation = Stateless(record, step.parallel)
            else:
                number = case.partition_of(step)
                spec = case.partitions[number]
                if number not in partitions:
                    made = watched("build", PARTITIONS[number], 0, _builder(spec.builder))
                    partitions[number] = StatePartition(
                        PARTITIONS[number],
                        made,
                        _keys(spec),
                        spec.shape == "u64",
                    )
                route = None
                if spec.shape != "single":
                    route = watched("route", name, position, _route(step.route))
                operation = Stateful(record, PARTITIONS[number], route)
            nodes.append(Step(name, position, operation, (len(nodes) - 1,)))
        origin = (len(nodes) - 1,)
        for number, encoder in enumerate(pipeline.sinks):
            config = _sink(encoder)
            if watch is not None:
                config = _with(config, "encoder", watched("encode", name, number, config.encoder))
            nodes.append(Sink(name, number, config, origin))
    return Application(APPLICATION, tuple(nodes), tuple(partitions.values()))


def keys_of(spec: PartitionSpec) -> list[Any] | None:
    """Return the keys a partition lists, if it does."""
    if spec.keys is None:
        return None
    return (U64_KEY_LISTS if spec.shape == "u64" else KEY_LISTS)[spec.keys].keys


def _add_step(
    builder: wallaroo.ApplicationBuilder, case: ConformanceCase, step: StepSpec, states: list[Any]
) -> None:
    component = STEPS[step.operator]
    if step.operator not in STATEFUL:
        (builder.to_parallel if step.parallel else builder.to)(component)
        return
    number = case.partition_of(step)
    spec = case.partitions[number]
    state = states[number]
    if spec.shape == "single":
        builder.to_stateful(component, state, PARTITIONS[number])
    elif spec.shape == "keyed":
        builder.to_state_partition(
            component, state, PARTITIONS[number], ROUTES[step.route], keys_of(spec)
        )
    else:
        builder.to_state_partition_u64(
            component, state, PARTITIONS[number], ROUTES[step.route], keys_of(spec)
        )


def _address(sinks: Addresses | None, sink: tuple[str, int]) -> tuple[str, int]:
    return ("127.0.0.1", 1) if sinks is None else sinks[sink]


def _unwatched(role: str, pipeline: str, position: int, record: Any) -> Any:
    return record


def _with(config: C, attribute: str, record: Any) -> C:
    """Return a copy of a source or sink configuration with another record in it."""
    copy = object.__new__(type(config))
    for name, value in vars(config).items():
        object.__setattr__(copy, name, value)
    object.__setattr__(copy, attribute, record)
    return copy


@cache
def _source_of(decoder: str) -> wallaroo.TCPSourceConfig:
    return wallaroo.TCPSourceConfig("127.0.0.1", 0, DECODERS[decoder])


def _source(decoder: str) -> wallaroo.TCPSourceConfig:
    config = _source_of(decoder)
    if DECODERS.has(decoder, Trait.REMEMBERS):
        return _with(config, "decoder", _fresh(config.decoder))
    return config


@cache
def _sink(encoder: str) -> wallaroo.TCPSinkConfig:
    return wallaroo.TCPSinkConfig("127.0.0.1", 1, ENCODERS[encoder])


@cache
def _record(operator: str) -> Any:
    return (state_computation_of if operator in STATEFUL else computation_of)(STEPS[operator])


@cache
def _route(name: str) -> Any:
    return partition_function_of(ROUTES[name])


@cache
def _builder_of(name: str) -> StateBuilder:
    return state_builder_of(BUILDERS[name])


def _builder(name: str) -> StateBuilder:
    record = _builder_of(name)
    return _fresh(record) if BUILDERS.has(name, Trait.REMEMBERS) else record


def _fresh(record: C) -> C:
    """Return a copy of a component that keeps something: each case has its own."""
    copy: C = pickle.loads(pickle.dumps(record))  # noqa: S301 - our own bytes
    return copy


def _keys(spec: PartitionSpec) -> tuple[Any, ...] | None:
    if spec.shape == "single":
        return (SINGLE_KEY,)
    keys = keys_of(spec)
    return None if keys is None else tuple(keys)
