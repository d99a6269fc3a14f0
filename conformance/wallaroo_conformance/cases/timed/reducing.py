"""All one-step reductions of a timed case, as `wallaroo_conformance.cases.reducing` makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate, combinations, takewhile
from typing import Any, TypeVar

from wallaroo.times import event_time_from
from wallaroo_conformance.cases.timed.aggregations import AGGREGATIONS
from wallaroo_conformance.cases.timed.case import (
    Entry,
    SourceSpec,
    TimedCase,
    TimedStep,
    WindowSpec,
    fitting,
)
from wallaroo_conformance.cases.timed.marks import ENDS_THE_RUN, MARKS
from wallaroo_conformance.cases.timed.operators import KEYS, OPERATORS, STATEFUL, own_moment
from wallaroo_conformance.cases.timed.rewiring import rewirings
from wallaroo_conformance.cases.timed.times import earlier, time_of, with_time

T = TypeVar("T")

_KIND_RANK = {"range": 0, "count": 2, "session": 1}
_RANK = {name: rank for rank, name in enumerate(OPERATORS)}
_PLAIN = b"a 1 m"
_MOST_PARTS = 12  # records of which pairs are tried


def timed_reductions(case: TimedCase) -> list[TimedCase]:
    """Return every case that is one step simpler, simplest first, without repetitions."""
    own = timed_size(case)
    found = {reduced: timed_size(reduced) for reduced in map(_fitted, _reductions(case))}
    return sorted([one for one in found if found[one] < own], key=lambda one: found[one])


def timed_projections(case: TimedCase) -> list[TimedCase]:
    """Return small parts of a case, simplest first: two records of it at most."""
    entries = case.inputs[:_MOST_PARTS]
    chosen = [*[(one,) for one in entries], *combinations(entries, 2)]
    return sorted({replace(case, inputs=one, batches=None) for one in chosen}, key=timed_size)


def timed_size(case: TimedCase) -> tuple[int, ...]:
    """Return how complicated a case is; compares as tuples do."""
    return (
        3 * case.messages
        + 2 * (len(case.inputs) - case.messages)
        + 2 * len(case.steps)
        + 2 * sum(step.operator == "merge" for step in case.steps)  # as much as a step behind it
        + 3 * len(case.sources)
        + sum(step.sink for step in case.steps)
        + (not case.ended)
        + (case.form != "pipelines")
        + (case.expire_after is not None)
        + case.shared
        + case.codec
        + case.done
        + (case.batches is not None)
        + (case.number is not None)
        + (case.on_error != "skip")
        + 2 * any(_exits(entry) for entry in case.inputs)
        + case.small
        + (case.inputs != _never_back(case.inputs)),
        sum(map(_step_size, case.steps)) + sum(map(_source_size, case.sources)),
        len(case.batches or ()) + (case.number or 0) + (case.expire_after or 0),
        sum(len(entry.payload) + _marks(entry) for entry in case.inputs),
        sum(_numbers(entry) for entry in case.inputs),
        sum(entry.source for entry in case.inputs),
    )


def _fitted(case: TimedCase) -> TimedCase:
    """Return the case with records that its sources can give."""
    inputs = tuple([fitting(entry, case.sources) for entry in case.inputs])
    return case if inputs == case.inputs else replace(case, inputs=inputs)


def _never_back(entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """Return the records with the arrival times that count, which do not decrease (time-1)."""
    times = accumulate([entry.at for entry in entries], max)
    return tuple([replace(entry, at=at) for entry, at in zip(entries, times, strict=True)])


def _exits(entry: Entry) -> bool:
    return ENDS_THE_RUN.encode() in entry.payload


def _marks(entry: Entry) -> int:
    """Return how many marks there are in a message's text."""
    text = entry.payload.decode("latin-1").split(" ")[-1]
    return sum(map(text.count, MARKS))


def _numbers(entry: Entry) -> int:
    text = entry.payload.decode("latin-1")
    digits = "".join([one if one.isdigit() else " " for one in text])
    zero = 2 * (" 0 " in text)
    return entry.at + sum(map(int, digits.split())) + zero + (entry.payload[:1] != b"a")


def _step_size(step: TimedStep) -> int:
    window = step.window
    return (
        _RANK[step.operator]
        + step.origin
        + step.other
        + (step.route is not None)
        + (
            0
            if window is None
            else 2 * _KIND_RANK[window.kind]
            + (window.slide is not None)
            + (window.delay > 0)
            + (window.late != "dead-letter")
            + (window.timeout is not None)
        )
    )


def _source_size(source: SourceSpec) -> int:
    return (
        2 * (source.event_time not in (None, SourceSpec.event_time))
        + (source.event_time is not None)
        + (source.idle_after is not None)
        + source.generator
    )


def _reductions(case: TimedCase) -> Iterator[TimedCase]:
    count = length = len(case.inputs)
    while length:
        for start in range(0, count, length):
            yield replace(case, inputs=case.inputs[:start] + case.inputs[start + length :])
        length //= 2
    for index, step in enumerate(case.steps):
        yield replace(case, steps=_without(case.steps, index))
        for simpler in _steps(step):
            yield replace(case, steps=_put(case.steps, index, simpler))
    yield from rewirings(case)
    yield from _sources(case)
    for index, entry in enumerate(case.inputs):
        for simple in _entries(entry):
            yield replace(case, inputs=_put(case.inputs, index, simple))
    yield from _times(case)
    yield from _runs(case)


def _steps(step: TimedStep) -> Iterator[TimedStep]:
    yield TimedStep(origin=step.origin)
    for table in (KEYS, STATEFUL):
        plainest = next(iter(table))
        if step.operator in table and step.operator != plainest:
            yield replace(step, operator=plainest)
    for name in ("origin", "other"):
        for number in range(getattr(step, name)):
            nearer: dict[str, Any] = {name: number}
            yield replace(step, **nearer)
    if step.sink:
        yield replace(step, sink=False)
    if step.route is not None:
        yield replace(step, route=None)
    window = step.window
    if window is not None:
        for plainer in takewhile(lambda name: name != step.operator, AGGREGATIONS):
            yield replace(step, operator=plainer)
        for name, plain in (
            ("slide", None),
            ("delay", 0),
            ("late", "dead-letter"),
            ("timeout", None),
        ):
            if getattr(window, name) != plain:
                changed: dict[str, Any] = {name: plain}
                yield replace(step, window=replace(window, **changed))
        for simpler in _windows(window):
            yield replace(step, window=simpler)


def _windows(window: WindowSpec) -> Iterator[WindowSpec]:
    if window.slide is not None:
        yield replace(window, size=window.slide, slide=None)
    if window.kind == "count":
        if window.size > 1:
            yield replace(window, size=window.size - 1)
        yield WindowSpec()
    if window.kind == "session":
        yield replace(window, kind="range")


def _sources(case: TimedCase) -> Iterator[TimedCase]:
    for index, source in enumerate(case.sources):
        if len(case.sources) > 1:
            left = tuple(
                replace(entry, source=entry.source - (entry.source > index))
                for entry in case.inputs
                if entry.source != index or entry.what == "tick"
            )
            yield replace(case, sources=_without(case.sources, index), inputs=left)
        for simpler in (
            SourceSpec(),
            replace(source, event_time=None),
            replace(source, idle_after=None),
            replace(source, generator=False),
        ):
            yield replace(case, sources=_put(case.sources, index, simpler))
        if source.event_time == own_moment.__name__:
            yield _with_numbers(case, index)


def _with_numbers(case: TimedCase, index: int) -> TimedCase:
    """Return the case with the same event times of one source, as numbers instead of moments."""
    source = case.sources[index]
    inputs = tuple([_with_number(entry, index) for entry in case.inputs])
    numbered = replace(source, event_time=SourceSpec.event_time)
    return replace(case, sources=_put(case.sources, index, numbered), inputs=inputs)


def _with_number(entry: Entry, index: int) -> Entry:
    number = time_of(entry) if entry.source == index else None
    return entry if number is None else with_time(entry, event_time_from(own_moment(["", number])))


def _entries(entry: Entry) -> Iterator[Entry]:
    if entry.what != "tick":
        yield Entry("tick", at=entry.at)
    if entry.what == "failed":
        yield replace(entry, what="end")
    if entry.what == "exited":
        yield replace(entry, what="failed")
    if entry.at:
        yield replace(entry, at=0)
    if entry.source:
        yield replace(entry, source=0)
    parts = entry.payload.decode("latin-1").split(" ")
    if entry.what == "frame" and len(parts) == 3:
        letter, time, text = parts
        for simpler in (
            ("a", time, text),
            (letter, "1", text),  # 0 is a special time
            (letter, time, "m"),
            (letter, time, "x"),
        ):
            yield replace(entry, payload=" ".join(simpler).encode("latin-1"))
        for length in (1, 2):
            if len(text) > length:
                last = text[-length:]
                yield replace(entry, payload=f"{letter} {time} {last}".encode("latin-1"))
        if time.isdigit() and int(time) > 9:
            yield replace(entry, payload=f"{letter} {int(time) - 10} {text}".encode("latin-1"))
    elif entry.what == "frame":
        yield replace(entry, payload=_PLAIN)
    elif entry.payload != b"":
        yield replace(entry, payload=b"")


def _times(case: TimedCase) -> Iterator[TimedCase]:
    """Move all arrival times to the one before, or the whole log to the beginning."""
    earliest = min([entry.at for entry in case.inputs], default=0)
    if earliest:
        moved = tuple([replace(entry, at=entry.at - earliest) for entry in case.inputs])
        yield replace(case, inputs=moved)
    yield replace(case, inputs=tuple([replace(entry, at=0) for entry in case.inputs]))
    yield earlier(case)
    yield replace(case, inputs=_never_back(case.inputs))


def _runs(case: TimedCase) -> Iterator[TimedCase]:
    plain = TimedCase()
    for name in (
        *("ended", "form", "expire_after", "shared", "codec", "done"),
        *("batches", "number", "on_error", "small"),
    ):
        value = getattr(plain, name)
        if getattr(case, name) != value:
            changed: dict[str, Any] = {name: value}
            yield replace(case, **changed)
    if any(_exits(entry) for entry in case.inputs):  # a stop is plainer
        kept = [entry.payload.replace(ENDS_THE_RUN.encode(), b"") for entry in case.inputs]
        pairs = zip(case.inputs, kept, strict=True)
        inputs = tuple([replace(entry, payload=payload) for entry, payload in pairs])
        yield replace(case, on_error="stop", inputs=inputs)
    if case.batches is not None:
        yield replace(case, batches=(1,))
        for index in range(len(case.batches)):
            yield replace(case, batches=_without(case.batches, index) or None)


def _without(items: tuple[T, ...], index: int) -> tuple[T, ...]:
    return items[:index] + items[index + 1 :]


def _put(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])
