"""All one-step reductions of a case, each of them a simpler case.

A slow engine answers hundreds of cases in one job almost as fast as a single case. So a failure is
not reduced one attempt after the other: everything that can be tried goes into one job, and the
next job begins with the simplest case that still fails.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, Final, TypeAlias, TypeVar

from wallaroo_conformance.cases.case import (
    ConformanceCase,
    Input,
    PartitionSpec,
    Shape,
    SinkSpec,
    SourceSpec,
    StepSpec,
    WindowSpec,
    fitting,
)
from wallaroo_conformance.cases.graph import moves
from wallaroo_conformance.cases.operators import (
    AGGREGATIONS,
    BUILDERS,
    COMPUTATIONS,
    DECODERS,
    ENCODERS,
    EVENT_TIMES,
    GRAPH,
    KEY_LISTS,
    KEYS,
    MULTI_COMPUTATIONS,
    ROUTES,
    STATE_COMPUTATIONS,
    STATE_MULTI_COMPUTATIONS,
    STATEFUL,
    STEPS,
    Trait,
    key_lists,
)
from wallaroo_conformance.cases.operators.common import PAYLOADS
from wallaroo_conformance.cases.operators.marks import ENDS_THE_RUN, MARKS
from wallaroo_conformance.cases.operators.triples import own_time

S = TypeVar("S", SourceSpec, StepSpec, WindowSpec, PartitionSpec, Input, ConformanceCase)
T = TypeVar("T")

Size: TypeAlias = tuple[int, ...]

_LATER: Final = 840
"""Nanoseconds: a whole number of all the ranges and slides that cases have."""
_PARTS = 3  # of a triple
_SHAPES: Final[tuple[Shape, ...]] = ("single", "keyed", "u64")
_KINDS: Final = tuple(
    [
        table.choices("any", triples=triples)
        for triples in (False, True)
        for table in (
            COMPUTATIONS,
            MULTI_COMPUTATIONS,
            STATE_COMPUTATIONS,
            STATE_MULTI_COMPUTATIONS,
        )
    ]
)
"""Computations of one kind, those for messages of three parts behind the others."""
_RANK: Final[dict[Any, int]] = {
    name: rank
    for names in (
        *([name for kind in _KINDS for name in kind] + [*KEYS, *GRAPH, *AGGREGATIONS],),
        *(
            DECODERS,
            [None, *EVENT_TIMES],
            ENCODERS,
            [None, *ROUTES],
            BUILDERS,
            KEY_LISTS,
        ),
        *(_SHAPES, ("range", "session", "count")),
    )
    for rank, name in enumerate(names)
}
"""By its name, how far an operator, or whatever else a spec names, is from the plainest."""
_PAYLOAD_RANK: Final = {payload: rank for rank, payload in enumerate(PAYLOADS)}
_PLAIN: Final[dict[type, Any]] = {
    **{spec: spec() for spec in (SourceSpec, SinkSpec, PartitionSpec, WindowSpec)},
    StepSpec: StepSpec(0),
}
[_TRIPLE_DECODER], [_TRIPLE_ENCODER] = (
    table.having(Trait.OF_TRIPLES) for table in (DECODERS, ENCODERS)
)
_SETTINGS: Final = ("form", "ended", "codec", "batches", "number", "on_error", "small")
_COUNTED: Final[dict[type, tuple[str, ...]]] = {
    SourceSpec: ("event_time", "idle_after", "max_ahead", "generator", "topic"),
    StepSpec: ("parallel",),
    SinkSpec: ("topic",),
    PartitionSpec: ("keys",),
    WindowSpec: ("slide", "delay", "late", "timeout"),
}
"""The fields that count if they are not as usual."""


def reductions(case: ConformanceCase) -> list[ConformanceCase]:
    """Return every case that is one step simpler, simplest first, without repetitions."""
    own = size(case)
    found = {reduced: size(reduced) for reduced in map(_fitted, _reductions(case))}
    return sorted(
        [one for one in found if found[one] < own and _names_are_unique(one)],
        key=lambda one: found[one],
    )


def size(case: ConformanceCase) -> Size:
    """Return how complicated a case is; compares as tuples do.

    What a person must read counts first: records, nodes, and all that is not as usual. Then come
    names, by their places in their tables, texts, and numbers.
    """
    windows = [step.window for step in case.steps if step.window is not None]
    specs = (*case.sources, *case.steps, *case.sinks, *case.partitions, *windows)
    return (
        3 * len(case.inputs)
        + 2 * (len(case.steps) + len(windows))
        + 2 * sum([step.operator == "merge" for step in case.steps])  # as much as a step behind it
        + 3 * len(case.sources)
        + (len(case.sinks) or 2)
        + _unusual(case, ConformanceCase(), _SETTINGS)
        + sum([_unusual(spec, _PLAIN[type(spec)], _COUNTED[type(spec)]) for spec in specs])
        + any(spec.expire_after is not None for spec in case.partitions)
        + 2 * any(_exits(entry) for entry in case.inputs)
        + (case.inputs != _never_back(case.inputs)),
        len(case.batches or ()) + len(case.partitions),
        sum([_RANK.get(value, 0) for spec in specs for value in vars(spec).values()]),
        sum(map(_payload_size, case.inputs)),
        sum(map(_numbers, case.inputs)) + (case.number or 0),
        sum([entry.source + entry.partition for entry in case.inputs])
        + sum([source.id for source in case.sources])
        + sum([step.id + sum(step.origins) + step.partition for step in case.steps])
        + sum([spec.expire_after or 0 for spec in case.partitions]),
    )


def _fitted(case: ConformanceCase) -> ConformanceCase:
    """Return the case with records that its sources can give."""
    inputs = tuple([fitting(entry, case.sources) for entry in case.inputs])
    return case if inputs == case.inputs else replace(case, inputs=inputs)


def _names_are_unique(case: ConformanceCase) -> bool:
    """Whether each step can have a name of its own, which graphs want (graph-5)."""
    if case.form == "builder":
        return True
    names = [step.operator for step in case.steps if step.operator in STEPS]
    fixed = [name for name in names if not STEPS.has(name, Trait.OF_STEP)]
    return len(set(fixed)) == len(fixed)


def _reductions(case: ConformanceCase) -> Iterator[ConformanceCase]:
    yield from _without_inputs(case)
    yield from moves(case)
    for index, step in enumerate(case.steps):
        for simpler in _steps(case, step):
            yield replace(case, steps=_put(case.steps, index, simpler))
    for number, source in enumerate(case.sources):
        for simple in _sources(source):
            yield replace(case, sources=_put(case.sources, number, simple))
    yield from _sinks(case)
    yield from _partitions(case)
    triples = {
        one.id for one in case.sources if one.topic or DECODERS.has(one.decoder, Trait.OF_TRIPLES)
    }
    for index, entry in enumerate(case.inputs):
        payloads = _triples(entry) if entry.source in triples else _payloads(entry)
        plainer = [replace(entry, payload=payload) for payload in payloads]
        for one in (*plainer, *_entries(entry, case.sources[0].id)):
            yield replace(case, inputs=_put(case.inputs, index, one))
    yield from _times(case)
    yield from _runs(case)


def _without_inputs(case: ConformanceCase) -> Iterator[ConformanceCase]:
    count = length = len(case.inputs)
    while length:
        for start in range(0, count, length):
            left = case.inputs[:start] + case.inputs[start + length :]
            yield replace(case, inputs=left)
            if not case.small and 4 * length >= count:  # fewer may be enough for small thresholds
                yield replace(case, inputs=left, small=True)
            # Without this record, later batch boundaries move: also try them at their old places.
            if case.batches is not None and length == 1:
                yield replace(case, inputs=left, batches=_batches_without(case.batches, start))
        length //= 2


def _batches_without(batches: tuple[int, ...], position: int) -> tuple[int, ...] | None:
    for index, end in enumerate(accumulate(batches)):
        if position < end:
            smaller = _put(batches, index, batches[index] - 1)
            return tuple([one for one in smaller if one]) or None
    return batches


def _steps(case: ConformanceCase, step: StepSpec) -> Iterator[StepSpec]:
    if step.operator == "merge":
        return
    for name in _operators(step.operator):
        if case.form == "builder" or name not in STATEFUL or STEPS.has(name, Trait.OF_STEP):
            route = step.route or StepSpec.route
            yield replace(step, operator=name, route=route, window=None)
    yield from _plainer(step, _PLAIN[StepSpec], _COUNTED[StepSpec])
    if step.route is not None:
        for route in _simpler(tuple(ROUTES), step.route):
            yield replace(step, route=route)
    if step.window is not None:
        yield replace(step, route=None)
        for name in _simpler(tuple(AGGREGATIONS), step.operator):
            yield replace(step, operator=name)
        for window in _windows(step.window):
            yield replace(step, window=window)


def _operators(name: str) -> Iterator[str]:
    """Yield simpler operators, for messages of the same form."""
    half = len(_KINDS) // 2
    triples = name not in STEPS or STEPS.has(name, Trait.OF_TRIPLES)
    for kind in _KINDS[half:] if triples else _KINDS[:half]:
        yield from _simpler(kind, name) or kind[:1]
    if name in KEYS:
        yield next(iter(KEYS))


def _windows(window: WindowSpec) -> Iterator[WindowSpec]:
    yield from _plainer(window, _PLAIN[WindowSpec], _COUNTED[WindowSpec])
    if window.slide is not None:
        yield replace(window, size=window.slide, slide=None)
    if window.kind == "count":
        if window.size > 1:
            yield replace(window, size=window.size - 1)
        yield WindowSpec()
    if window.kind == "session":
        yield replace(window, kind="range")


def _sources(source: SourceSpec) -> Iterator[SourceSpec]:
    # All decoders: one decoder's messages are seldom halfway to another's.
    for decoder in tuple(DECODERS)[: _RANK[source.decoder]]:
        if not source.generator or DECODERS.has(decoder, Trait.OF_VALUES):
            yield replace(source, decoder=decoder)
    if source.topic:
        received = None if source.event_time is None else own_time.__name__
        yield replace(source, topic=0, decoder=_TRIPLE_DECODER, event_time=received)
        yield replace(source, topic=source.topic - 1 or 1)
    yield from _plainer(
        source, replace(_PLAIN[SourceSpec], topic=source.topic), _COUNTED[SourceSpec]
    )
    if source.event_time is not None:
        yield replace(source, event_time=own_time.__name__)


def _sinks(case: ConformanceCase) -> Iterator[ConformanceCase]:
    if not case.sinks:
        last = case.steps[-1].id if case.steps else case.sources[-1].id
        yield replace(case, sinks=(SinkSpec(last),))
    for index, sink in enumerate(case.sinks):
        yield replace(case, sinks=_without(case.sinks, index))
        plainer = [replace(sink, encoder=one) for one in _simpler(tuple(ENCODERS), sink.encoder)]
        if sink.topic:
            plainer += [replace(sink, topic=1), SinkSpec(sink.origin, _TRIPLE_ENCODER)]
        for one in plainer:
            yield replace(case, sinks=_put(case.sinks, index, one))


def _partitions(case: ConformanceCase) -> Iterator[ConformanceCase]:
    for index, spec in enumerate(case.partitions):
        if len(case.partitions) > 1:
            steps = [
                replace(step, partition=max(step.partition - (step.partition >= index), 0))
                for step in case.steps
            ]
            left = _without(case.partitions, index)
            yield replace(case, partitions=left, steps=tuple(steps))
        simpler = [replace(spec, builder=name) for name in _simpler(tuple(BUILDERS), spec.builder)]
        simpler += _plainer(spec, PartitionSpec(), ("keys", "expire_after"))
        if spec.keys is not None:
            lists = key_lists(spec.shape)
            simpler += [replace(spec, keys=keys) for keys in lists[: lists.index(spec.keys)]]
        shapes = _SHAPES[: _SHAPES.index(spec.shape)]
        simpler += [replace(spec, shape=shape, keys=None) for shape in shapes]
        for one in simpler:
            yield replace(case, partitions=_put(case.partitions, index, one))


def _payloads(entry: Input) -> Iterator[bytes]:
    payload = entry.payload
    yield from PAYLOADS[:3]
    yield from [mark for mark in (b"x", b"y", b"z") if mark in payload]
    yield from (payload[: len(payload) // 2], payload[:-1], payload[1:])


def _triples(entry: Input) -> Iterator[bytes]:
    parts = entry.payload.decode("latin-1").split(" ")
    if len(parts) != _PARTS:
        yield b"a 1 m"
        return
    letter, time, text = parts
    shorter = [text[-length:] for length in (1, 2) if len(text) > length]
    earlier = [str(int(time) - 10)] if time.isdigit() and int(time) > 9 else []
    for simpler in (
        *(("a", time, text), (letter, "1", text)),  # 0 is a special time
        *((letter, time, "m"), (letter, time, "x")),
        *[(letter, time, one) for one in shorter],
        *[(letter, one, text) for one in earlier],
    ):
        yield " ".join(simpler).encode("latin-1")


def _entries(entry: Input, first: int) -> Iterator[Input]:
    if entry.what != "tick":
        yield Input(at=entry.at, what="tick")
        yield replace(entry, source=first)
    if entry.what == "tombstone":
        yield replace(entry, what="frame")
    if entry.what in ("failed", "exited"):
        yield replace(entry, what="end" if entry.what == "failed" else "failed")
    else_empty = () if entry.what == "frame" else ("payload",)
    yield from _plainer(entry, Input(), ("at", "partition", *else_empty))


def _times(case: ConformanceCase) -> Iterator[ConformanceCase]:
    """Move all arrival times to the one before, or the whole log to the beginning."""
    earliest = min([entry.at for entry in case.inputs], default=0)
    yield _with_arrivals(case, [entry.at - earliest for entry in case.inputs])
    yield _with_arrivals(case, [0 for _ in case.inputs])
    yield replace(case, inputs=_never_back(case.inputs))
    # All times as early as they can be, the same in all windows.
    times = [time_of(entry) for entry in case.inputs]
    known = [time for time in times if time is not None]
    gone = min([*known, *[one.at for one in case.inputs]], default=0) // _LATER * _LATER
    moved = [
        with_time(replace(entry, at=entry.at - gone), (time or 0) - gone)
        for entry, time in zip(case.inputs, times, strict=True)
    ]
    yield replace(case, inputs=tuple(moved))


def _with_arrivals(case: ConformanceCase, times: Sequence[int]) -> ConformanceCase:
    pairs = zip(case.inputs, times, strict=True)
    return replace(case, inputs=tuple([replace(entry, at=at) for entry, at in pairs]))


def _runs(case: ConformanceCase) -> Iterator[ConformanceCase]:
    graph = any(step.operator in (*GRAPH, *KEYS) for step in case.steps)
    settings = _SETTINGS[graph or case.plain_row is None :]  # a graph has no other form
    yield from _plainer(case, ConformanceCase(), settings)
    if any(_exits(entry) for entry in case.inputs):  # a stop is plainer
        kept = [entry.payload.replace(ENDS_THE_RUN.encode(), b"") for entry in case.inputs]
        pairs = zip(case.inputs, kept, strict=True)
        inputs = tuple([replace(entry, payload=payload) for entry, payload in pairs])
        yield replace(case, on_error="stop", inputs=inputs)
    if case.batches is not None:
        yield replace(case, batches=(1,))
        for index in range(len(case.batches)):
            yield replace(case, batches=_without(case.batches, index) or None)
    if case.number is not None:
        yield replace(case, number=2)


def time_of(entry: Input) -> int | None:
    """Return the event time in a triple, if there is one."""
    parts = entry.payload.decode("latin-1").split(" ")
    has_time = entry.what == "frame" and len(parts) == _PARTS and parts[1].isdigit()
    return int(parts[1]) if has_time else None


def with_time(entry: Input, time: int) -> Input:
    """Return a triple with another event time, if there is one."""
    if time_of(entry) is None:
        return entry
    letter, _, text = entry.payload.decode("latin-1").split(" ")
    return replace(entry, payload=f"{letter} {time} {text}".encode("latin-1"))


def _never_back(entries: tuple[Input, ...]) -> tuple[Input, ...]:
    """Return the records with the arrival times that count, which do not decrease (time-1)."""
    times = accumulate([entry.at for entry in entries], max)
    pairs = zip(entries, times, strict=True)
    return tuple([one if one.at == at else replace(one, at=at) for one, at in pairs])


def _exits(entry: Input) -> bool:
    return ENDS_THE_RUN.encode() in entry.payload


def _unusual(spec: object, plain: object, names: Sequence[str]) -> int:
    """Return how many fields of a spec have other values than those of a plain one."""
    return sum([getattr(spec, name) != getattr(plain, name) for name in names])


def _plainer(spec: S, plain: S, names: Sequence[str]) -> Iterator[S]:
    """Yield a spec with one of the fields as a plain one has it."""
    for name in names:
        if (value := getattr(plain, name)) != getattr(spec, name):
            changed: dict[str, Any] = {name: value}
            yield replace(spec, **changed)


def _payload_size(entry: Input) -> int:
    if entry.payload in _PAYLOAD_RANK:
        return _PAYLOAD_RANK[entry.payload]
    text = entry.payload.decode("latin-1").split(" ")[-1]
    return len(PAYLOADS) + len(entry.payload) + sum(map(text.count, MARKS))


def _numbers(entry: Input) -> int:
    time = time_of(entry)
    if time is None:
        return entry.at
    digits = "".join(
        [one for one in entry.payload.decode("latin-1").split(" ")[2] if one.isdigit()]
    )
    return entry.at + time + 2 * (time == 0) + int(digits or 0) + (entry.payload[:1] != b"a")


def _simpler(names: Sequence[str], name: str) -> tuple[str, ...]:
    """Return the names that stand before `name`: a few of them, the plainest among them."""
    if name not in names:
        return ()
    place = names.index(name)
    return tuple(dict.fromkeys((*names[: min(place, 3)], *names[max(place - 2, 0) : place])))


def _without(items: tuple[T, ...], index: int) -> tuple[T, ...]:
    return items[:index] + items[index + 1 :]


def _put(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])
