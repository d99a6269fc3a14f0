"""All one-step reductions of a case, each of them a simpler case.

A slow engine answers hundreds of cases in one job almost as fast as a single case. So a failure is
not reduced one attempt after the other: everything that can be tried goes into one job, and the
next job begins with the simplest case that still fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations, pairwise
from typing import Any, TypeAlias, TypeVar

from wallaroo_conformance.cases.case import (
    ConformanceCase,
    Input,
    PartitionSpec,
    PipelineSpec,
    StepSpec,
)
from wallaroo_conformance.cases.operators import (
    BUILDERS,
    COMPUTATIONS,
    DECODERS,
    ENCODERS,
    KEY_LISTS,
    MULTI_COMPUTATIONS,
    ROUTES,
    STATE_COMPUTATIONS,
    STATE_MULTI_COMPUTATIONS,
    U64_KEY_LISTS,
)
from wallaroo_conformance.cases.payloads import PAYLOADS

T = TypeVar("T")

Size: TypeAlias = tuple[int, ...]


def reductions(case: ConformanceCase) -> list[ConformanceCase]:
    """Return every case that is one step simpler, simplest first, without repetitions."""
    own = size(case)
    found = {reduced: size(reduced) for reduced in _reductions(case)}
    return sorted([one for one in found if found[one] < own], key=lambda one: found[one])


def projections(case: ConformanceCase) -> list[ConformanceCase]:
    """Return small parts of a case, simplest first: a pipeline, two steps, two frames at most.

    Most failures need no more, so one job with all of them saves many jobs with a step each.
    """
    found: dict[ConformanceCase, None] = {}
    for index, pipeline in enumerate(case.pipelines):
        inputs = [replace(entry, pipeline=0) for entry in case.inputs if entry.pipeline == index]
        steps = list(pipeline.steps)
        chosen = [(), *[(step,) for step in steps], *combinations(steps, 2)]
        frames = [*[(entry,) for entry in inputs], *pairwise(inputs)]
        for some_steps in chosen:
            for some_frames in frames:
                part = replace(
                    case,
                    pipelines=(replace(pipeline, steps=some_steps),),
                    inputs=some_frames,
                    batches=None,
                )
                found[part] = None
                if case.batches is not None and len(some_frames) > 1:
                    found[replace(part, batches=(1,))] = None
    return sorted(found, key=size)


def size(case: ConformanceCase) -> Size:
    """Return how complicated a case is; compares as tuples do."""
    steps = [step for _, _, step in case.steps()]
    return (
        # A person must read every frame, step, pipeline and sink; how the case is run counts less.
        3 * len(case.inputs)
        + 2 * len(steps)
        + 4 * len(case.pipelines)
        + sum(abs(len(pipeline.sinks) - 1) for pipeline in case.pipelines)
        + (case.batches is not None)
        + (case.number is not None)
        + (case.on_error != "skip")
        + case.small,
        len(case.batches or ()) + len(case.partitions),
        sum(_rank(step) for step in steps)
        + sum(_OPERATOR_RANK[pipeline.decoder] for pipeline in case.pipelines)
        + sum(_OPERATOR_RANK[sink] for pipeline in case.pipelines for sink in pipeline.sinks)
        + sum(_partition_rank(spec) for spec in case.partitions),
        sum(_PAYLOAD_RANK.get(entry.payload, len(PAYLOADS)) for entry in case.inputs),
        sum(entry.connection for entry in case.inputs) + (case.number or 0),
        sum(step.partition for step in steps),
    )


def _reductions(case: ConformanceCase) -> Iterator[ConformanceCase]:
    yield from _without_inputs(case)
    yield from _without_pipelines(case)
    for index, pipeline in enumerate(case.pipelines):
        for simpler in _pipelines(pipeline):
            yield replace(case, pipelines=_put(case.pipelines, index, simpler))
    yield from _partitions(case)
    yield from _inputs(case)
    yield from _runs(case)


def _without_inputs(case: ConformanceCase) -> Iterator[ConformanceCase]:
    count = len(case.inputs)
    length = count
    while length:
        for start in range(0, count, length):
            left = case.inputs[:start] + case.inputs[start + length :]
            yield replace(case, inputs=left)
            # Without this frame, later batch boundaries move: also try them at their old places.
            if case.batches is not None and length == 1:
                yield replace(case, inputs=left, batches=_batches_without(case.batches, start))
        length //= 2


def _batches_without(batches: tuple[int, ...], position: int) -> tuple[int, ...] | None:
    end = 0
    for index, batch in enumerate(batches):
        end += batch
        if position < end:
            smaller = (*batches[:index], batch - 1, *batches[index + 1 :])
            return tuple(one for one in smaller if one) or None
    return batches


def _without_pipelines(case: ConformanceCase) -> Iterator[ConformanceCase]:
    if len(case.pipelines) == 1:
        return
    for gone in range(len(case.pipelines)):
        left = tuple(
            replace(entry, pipeline=entry.pipeline - (entry.pipeline > gone))
            for entry in case.inputs
            if entry.pipeline != gone
        )
        yield replace(case, pipelines=_without(case.pipelines, gone), inputs=left)


def _pipelines(pipeline: PipelineSpec) -> Iterator[PipelineSpec]:
    for index in range(len(pipeline.steps)):
        yield replace(pipeline, steps=_without(pipeline.steps, index))
    if len(pipeline.steps) > 1:
        half = len(pipeline.steps) // 2
        yield replace(pipeline, steps=pipeline.steps[:half])
        yield replace(pipeline, steps=pipeline.steps[half:])
    for index, step in enumerate(pipeline.steps):
        for simpler in _steps(step):
            yield replace(pipeline, steps=_put(pipeline.steps, index, simpler))
    for index in range(len(pipeline.sinks)):
        yield replace(pipeline, sinks=_without(pipeline.sinks, index))
    if not pipeline.sinks:
        yield replace(pipeline, sinks=("line",))
    for index, sink in enumerate(pipeline.sinks):
        for simpler_sink in _simpler(tuple(ENCODERS), sink):
            yield replace(pipeline, sinks=_put(pipeline.sinks, index, simpler_sink))
    # All of them: one decoder's messages are seldom halfway to another's.
    for decoder in tuple(DECODERS)[: tuple(DECODERS).index(pipeline.decoder)]:
        yield replace(pipeline, decoder=decoder)


def _steps(step: StepSpec) -> Iterator[StepSpec]:
    for operators in _KINDS:
        for operator in _simpler(operators, step.operator) or operators[:1]:
            yield replace(step, operator=operator)
    if step.parallel:
        yield replace(step, parallel=False)
    for route in _simpler(tuple(ROUTES), step.route):
        yield replace(step, route=route)
    if step.partition:
        yield replace(step, partition=0)


def _partitions(case: ConformanceCase) -> Iterator[ConformanceCase]:
    for index, spec in enumerate(case.partitions):
        if len(case.partitions) > 1:
            yield replace(case, partitions=_without(case.partitions, index))
        simpler = [replace(spec, builder=name) for name in _simpler(tuple(BUILDERS), spec.builder)]
        if spec.keys is not None:
            simpler.append(replace(spec, keys=None))
            lists = tuple(U64_KEY_LISTS if spec.shape == "u64" else KEY_LISTS)
            simpler += [replace(spec, keys=keys) for keys in lists[: lists.index(spec.keys)]]
        if spec.shape != "single":
            simpler.append(replace(spec, shape="single", keys=None))
        if spec.shape == "u64":
            simpler.append(replace(spec, shape="keyed", keys=None))
        for one in simpler:
            yield replace(case, partitions=_put(case.partitions, index, one))


def _inputs(case: ConformanceCase) -> Iterator[ConformanceCase]:
    for index, entry in enumerate(case.inputs):
        plain = [Input(entry.pipeline, payload, entry.connection) for payload in PAYLOADS[:3]]
        halves = [entry.payload[: len(entry.payload) // 2], entry.payload[:-1], entry.payload[1:]]
        marks = [mark for mark in (b"x", b"y", b"z") if mark in entry.payload]
        shorter = [replace(entry, payload=payload) for payload in (*marks, *halves)]
        for one in (*plain, *shorter, replace(entry, connection=0)):
            yield replace(case, inputs=_put(case.inputs, index, one))
        if entry.pipeline:
            yield replace(case, inputs=_put(case.inputs, index, replace(entry, pipeline=0)))


def _runs(case: ConformanceCase) -> Iterator[ConformanceCase]:
    if case.batches is not None:
        yield replace(case, batches=None)
        yield replace(case, batches=(1,))
        for index in range(len(case.batches)):
            yield replace(case, batches=_without(case.batches, index) or None)
    if case.number is not None:
        yield replace(case, number=None)
        yield replace(case, number=2)
    if case.on_error != "skip":
        yield replace(case, on_error="skip")
    if case.small:
        yield replace(case, small=False)


_KINDS = (
    tuple(COMPUTATIONS),
    tuple(MULTI_COMPUTATIONS),
    tuple(STATE_COMPUTATIONS),
    tuple(STATE_MULTI_COMPUTATIONS),
)
_OPERATOR_RANK = {
    name: rank for table in (*_KINDS, DECODERS, ENCODERS) for rank, name in enumerate(table)
}
_KIND_RANK = {name: 20 * rank for rank, kind in enumerate(_KINDS) for name in kind}
_ROUTE_RANK = {name: rank for rank, name in enumerate(ROUTES)}
_BUILDER_RANK = {name: rank for rank, name in enumerate(BUILDERS)}
_KEYS_RANK = {name: 3 + rank for rank, name in enumerate((*KEY_LISTS, *U64_KEY_LISTS))}
_SHAPE_RANK = {"single": 0, "keyed": 5, "u64": 10}
_PAYLOAD_RANK = {payload: rank for rank, payload in enumerate(PAYLOADS)}


def _rank(step: StepSpec) -> int:
    return (
        _KIND_RANK[step.operator]
        + _OPERATOR_RANK[step.operator]
        + _ROUTE_RANK[step.route]
        + step.parallel
    )


def _partition_rank(spec: PartitionSpec) -> int:
    keys = 0 if spec.keys is None else _KEYS_RANK[spec.keys]
    return _SHAPE_RANK[spec.shape] + _BUILDER_RANK[spec.builder] + keys


def _simpler(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    """Return the names that stand before `name`: a few of them, the plainest among them."""
    if name not in names:
        return ()
    place = names.index(name)
    return tuple(dict.fromkeys((*names[: min(place, 3)], *names[max(place - 2, 0) : place])))


def _without(items: tuple[T, ...], index: int) -> tuple[T, ...]:
    return items[:index] + items[index + 1 :]


def _put(items: tuple[T, ...], index: int, item: Any) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])
