"""Crossing: makes one case out of two, in which the special things of both can meet.

Pipelines of the second are joined to those of the first, beside or within them, with state
partitions and input. Chance decides from which case many of the parts come, so the same two cases
give many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from wallaroo_conformance.cases.case import (
    DRAWN_PARTITIONS,
    PIPELINES,
    ConformanceCase,
    Input,
    PartitionSpec,
    PipelineSpec,
    StepSpec,
)
from wallaroo_conformance.cases.operators import (
    MULTI_COMPUTATIONS,
    STATE_MULTI_COMPUTATIONS,
    STATEFUL,
    Trait,
)

T = TypeVar("T")

_MOST_BYTES = 1_000  # of a payload; with other steps, a longer one may give an item for each byte
MOST_INPUTS = 16  # room for what both need; led cases take little longer than others
_MOST_STEPS = 6
_MOST_SINKS = 3
_MOST_WIDE = 2  # multi computations in a row, so that outputs stay few: children have children
_MOST_NARROW = 3
_WIDE = frozenset(
    {
        *(name for name in MULTI_COMPUTATIONS if not MULTI_COMPUTATIONS.has(name, Trait.NARROW)),
        *STATE_MULTI_COMPUTATIONS,
    }
)
_NARROW = frozenset(MULTI_COMPUTATIONS.having(Trait.NARROW))


def crossed(one: ConformanceCase, other: ConformanceCase, rng: Random) -> ConformanceCase:
    """Return a case made of parts of both, in the mode of the first."""
    partitions = list(one.partitions)
    pipelines = list(one.pipelines)
    places: list[int] = []  # of the other's pipelines
    numbers = [_adopted(partitions, spec, rng) for spec in other.partitions]
    for pipeline in other.pipelines:
        moved = replace(pipeline, steps=tuple(_moved(step, numbers) for step in pipeline.steps))
        if len(pipelines) < len(PIPELINES) and rng.random() < 1 / 4:
            places.append(len(pipelines))
            pipelines.append(moved)
        else:
            at = rng.randrange(len(pipelines))
            places.append(at)
            pipelines[at] = _joined(pipelines[at], moved, rng)
    inputs = [
        Input(places[entry.pipeline], entry.payload, entry.connection) for entry in other.inputs
    ]
    return ConformanceCase(
        pipelines=tuple(pipelines),
        partitions=tuple(partitions),
        inputs=tuple(merged(_not_long(one.inputs), _not_long(inputs), rng)),
        batches=rng.choice((one.batches, other.batches)),
        number=rng.choice((one.number, other.number)),
        isolation=one.isolation,
        on_error=rng.choice((one.on_error, other.on_error)),
        small=rng.choice((one.small, other.small)),
    )


def _not_long(inputs: Sequence[Input]) -> list[Input]:
    return [entry for entry in inputs if len(entry.payload) <= _MOST_BYTES]


def merged(one: Sequence[T], other: Sequence[T], rng: Random) -> list[T]:
    """Return two rows of records as one: each in its order, not too many."""
    rows = [list(reversed(one)), list(reversed(other))]
    found: list[T] = []
    while len(found) < MOST_INPUTS and (left := [row for row in rows if row]):
        found.append(rng.choice(left).pop())
    return found


def _adopted(partitions: list[PartitionSpec], spec: PartitionSpec, rng: Random) -> int:
    """Return the number of a partition for the other case's steps; it may be one more."""
    if len(partitions) < DRAWN_PARTITIONS and rng.random() < 1 / 2:
        partitions.append(spec)
        return len(partitions) - 1
    number = rng.randrange(len(partitions))
    if rng.random() < 1 / 2:
        partitions[number] = spec
    return number


def _moved(step: StepSpec, numbers: Sequence[int]) -> StepSpec:
    if step.operator not in STATEFUL:
        return step
    return replace(step, partition=numbers[step.partition % len(numbers)])


def _joined(one: PipelineSpec, other: PipelineSpec, rng: Random) -> PipelineSpec:
    """Return a pipeline with the steps of both: the other's in one piece."""
    at = rng.randint(0, len(one.steps))
    steps: list[StepSpec] = []
    wide = narrow = 0
    for step in (*one.steps[:at], *other.steps, *one.steps[at:]):
        wide += step.operator in _WIDE
        narrow += step.operator in _NARROW
        if (step.operator in _WIDE and wide > _MOST_WIDE) or (
            step.operator in _NARROW and narrow > _MOST_NARROW
        ):
            continue
        steps.append(step)
    sinks = rng.choice((one.sinks, other.sinks, (*one.sinks, *other.sinks)[:_MOST_SINKS]))
    return PipelineSpec(rng.choice((one.decoder, other.decoder)), tuple(steps[:_MOST_STEPS]), sinks)
