"""Cases that are the same in every check: each operator alone, over all payloads.

A short search may leave out the one payload on which a fault of one operator shows. So each
operator stands in an application that does nothing else unusual, and meets every payload there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from random import Random
from typing import Any, TypeAlias

from wallaroo_conformance.cases.building import used_by
from wallaroo_conformance.cases.case import (
    ConformanceCase,
    Input,
    PartitionSpec,
    Shape,
    SinkSpec,
    SourceSpec,
    StepSpec,
)
from wallaroo_conformance.cases.composing import graph, row, step
from wallaroo_conformance.cases.operators import (
    BUILDERS,
    DECODERS,
    ENCODERS,
    KEY_LISTS,
    ROUTES,
    STATEFUL,
    STEPS,
    Tone,
    Trait,
)
from wallaroo_conformance.cases.operators.common import PAYLOADS
from wallaroo_conformance.cases.operators.marks import MARKS

ENDING = (b"quit", b"'quit'", b"halt")
"""Payloads at which some operators end the run: nothing comes behind them."""
GOING_ON = tuple([payload for payload in PAYLOADS if payload not in ENDING])

_DIGITS = range(6)  # what a mark does depends on the number before it, at most modulo 6
TRIPLES = (
    *(b"a 5 m", b"b 6 mm", b"a 7 m", b"c x m", b"a yes m", b"a half m", b"b 7 'm", b"a 5 ", b"a 5"),
    *[f"{'abc'[n % 3]} {n} {n}{mark}".encode() for mark in MARKS for n in _DIGITS],
)
"""Payloads of messages of three parts, with each mark."""

_Edge: TypeAlias = tuple[str, str]
"""A decoder and an encoder."""

_EXACT: _Edge = ("anything", "described")
"""Messages of any type, and outputs that tell apart what looks alike."""
[_DECODER], [_ENCODER] = DECODERS.having(Trait.OF_TRIPLES), ENCODERS.having(Trait.OF_TRIPLES)
_OF_TRIPLES: _Edge = (_DECODER, _ENCODER)
_COUNT, *_ = STATEFUL  # the plainest
_REMEMBER, *_ = STATEFUL.having(Trait.OF_STEP)
_NUMBER = 5  # of partitions
_ENDS, _STOPS = (b"quit",), (b"x", b"a")
"""Few payloads, so that the end of a run is not hidden behind what else goes wrong."""
_FEW = (b"a", b"b a c", b"", b"y", b"zx", b"x", b"a")  # payloads, of which builders see none


def tour(tone: Tone) -> list[ConformanceCase]:
    """Return the cases, in an order in which neighbours are not alike.

    Args:
        tone: `tame`: without the operators that make findings.
    """
    alone = [*_edges(), *_steps()]
    short = [replace(case, inputs=_each(_ENDS)) for case in alone if not _of_triples(case)]
    short += [replace(case, inputs=_each(_STOPS), on_error="stop") for case in short]
    found = [*alone, *short, *_states(), *of_topics()]
    if tone == "tame":
        found = [replace(case, isolation="trusting") for case in found if not _finds(case)]
    Random(0).shuffle(found)  # noqa: S311 - no secret
    return found


def of_topics() -> Iterator[ConformanceCase]:
    """Yield cases of what decodes records of Kafka, and of what encodes for it."""
    inputs = (Input(0, TRIPLES[0], what="tombstone"), *_each(TRIPLES))
    for decoder in DECODERS.having(Trait.OF_TOPIC):
        yield graph(inputs=inputs, sources=(SourceSpec(0, decoder, topic=1),))
    for encoder in ENCODERS.having(Trait.OF_TOPIC):
        yield replace(graph(inputs=_each(TRIPLES)), sinks=(SinkSpec(0, encoder, topic=3),))


def _of_triples(case: ConformanceCase) -> bool:
    return DECODERS.has(case.sources[0].decoder, Trait.OF_TRIPLES)


def _finds(case: ConformanceCase) -> bool:
    """Whether a case has an operator that makes findings."""
    return any(table.has(name, Trait.FINDING) for table, name in used_by(case))


def _edges() -> Iterator[ConformanceCase]:
    decoder, encoder = _EXACT
    yield from [_alone(edge=(name, encoder)) for name in DECODERS.choices("any")]
    yield from [_alone(edge=(decoder, name)) for name in ENCODERS.choices("any")]


def _steps() -> Iterator[ConformanceCase]:
    """Yield cases of computations, partition functions and key extractors."""
    for name in STEPS:
        triples = STEPS.has(name, Trait.OF_TRIPLES)
        yield _alone(step(name), edge=_OF_TRIPLES if triples else _EXACT)
        if triples:
            yield graph(step(name), inputs=_each(TRIPLES))
    for name in ROUTES:
        triples = ROUTES.has(name, Trait.OF_TRIPLES)
        shapes: list[Shape] = ["keyed", "u64"] if ROUTES.has(name, Trait.NUMBERS) else ["keyed"]
        for shape in shapes:
            made = step(_REMEMBER if triples else _COUNT, route=name)
            edge = _OF_TRIPLES if triples else _EXACT
            yield _alone(made, edge=edge, partitions=(PartitionSpec(shape),), number=_NUMBER)
        if triples:
            yield graph(step(name), step(_REMEMBER), inputs=_each(TRIPLES))


def _states() -> Iterator[ConformanceCase]:
    """Yield cases of lists of keys, and of builders with the computations that alter in secret."""
    for name, listed in KEY_LISTS.items():
        partition = PartitionSpec("u64" if listed.u64 else "keyed", keys=name)
        made = step(_COUNT, route=listed.route)
        yield _alone(made, partitions=(partition,), number=_NUMBER)
    for builder, name in product(BUILDERS, (_COUNT, *STATEFUL.having(Trait.ALTERS_SILENTLY))):
        if name != _COUNT and BUILDERS.has(builder, Trait.DEEP):
            continue
        partitions = (PartitionSpec("keyed", builder),)
        yield _alone(step(name), partitions=partitions, inputs=_each(_FEW))


def _alone(*made: StepSpec, edge: _Edge = _EXACT, **fields: Any) -> ConformanceCase:
    """Return a row over all payloads; those that may end the run come last."""
    fields.setdefault("inputs", _each(TRIPLES if edge == _OF_TRIPLES else (*GOING_ON, ENDING[0])))
    return row(*made, decoder=edge[0], encoders=edge[1:], **fields)


def _each(payloads: Sequence[bytes]) -> tuple[Input, ...]:
    """Return payloads that arrive one after the other."""
    return tuple([Input(0, payload, at) for at, payload in enumerate(payloads)])
