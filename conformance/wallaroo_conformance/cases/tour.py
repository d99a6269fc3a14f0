"""The tour: cases that are the same in every search, because chance may leave them out.

Random cases combine everything with everything; but a short search may leave out the one payload
on which a fault of one operator shows. The tour leaves out none. It has each operator in a pipeline
that does nothing else, over all payloads, and each right behind every other. With few payloads it
also puts each operator where engines do something unusual: behind a long row of multi computations,
and at the end of a run that stops at the first dead letter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

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
from wallaroo_conformance.cases.composing import row, step, together
from wallaroo_conformance.cases.operators import (
    BUILDERS,
    DECODERS,
    ENCODERS,
    KEY_LISTS,
    ROUTES,
    STATE_MULTI_COMPUTATIONS,
    STATEFUL,
    STATELESS,
    STEPS,
    U64_KEY_LISTS,
    Tone,
    Trait,
)
from wallaroo_conformance.cases.operators.stateful import STATE_COMPUTATIONS
from wallaroo_conformance.cases.payloads import PAYLOADS

_LAST = b"quit"  # ends the run where an operator listens to it


def _inputs(*payloads: bytes, sources: int = 1) -> tuple[Input, ...]:
    return tuple([Input(at % sources, payload) for at, payload in enumerate(payloads)])


_PAYLOADS = (*[payload for payload in PAYLOADS if payload not in (_LAST, b"halt")], _LAST)
_FEW = _inputs(b"a", b"b a c", b"", b"y", b"zx", b"x", b"a")
_HOLDING_LISTS = _inputs(b"(['a'], 1)", b"['b']", b"{'a': ['b']}")
_TO_STOP_AT = _inputs(b"a", b"y", b"cy", b"ax", b"halt", b"a")

_TEXT, _LINE = SourceSpec.decoder, SinkSpec.encoder
[_ANYTHING] = DECODERS.having(Trait.ANY_TYPE)
[_ALTERING] = ENCODERS.having(Trait.ALTERS_MESSAGE)
[_EXACT] = ENCODERS.having(Trait.EXACT)
_STATEFUL = tuple(STATEFUL)[: len(SOURCES)]  # the plainest
_NARROW = tuple([name for name in STEPS.having(Trait.NARROW) if name in STATELESS])
[_NESTED] = ROUTES.having(Trait.TUPLES)
[_LISTS] = DECODERS.having(Trait.LISTS)
[_MANY] = STEPS.having(Trait.MANY)
[_REFUSING] = STEPS.having(Trait.REFUSES)
[_REFUSING_DECODER] = DECODERS.having(Trait.REFUSES)
_NUMBER = 5  # of partitions


def tour(tone: Tone) -> list[ConformanceCase]:
    """Return the tour's cases; `tame`: without the operators that make findings."""
    return [_in_mode(case, tone) for case in _cases(tone)]


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
        cases.append(_in_mode(together(rows, _inputs(*payloads, sources=len(rows))), tone))
    return cases


def _in_mode(case: ConformanceCase, tone: Tone) -> ConformanceCase:
    return case if tone == "any" else replace(case, isolation="trusting")


def _cases(tone: Tone) -> Iterator[ConformanceCase]:
    for decoder in DECODERS.choices(tone):
        yield _all(decoder=decoder, encoders=(_EXACT,))
        yield _stopped(row(decoder=decoder))
    for encoder in ENCODERS.choices(tone):
        yield _all(decoder=_ANYTHING, encoders=(encoder,))
        yield _all(encoders=(encoder, _LINE))
        yield _stopped(row(encoders=(_LINE, encoder)))
        deep = row(*_narrow(14), encoders=(encoder,), inputs=_FEW)
        yield deep
        yield replace(deep, on_error="stop")
    for operator in STATELESS.choices(tone):
        yield _all(step(operator), decoder=_ANYTHING, encoders=(_EXACT,))
        if tone == "any":
            both = (_ALTERING, _EXACT)
            yield row(step(operator), decoder=_ANYTHING, encoders=both, inputs=_HOLDING_LISTS)
    for operator in STATEFUL.choices(tone):
        yield _with_state(operator, PartitionSpec("keyed"))
        # A later step visits, and alters, the same entity.
        last = next(iter(STATE_MULTI_COMPUTATIONS))
        yield _all(step(operator), step(StepSpec.operator), step(last), encoders=(_EXACT,))
    for operator in STEPS.choices(tone):
        steps = (*_narrow(6), step(operator))
        yield row(*steps, decoder=_LISTS, encoders=(_EXACT,), inputs=_FEW)
        yield _stopped(row(step(operator), encoders=()))
    for route in ROUTES.choices(tone):
        yield _with_state(_STATEFUL[0], PartitionSpec("keyed"), route)
        yield _stopped(row(step(_STATEFUL[0], route=route)), "keyed")
        if ROUTES.has(route, Trait.NUMBERS):
            yield _with_state(_STATEFUL[0], PartitionSpec("u64"), route)
    shapes: tuple[tuple[Shape, Any], ...] = (("keyed", KEY_LISTS), ("u64", U64_KEY_LISTS))
    for shape, lists in shapes:
        for name, listed in lists.items():
            yield _with_state(_STATEFUL[0], PartitionSpec(shape, keys=name), listed.route)
    for builder in BUILDERS.choices(tone):
        for shape in ("keyed", "single"):
            partitions = (PartitionSpec(shape, builder),)
            sharing = [
                row(step(name), encoders=(_EXACT,), partitions=partitions) for name in _STATEFUL
            ]
            yield together(sharing, _inputs(*_PAYLOADS, sources=len(sharing)))
        if not BUILDERS.has(builder, Trait.ENDS_THE_RUN):
            yield _with_state(_STATEFUL[0], PartitionSpec("keyed", builder), _NESTED)
        for operator in STATE_COMPUTATIONS.choices(tone):
            if STATE_COMPUTATIONS.has(operator, Trait.ALTERS_SILENTLY):
                yield row(step(operator), encoders=(_EXACT,), partitions=partitions, inputs=_FEW)
    yield from _siblings()
    yield _named_alike()
    yield _many_frames()
    yield _much_of_a_frame()


def _all(*steps: StepSpec, **fields: Any) -> ConformanceCase:
    """Return a row over all payloads."""
    return row(*steps, inputs=_inputs(*_PAYLOADS), **fields)


def _with_state(
    operator: str, partition: PartitionSpec, route: str | None = StepSpec.route
) -> ConformanceCase:
    how: dict[str, Any] = {"partitions": (partition,), "number": _NUMBER}
    made = step(operator, route=route)
    return _all(made, decoder=_ANYTHING, encoders=(_EXACT,), **how)


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
        steps = [step(_STATEFUL[0], partition=at, route=name) for at, name in enumerate(routes)]
        partitions = (PartitionSpec("keyed"),) * len(steps)
        rows = [
            row(*steps, decoder=decoder, encoders=(_EXACT,), partitions=partitions)
            for decoder in decoders
        ]
        yield together(rows, _inputs(b"abc", b"\xe9", b"\xe9", sources=len(rows)))
    for builders in BUILDERS.siblings():
        partitions = tuple([PartitionSpec("single", builder) for builder in builders])
        readers = [step(_STATEFUL[2], partition=number) for number in range(len(builders))]
        yield row(*readers, partitions=partitions, inputs=_FEW)


def _named_alike() -> ConformanceCase:
    """Return a case with all the state partitions whose names careless code may mix up."""
    steps = [step(_STATEFUL[0], partition=number) for number in range(len(PARTITIONS))]
    return row(*steps, partitions=(PartitionSpec(),) * len(steps), inputs=_FEW)


def _many_frames() -> ConformanceCase:
    """Return a case with hundreds of frames; every other is a dead letter."""
    texts = [b"%s%d" % (b"x" if number % 2 else b"a", number) for number in range(300)]
    return row(step(_REFUSING), inputs=_inputs(*texts))


def _much_of_a_frame() -> ConformanceCase:
    """Return a case in which a frame gives hundreds of items, entities, dead letters, or 70 KB."""
    steps = (step(_MANY), step(_STATEFUL[0]), step(_REFUSING))
    rows = (row(*steps, partitions=(PartitionSpec("keyed"),)), row(decoder=_REFUSING_DECODER))
    large = b"a" * 70_000
    inputs = (*_inputs(b"many", b"x" * 300), Input(1, large), Input(2, large))
    return together((*rows, row()), inputs)
