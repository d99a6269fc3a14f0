"""Crossing: makes one case out of two, in which the special things of both can meet.

The second's steps come behind nodes of the first, or within its rows, with state partitions and
input. Chance decides from which case many of the parts come, so the same two cases give many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

from wallaroo_conformance.cases.case import (
    FIRST_STEP,
    SOURCES,
    ConformanceCase,
    Input,
    PartitionSpec,
    SourceSpec,
    StepSpec,
    fitting,
)
from wallaroo_conformance.cases.generating import DRAWN_PARTITIONS
from wallaroo_conformance.cases.graph import numbered, without_steps
from wallaroo_conformance.cases.operators import (
    MULTI_COMPUTATIONS,
    STATE_MULTI_COMPUTATIONS,
    Trait,
)

T = TypeVar("T")

_MOST_BYTES = 1_000  # of a payload; with other steps, a longer one may give an item for each byte
MOST_INPUTS = 16  # room for what both need; led cases take little longer than others
_MOST_STEPS = 6  # of a source
_MOST_SINKS = 3
_MOST_WIDE = 2  # multi computations in a row, so that outputs stay few: children have children
_MOST_NARROW = 3
_NARROW = frozenset(MULTI_COMPUTATIONS.having(Trait.NARROW))
_WIDE = frozenset({*MULTI_COMPUTATIONS, *STATE_MULTI_COMPUTATIONS}) - _NARROW


def crossed(one: ConformanceCase, other: ConformanceCase, rng: Random) -> ConformanceCase:
    """Return a case made of parts of both, in the mode of the first.

    If one of them is a graph, the other's steps must be such as a graph can have.
    """
    other = _with_numbers_from(numbered(other), 1 + max([FIRST_STEP, *[s.id for s in one.steps]]))
    sources, partitions = list(one.sources), list(one.partitions)
    places = {source.id: _adopted_source(sources, source, rng) for source in other.sources}
    indices = [_adopted_partition(partitions, spec, rng) for spec in other.partitions]
    theirs = [replace(step, partition=indices[step.partition]) for step in other.steps]
    other = replace(other, steps=tuple(theirs))
    graph = "pipelines" in (one.form, other.form)
    joined = replace(one, sources=tuple(sources), partitions=tuple(partitions))
    if graph:
        joined = _with_graph(joined, other, places, rng)
    for source, place in () if graph else places.items():
        joined = _with_row(joined, other, source, place, rng)
    # Records of the same times, or those of the other case behind those of the first.
    later = rng.choice((0, max([entry.at for entry in one.inputs], default=0)))
    inputs = [
        replace(entry, source=places.get(entry.source, 0), at=entry.at + later)
        for entry in other.inputs
    ]
    case = replace(
        joined,
        inputs=tuple([fitting(entry, sources) for entry in _merged(one.inputs, inputs, rng)]),
        ended=rng.choice((one.ended, other.ended)),
        form="pipelines" if graph else "builder",
        codec=rng.choice((one.codec, other.codec)),
        batches=rng.choice((one.batches, other.batches)),
        number=rng.choice((one.number, other.number)),
        on_error=rng.choice((one.on_error, other.on_error)),
        small=rng.choice((one.small, other.small)),
    )
    return numbered(_without_too_many(case))


def _with_numbers_from(case: ConformanceCase, first: int) -> ConformanceCase:
    """Return the case with greater numbers of its steps."""
    new = {step.id: number for number, step in enumerate(case.steps, first)}
    return replace(
        case,
        steps=tuple([replace(_behind(step, new), id=new[step.id]) for step in case.steps]),
        sinks=tuple(
            [replace(sink, origin=new.get(sink.origin, sink.origin)) for sink in case.sinks]
        ),
    )


def _behind(step: StepSpec, instead: Mapping[int, int]) -> StepSpec:
    return replace(step, origins=tuple([instead.get(origin, origin) for origin in step.origins]))


def _adopted_source(sources: list[SourceSpec], spec: SourceSpec, rng: Random) -> int:
    """Return the number of a source for the other case's records; it may be one more."""
    free = [number for number in range(len(SOURCES)) if number not in [one.id for one in sources]]
    if free and rng.random() < 1 / 4:
        sources.append(replace(spec, id=free[0]))
        return free[0]
    index = rng.randrange(len(sources))
    if rng.random() < 1 / 2:
        sources[index] = replace(spec, id=sources[index].id)
    return sources[index].id


def _adopted_partition(partitions: list[PartitionSpec], spec: PartitionSpec, rng: Random) -> int:
    """Return the number of a partition for the other case's steps; it may be one more."""
    if len(partitions) < DRAWN_PARTITIONS and rng.random() < 1 / 2:
        partitions.append(spec)
        return len(partitions) - 1
    number = rng.randrange(len(partitions))
    if rng.random() < 1 / 2:
        partitions[number] = spec
    return number


def _with_row(
    case: ConformanceCase, other: ConformanceCase, source: int, place: int, rng: Random
) -> ConformanceCase:
    """Return the case with a row of the other's in one of its own, in one piece.

    The sinks are of one case or the other, or of both.
    """
    row = [place, *[step.id for step in case.row(place)]]
    theirs = other.row(source)
    node, end, their_end = rng.choice(row), row[-1], (theirs[-1].id if theirs else source)
    last = theirs[-1].id if theirs else node
    at = 0 if node == place else 1 + [step.id for step in case.steps].index(node)
    steps = [
        *case.steps[:at],
        *[_behind(step, {source: node}) for step in theirs],
        *[_behind(step, {node: last}) for step in case.steps[at:]],
    ]
    new_end = last if node == end else end
    our_sinks = [replace(sink, origin=new_end) for sink in case.sinks if sink.origin == end]
    sinks = [replace(sink, origin=new_end) for sink in other.sinks if sink.origin == their_end]
    chosen = rng.choice((our_sinks, sinks, [*our_sinks, *sinks][:_MOST_SINKS]))
    left = [sink for sink in case.sinks if sink.origin != end]
    return replace(case, steps=tuple(steps), sinks=(*left, *chosen))


def _with_graph(
    case: ConformanceCase, other: ConformanceCase, places: Mapping[int, int], rng: Random
) -> ConformanceCase:
    """Return the case with the other's graph behind some nodes, and perhaps before others."""
    numbers = [step.id for step in case.steps]
    nodes = {source: rng.choice([place, place, *numbers]) for source, place in places.items()}
    at = max([0, *[1 + numbers.index(node) for node in nodes.values() if node in numbers]])
    behind = list(case.steps[at:])
    for source, node in nodes.items():
        if (row := other.row(source)) and rng.random() < 1 / 2:
            behind = [_behind(step, {node: row[-1].id}) for step in behind]
    theirs = [_behind(step, nodes) for step in other.steps]
    sinks = [replace(sink, origin=nodes.get(sink.origin, sink.origin)) for sink in other.sinks]
    steps = (*case.steps[:at], *theirs, *behind)
    several = dict.fromkeys((*case.sinks, *sinks))
    return replace(case, steps=steps, sinks=tuple(several)[: 2 * _MOST_SINKS])


def _without_too_many(case: ConformanceCase) -> ConformanceCase:
    """Return the case without the steps that would make it large or slow."""
    too_many: dict[int, int] = {}
    before: dict[int, tuple[int, int, int]] = {source.id: (0, 0, 0) for source in case.sources}
    for step in case.steps:
        steps, wide, narrow = before[step.origins[0]]
        now = (steps + 1, wide + (step.operator in _WIDE), narrow + (step.operator in _NARROW))
        if now[0] > _MOST_STEPS or now[1] > _MOST_WIDE or now[2] > _MOST_NARROW:
            too_many[step.id] = step.origins[0]
            now = before[step.origins[0]]
        before[step.id] = now
    return without_steps(case, too_many)


def _merged(one: Sequence[Input], other: Sequence[Input], rng: Random) -> list[Input]:
    """Return two rows of records as one: each in its order, not too many, none too long."""
    rows = [
        [entry for entry in reversed(row) if len(entry.payload) <= _MOST_BYTES]
        for row in (one, other)
    ]
    found: list[Input] = []
    while len(found) < MOST_INPUTS and (left := [row for row in rows if row]):
        found.append(rng.choice(left).pop())
    return found
