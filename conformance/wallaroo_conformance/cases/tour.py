"""Cases that are the same in every check, because chance may leave them out.

Random cases combine everything with everything; but a short search may leave out the one payload
on which a fault of one operator shows. So each operator stands *alone*, in an application that does
nothing else unusual, over all payloads. The *tour* has these, and puts each operator where engines
do something unusual: behind a long row of multi computations, and at the end of a run that stops at
the first dead letter. *Pairs* have each operator right behind every other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, TypeAlias

from wallaroo_conformance.cases.building import used_by
from wallaroo_conformance.cases.case import (
    PARTITIONS,
    SOURCES,
    ConformanceCase,
    Input,
    PartitionSpec,
    Shape,
    SinkSpec,
    SourceSpec,
    StepSpec,
)
from wallaroo_conformance.cases.composing import graph, row, step, together
from wallaroo_conformance.cases.operators import (
    BUILDERS,
    DECODERS,
    ENCODERS,
    KEY_LISTS,
    ROUTES,
    STATE_COMPUTATIONS,
    STATE_MULTI_COMPUTATIONS,
    STATEFUL,
    STATELESS,
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

Edge: TypeAlias = tuple[str, str]
"""A decoder and an encoder."""

_TEXT, _LINE = SourceSpec.decoder, SinkSpec.encoder
_ANYTHING, _EXACT = "anything", "described"  # of any type; tells apart what looks alike
_OF_OTHERS = {Trait.OF_TRIPLES, Trait.OF_TOPIC}
_EDGES: tuple[Edge, ...] = ((_ANYTHING, _EXACT), (_TEXT, _LINE))
[_DECODER], [_ENCODER] = DECODERS.having(Trait.OF_TRIPLES), ENCODERS.having(Trait.OF_TRIPLES)
_OF_TRIPLES: Edge = (_DECODER, _ENCODER)
_STATES = tuple(STATEFUL)[: len(SOURCES)]  # the plainest
_REMEMBER, *_ = STATEFUL.having(Trait.OF_STEP)


# -- each operator alone -----------------------------------------------------------------------


def _plain_edges(ways: Sequence[Edge]) -> Iterator[ConformanceCase]:
    """Yield decoders with the encoders of some edges, and encoders with the decoders."""
    for decoder, encoder in product(DECODERS, ENCODERS):
        plain = decoder in [way[0] for way in ways] or encoder in [way[1] for way in ways]
        if plain and not _OF_OTHERS & (DECODERS.traits[decoder] | ENCODERS.traits[encoder]):
            yield _case(edge=(decoder, encoder))


def _in_both_forms(*made: StepSpec) -> tuple[ConformanceCase, ConformanceCase]:
    """Return a case of steps that take messages of three parts, in both forms of the API."""
    return _case(*made, edge=_OF_TRIPLES), graph(*made, inputs=_of(TRIPLES, times=True))


def of_topics() -> Iterator[ConformanceCase]:
    """Yield cases of what decodes records of Kafka, and of what encodes for it."""
    inputs = (Input(0, TRIPLES[0], what="tombstone"), *_of(TRIPLES, times=True))
    for decoder in DECODERS.having(Trait.OF_TOPIC):
        yield graph(inputs=inputs, sources=(SourceSpec(0, decoder, topic=1),))
    for encoder in ENCODERS.having(Trait.OF_TOPIC):
        yield replace(graph(inputs=_of(TRIPLES)), sinks=(SinkSpec(0, encoder, topic=3),))


def _steps(ways: Sequence[Edge]) -> Iterator[ConformanceCase]:
    """Yield cases of computations, partition functions, key extractors and lists of keys."""
    for name in STEPS:
        if STEPS.has(name, Trait.OF_TRIPLES):
            yield from _in_both_forms(step(name))
        else:
            yield from [_case(step(name), edge=edge) for edge in ways]
    for name in ROUTES:
        triples = ROUTES.has(name, Trait.OF_TRIPLES)
        shapes: list[Shape] = ["keyed", "u64"] if ROUTES.has(name, Trait.NUMBERS) else ["keyed"]
        for edge, shape in product([_OF_TRIPLES] if triples else ways, shapes):
            made = step(_REMEMBER if triples else _STATES[0], route=name)
            yield _case(made, edge=edge, partitions=(PartitionSpec(shape),))
        if triples:
            yield graph(step(name), step(_REMEMBER), inputs=_of(TRIPLES, times=True))
    for name, listed in KEY_LISTS.items():
        partitions = (PartitionSpec("u64" if listed.u64 else "keyed", keys=name),)
        yield _case(step(_STATES[0], route=listed.route), partitions=partitions)


def _case(*made: StepSpec, edge: Edge = _EDGES[0], **fields: Any) -> ConformanceCase:
    """Return a row over all payloads that end no run."""
    inputs = _of(TRIPLES if edge == _OF_TRIPLES else GOING_ON)
    return row(*made, decoder=edge[0], encoders=edge[1:], inputs=inputs, **fields)


def _of(payloads: Sequence[bytes], sources: int = 1, *, times: bool = False) -> tuple[Input, ...]:
    """Return payloads of sources in turn, which arrive one after the other, or all at once."""
    return tuple([Input(at % sources, payload, at * times) for at, payload in enumerate(payloads)])


# -- the tour ------------------------------------------------------------------------------------


_LAST = b"quit"  # ends the run where an operator listens to it
_ALL = (*GOING_ON, _LAST)
_FEW = _of((b"a", b"b a c", b"", b"y", b"zx", b"x", b"a"))
_HOLDING_LISTS = _of((b"(['a'], 1)", b"['b']", b"{'a': ['b']}"))
_TO_STOP_AT = _of((b"a", b"y", b"cy", b"ax", b"halt", b"a"))

[_ALTERING] = ENCODERS.having(Trait.ALTERS_MESSAGE)
_NARROW = tuple([name for name in STEPS.having(Trait.NARROW) if name in STATELESS])
_NUMBER = 5  # of partitions


def tour(tone: Tone) -> list[ConformanceCase]:
    """Return the tour's cases; `tame`: without the operators that make findings."""
    found = [*map(_with_an_end, _alone()), *_unusual(), *_siblings(), _named_alike()]
    found += [_many_frames(), _much_of_a_frame(), *of_topics()]
    return [_in_mode(case, tone) for case in found if tone == "any" or not _finds(case)]


def pairs(tone: Tone) -> list[ConformanceCase]:
    """Return cases that hold every pair of operators; `tame`: of those that make no findings.

    Some faults show only between two neighbours: an engine may hand on a message without a copy, or
    make one piece of code for both. A longer row would hold more pairs, but try fewer: messages
    that its first operators filter never reach its last.
    """
    each_its_own = (PartitionSpec("keyed"), PartitionSpec("keyed"))
    every = [
        row(step(one), step(other, partition=1), encoders=(_EXACT,), partitions=each_its_own)
        for one, other in product(STEPS.choices(tone), repeat=2)
    ]
    most = len(SOURCES)
    some = [every[at : at + most] for at in range(0, len(every), most)]
    cases = []
    for rows in some:
        payloads = [payload for payload in (b"a", b"b a c") for _ in rows]
        cases.append(_in_mode(together(rows, _of(payloads, len(rows))), tone))
    return cases


def _in_mode(case: ConformanceCase, tone: Tone) -> ConformanceCase:
    return case if tone == "any" else replace(case, isolation="trusting")


def _finds(case: ConformanceCase) -> bool:
    """Whether a case has an operator that makes findings."""
    return any(table.has(name, Trait.FINDING) for table, name in used_by(case))


def _alone() -> Iterator[ConformanceCase]:
    """Yield each operator alone, on several partitions if there are any."""
    for case in (*_plain_edges(_EDGES[:1]), *_steps(_EDGES[:1])):
        several = case.partitions[0].shape != "single"
        yield replace(case, number=_NUMBER if several else None)


def _with_an_end(case: ConformanceCase) -> ConformanceCase:
    return replace(case, inputs=(*case.inputs, Input(0, _LAST)))


def _unusual() -> Iterator[ConformanceCase]:
    """Yield each operator where engines do something unusual."""
    for decoder in DECODERS.choices("any"):
        yield _stopped(row(decoder=decoder))
    for encoder in ENCODERS.choices("any"):
        yield _all(encoders=(encoder, _LINE))
        yield _stopped(row(encoders=(_LINE, encoder)))
        deep = row(*_narrow(14), encoders=(encoder,), inputs=_FEW)
        yield deep
        yield replace(deep, on_error="stop")
    for operator in STATELESS.choices("any"):
        both = (_ALTERING, _EXACT)
        yield row(step(operator), decoder=_ANYTHING, encoders=both, inputs=_HOLDING_LISTS)
    for operator in STATEFUL.choices("any"):
        keyed = (PartitionSpec("keyed"),)
        yield _all(step(operator), decoder=_ANYTHING, encoders=(_EXACT,), partitions=keyed)
        # A later step visits, and alters, the same entity.
        last = next(iter(STATE_MULTI_COMPUTATIONS))
        yield _all(step(operator), step(StepSpec.operator), step(last), encoders=(_EXACT,))
    for operator in STEPS.choices("any"):
        behind = (*_narrow(6), step(operator))
        yield row(*behind, decoder="words", encoders=(_EXACT,), inputs=_FEW)
        yield _stopped(row(step(operator), encoders=()))
    for route in ROUTES.choices("any"):
        yield _stopped(row(step(_STATES[0], route=route)), "keyed")
    for builder in BUILDERS.choices("any"):
        for shape in ("keyed", "single"):
            partitions = (PartitionSpec(shape, builder),)
            sharing = [
                row(step(name), encoders=(_EXACT,), partitions=partitions) for name in _STATES
            ]
            yield together(sharing, _of(_ALL, len(sharing)))
        if not BUILDERS.has(builder, Trait.ENDS_THE_RUN):
            nested, partitions = (
                step(_STATES[0], route="nested"),
                (PartitionSpec("keyed", builder),),
            )
            yield _all(nested, decoder=_ANYTHING, encoders=(_EXACT,), partitions=partitions)
        for operator in STATE_COMPUTATIONS.having(Trait.ALTERS_SILENTLY):
            partitions = (PartitionSpec("single", builder),)
            yield row(step(operator), encoders=(_EXACT,), partitions=partitions, inputs=_FEW)


def _all(*steps: StepSpec, **fields: Any) -> ConformanceCase:
    """Return a row over all payloads."""
    return row(*steps, inputs=_of(_ALL), **fields)


def _narrow(length: int) -> list[StepSpec]:
    """Return a row of multi computations that hardly multiply what they get."""
    return [step(_NARROW[number % len(_NARROW)]) for number in range(length)]


def _stopped(case: ConformanceCase, shape: Shape = "single") -> ConformanceCase:
    partitions = (PartitionSpec(shape),)
    return replace(case, partitions=partitions, inputs=_TO_STOP_AT, on_error="stop")


def _siblings() -> Iterator[ConformanceCase]:
    """Yield cases in which instances of one class stand beside one another."""
    for encoders in ENCODERS.siblings():
        yield row(encoders=encoders, inputs=_FEW)
    for operators in STEPS.siblings():
        yield row(*[step(operator) for operator in operators], inputs=_FEW)
    for decoders, routes in product(DECODERS.siblings(), ROUTES.siblings()):
        steps = [step(_STATES[0], partition=at, route=name) for at, name in enumerate(routes)]
        partitions = (PartitionSpec("keyed"),) * len(steps)
        rows = [
            row(*steps, decoder=decoder, encoders=(_EXACT,), partitions=partitions)
            for decoder in decoders
        ]
        yield together(rows, _of((b"abc", b"\xe9", b"\xe9"), len(rows)))
    for builders in BUILDERS.siblings():
        partitions = tuple([PartitionSpec("single", builder) for builder in builders])
        readers = [step(_STATES[2], partition=number) for number in range(len(builders))]
        yield row(*readers, partitions=partitions, inputs=_FEW)


def _named_alike() -> ConformanceCase:
    """Return a case with all the state partitions whose names careless code may mix up."""
    steps = [step(_STATES[0], partition=number) for number in range(len(PARTITIONS))]
    return row(*steps, partitions=(PartitionSpec(),) * len(steps), inputs=_FEW)


def _many_frames() -> ConformanceCase:
    """Return a case with hundreds of frames; every other is a dead letter."""
    texts = [b"%s%d" % (b"x" if number % 2 else b"a", number) for number in range(300)]
    return row(step("refuse"), inputs=_of(texts))


def _much_of_a_frame() -> ConformanceCase:
    """Return a case in which a frame gives hundreds of items, entities, dead letters, or 70 KB."""
    steps = (step("thousands"), step(_STATES[0]), step("refuse"))
    rows = (row(*steps, partitions=(PartitionSpec("keyed"),)), row(decoder="literal"))
    large = b"a" * 70_000
    inputs = (*_of((b"many", b"x" * 300)), Input(1, large), Input(2, large))
    return together((*rows, row()), inputs)
