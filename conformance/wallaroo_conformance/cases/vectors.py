"""Vectors as cases: each operator in a small application of its own, with nothing else unusual.

For engines in other languages, whose operators are written anew. An operator stands beside the
plainest of the other kinds; there are several choices of these, since an engine may have only some.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from wallaroo_conformance.cases.case import (
    ConformanceCase,
    Input,
    PartitionSpec,
    Shape,
    SinkSpec,
    SourceSpec,
    StepSpec,
    WindowSpec,
)
from wallaroo_conformance.cases.composing import TIMED_SOURCE, graph, row, step
from wallaroo_conformance.cases.operators import (
    AGGREGATIONS,
    BUILDERS,
    COMBINING,
    DECODERS,
    ENCODERS,
    EVENT_TIMES,
    GRAPH,
    KEY_LISTS,
    ROUTES,
    STATEFUL,
    STATELESS,
    STEPS,
    U64_KEY_LISTS,
    Trait,
)
from wallaroo_conformance.cases.operators.marks import ENDS_THE_RUN, MARKS
from wallaroo_conformance.cases.payloads import PAYLOADS

ENDING = (b"quit", b"'quit'", b"halt")
"""Payloads at which some operators end the run: nothing comes behind them."""
GOING_ON = tuple([payload for payload in PAYLOADS if payload not in ENDING])

_DIGITS = range(6)  # what a mark does depends on the number before it, at most modulo 6
TRIPLES = (
    *(b"a 5 m", b"b 6 mm", b"a 7 m", b"c x m", b"a yes m", b"a half m", b"b 7 'm", b"a 5 ", b"a 5"),
    *[f"{'abc'[n % 3]} {n} {n}{mark}".encode() for mark in MARKS for n in _DIGITS],
)
"""Payloads of messages of three parts, with each mark."""

_TEXT, _LINE = SourceSpec.decoder, SinkSpec.encoder
[_ANYTHING] = DECODERS.having(Trait.ANY_TYPE)
[_EXACT] = ENCODERS.having(Trait.EXACT)
[_TRIPLE], [_TRIPLE_LINE] = DECODERS.having(Trait.OF_TRIPLES), ENCODERS.having(Trait.OF_TRIPLES)
_OF_OTHERS = {Trait.OF_TRIPLES, Trait.OF_TOPIC}
_EDGES = ((_ANYTHING, _EXACT), (_TEXT, _LINE))
_STATES = tuple(STATEFUL)[:3]  # the plainest
_REMEMBER, *_ = STATEFUL.having(Trait.OF_STEP)
_TEXTS = next(iter(AGGREGATIONS))
_WINDOWS = (WindowSpec(), WindowSpec("count", 2), WindowSpec("session", 5))
_SLIDING = WindowSpec(size=20, slide=10)


def edges() -> list[ConformanceCase]:
    """Return cases of decoders and encoders alone."""
    found = [_case(decoder=one, encoder=other) for one, other in _plain_edges()]
    found += [_case(triples=True), graph(inputs=_of(TRIPLES, times=True)), *of_topics()]
    return [each for case in found for each in (case, *_ends_of(case))]


def _plain_edges() -> Iterator[tuple[str, str]]:
    for decoder, encoder in product(DECODERS, ENCODERS):
        plain = decoder in (_TEXT, _ANYTHING) or encoder in (_LINE, _EXACT)
        special = _OF_OTHERS & (DECODERS.traits[decoder] | ENCODERS.traits[encoder])
        if plain and not special:
            yield decoder, encoder


def of_topics() -> Iterator[ConformanceCase]:
    """Yield cases of what decodes records of Kafka, and of what encodes for it."""
    inputs = (Input(0, TRIPLES[0], what="tombstone"), *_of(TRIPLES, times=True))
    for decoder in DECODERS.having(Trait.OF_TOPIC):
        yield graph(inputs=inputs, sources=(SourceSpec(0, decoder, topic=1),))
    for encoder in ENCODERS.having(Trait.OF_TOPIC):
        yield replace(graph(inputs=_of(TRIPLES)), sinks=(SinkSpec(0, encoder, topic=3),))


def steps() -> list[ConformanceCase]:
    """Return cases of the operators of steps, each with what it needs."""
    found = [*_of_steps(), *_of_keys(), *_of_builders()]
    return [*[each for case in found for each in (case, *_ends_of(case))], *_timed()]


def _of_steps() -> Iterator[ConformanceCase]:
    for name in STEPS:
        made = step(name)
        if STEPS.has(name, Trait.OF_TRIPLES):
            yield _case(made, triples=True)
            yield graph(made, inputs=_of(TRIPLES, times=True))
            continue
        for decoder, encoder in _EDGES:
            yield _case(made, decoder=decoder, encoder=encoder)


def _of_keys() -> Iterator[ConformanceCase]:
    for name in ROUTES:
        if ROUTES.has(name, Trait.OF_TRIPLES):
            partitions = (PartitionSpec("keyed"),)
            yield _case(step(_REMEMBER, route=name), triples=True, partitions=partitions)
            yield graph(step(name), step(_REMEMBER), inputs=_of(TRIPLES, times=True))
            continue
        shapes: list[Shape] = ["keyed", "u64"] if ROUTES.has(name, Trait.NUMBERS) else ["keyed"]
        for (decoder, encoder), shape in product(_EDGES, shapes):
            made, partitions = step(_STATES[0], route=name), (PartitionSpec(shape),)
            yield _case(made, decoder=decoder, encoder=encoder, partitions=partitions)
    for name, listed in (*KEY_LISTS.items(), *U64_KEY_LISTS.items()):
        partitions = (PartitionSpec("keyed" if name in KEY_LISTS else "u64", keys=name),)
        yield _case(step(_STATES[0], route=listed.route), partitions=partitions)


def _of_builders() -> Iterator[ConformanceCase]:
    for name, operator, (decoder, encoder) in product(BUILDERS, _STATES, _EDGES):
        partitions = (PartitionSpec("single", name),)
        yield _case(step(operator), decoder=decoder, encoder=encoder, partitions=partitions)


def _timed() -> Iterator[ConformanceCase]:
    """Yield cases of event times and aggregations: of few messages, which windows tie together."""
    for time in EVENT_TIMES:
        topic = int(EVENT_TIMES.has(time, Trait.OF_TOPIC))
        source = replace(TIMED_SOURCE, event_time=time, topic=topic)
        for payload in TRIPLES:
            made = step(_TEXTS, window=WindowSpec())
            yield graph(made, inputs=_of((payload,), times=True), sources=(source,))
    texts = ["m", *[f"1{mark}" for mark in MARKS], f"1u{ENDS_THE_RUN}"]
    rows = [("m",), *[(one, other) for text in texts for one, other in (("m", text), (text, "m"))]]
    for name in AGGREGATIONS:
        windows = [one for one in _WINDOWS if one.kind != "session" or name in COMBINING]
        windows += [_SLIDING] * (name in COMBINING)
        for window, texts_of_row in product(windows, rows):
            # With sliding windows they are in two panes.
            apart = 10 if window.slide else 1
            payloads = [f"a {5 + apart * at} {text}" for at, text in enumerate(texts_of_row)]
            inputs = _of([payload.encode() for payload in payloads], times=True)
            yield graph(step(name, window=window), inputs=inputs)


def operators_of(case: ConformanceCase) -> tuple[str, ...]:
    """Return the names of the operators in a case, of what it must be able to do last."""
    names: list[str] = []
    for one in case.steps:
        if one.operator in STATEFUL:
            spec = case.partitions[one.partition]
            names.append(spec.builder)
            routed = case.form == "builder" and spec.shape != "single"
            names += [spec.keys] if spec.keys and routed else []
        else:
            routed = case.form == "builder" and one.window is not None and one.route is not None
        names += [str(one.route)] * routed
        names += [one.operator] * (one.operator not in GRAPH)
    edge = [name for one in case.sources for name in (one.decoder, one.event_time or "")]
    return tuple(dict.fromkeys(filter(None, [*names, *edge, *[one.encoder for one in case.sinks]])))


def one_by_one(case: ConformanceCase) -> list[ConformanceCase]:
    """Return a case for each message of `case` alone; to a state it comes twice."""
    times = 1 if all(one.operator in STATELESS for one in case.steps) else 2
    return [replace(case, inputs=(one,) * times) for one in dict.fromkeys(case.inputs)]


def _case(
    *made: StepSpec,
    decoder: str = _ANYTHING,
    encoder: str = _EXACT,
    triples: bool = False,
    **fields: Any,
) -> ConformanceCase:
    if triples:
        decoder, encoder = _TRIPLE, _TRIPLE_LINE
    inputs = _of(TRIPLES if triples else GOING_ON)
    return row(*made, decoder=decoder, encoders=(encoder,), inputs=inputs, **fields)


def _of(payloads: Any, *, times: bool = False) -> tuple[Input, ...]:
    """Return payloads as records that arrive one after the other, or all at once."""
    return tuple([Input(0, payload, at if times else 0) for at, payload in enumerate(payloads)])


def _ends_of(case: ConformanceCase) -> list[ConformanceCase]:
    """Return cases with payloads that may end the run, which come last."""
    first, *_ = case.inputs
    if not case.timed:
        payloads: Iterable[bytes] = ENDING
    elif case.steps:
        payloads = [f"a 1 1{mark}{ENDS_THE_RUN}".encode() for mark in "kdbs"]
    else:
        payloads = [f"a 1 1{mark}{ENDS_THE_RUN}".encode() for mark in "ew"]
    return [
        replace(case, inputs=(first, replace(case.inputs[-1], payload=payload)))
        for payload in payloads
    ]
