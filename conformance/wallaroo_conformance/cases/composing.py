"""Cases written by hand: rows of steps, and graphs, without numbers to keep right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from wallaroo_conformance.cases.case import (
    FIRST_STEP,
    ConformanceCase,
    Input,
    PartitionSpec,
    SinkSpec,
    SourceSpec,
    StepSpec,
    What,
    ends,
)
from wallaroo_conformance.cases.operators import (
    DECODERS,
    ENCODERS,
    EVENT_TIMES,
    STATEFUL,
    Trait,
)

_LINE = SinkSpec.encoder
[_DECODER], [_ENCODER] = DECODERS.having(Trait.OF_TRIPLES), ENCODERS.having(Trait.OF_TRIPLES)
TRIPLES_SOURCE = SourceSpec(0, _DECODER, next(iter(EVENT_TIMES)))
"""A source of messages of three parts, which have event times."""


def step(operator: str, *origins: int, **fields: Any) -> StepSpec:
    """Return a step without its number.

    Args:
        operator: of the step.
        origins: the nodes that it takes messages from, counted back: 0 is the node before, as if
            there is none.
        fields: more of the step.
    """
    return StepSpec(0, operator, origins or (0,), **fields)


def row(
    *steps: StepSpec,
    decoder: str = SourceSpec.decoder,
    encoders: Sequence[str] = (_LINE,),
    **fields: Any,
) -> ConformanceCase:
    """Return a case of the builder's form with one source, and a row of steps that ends in sinks.

    Args:
        steps: as `step` makes them.
        decoder: the source's.
        encoders: a sink's each.
        fields: more of the case.
    """
    made = _linked(1, steps)
    last = made[-1].id if made else 0
    sinks = [SinkSpec(last, encoder) for encoder in encoders]
    return ConformanceCase((SourceSpec(0, decoder),), tuple(made), tuple(sinks), **fields)


def together(rows: Sequence[ConformanceCase], inputs: tuple[Input, ...]) -> ConformanceCase:
    """Return rows as one case, which has the partitions, and all else, of the first."""
    sources: list[SourceSpec] = []
    steps: list[StepSpec] = []
    sinks: list[SinkSpec] = []
    for number, case in enumerate(rows):
        new = {one.id: one.id + len(steps) for one in case.steps} | {0: number}
        sources.append(replace(case.sources[0], id=number))
        sinks += [replace(sink, origin=new[sink.origin]) for sink in case.sinks]
        steps += [
            replace(one, id=new[one.id], origins=(new[one.origins[0]],)) for one in case.steps
        ]
    parts: dict[str, Any] = {
        "sources": tuple(sources),
        "steps": tuple(steps),
        "sinks": tuple(sinks),
    }
    return replace(rows[0], inputs=inputs, **parts)


def graph(
    *steps: StepSpec,
    inputs: Sequence[Input] = (),
    sources: Sequence[SourceSpec] = (TRIPLES_SOURCE,),
    ended: bool = True,
    shared: bool = False,
    expires: int | None = None,
    **fields: Any,
) -> ConformanceCase:
    """Return a case of the pipelines' form with a sink at each end of its graph.

    Args:
        steps: as `step` makes them.
        inputs: the records.
        sources: without their numbers.
        ended: as in the case.
        shared: all states are one; else each has a state partition.
        expires: nanoseconds after which entities expire.
        fields: more of the case.
    """
    made = _linked(len(sources), steps)
    states = [index for index, one in enumerate(made) if one.operator in STATEFUL]
    for partition, index in enumerate(states):
        made[index] = replace(made[index], partition=0 if shared else partition)
    partitions = (PartitionSpec(expire_after=expires),) * (1 if shared else len(states))
    nodes = [*range(len(sources)), *[one.id for one in made]]
    return ConformanceCase(
        tuple([replace(source, id=number) for number, source in enumerate(sources)]),
        tuple(made),
        ends(nodes, made, _ENCODER),
        partitions or (PartitionSpec(),),
        tuple(inputs),
        ended,
        "pipelines",
        **fields,
    )


def record(time: int, payload: str, what: What = "frame", source: int = 0) -> Input:
    """Return a record that arrives at a time."""
    return Input(source, payload.encode(), time, what)


def _linked(sources: int, steps: Sequence[StepSpec]) -> list[StepSpec]:
    nodes = list(range(sources))
    made = []
    for number, one in enumerate(steps, FIRST_STEP):
        origins = tuple([nodes[-1 - back] for back in one.origins])
        made.append(replace(one, id=number, origins=origins))
        nodes.append(number)
    return made
