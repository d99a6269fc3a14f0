"""Exchanges: cases about as plain as a timed case, in which one thing has another's place.

A reduction takes away what a failure does not need. But something must be there: times come from
messages or from arrival, windows end with their source or with a later message. If a case fails
with the other thing too, the failure needs neither (`wallaroo_conformance.judge.blaming`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import TypeVar

from wallaroo_conformance.cases.timed.aggregations import AGGREGATIONS, COMBINING
from wallaroo_conformance.cases.timed.case import (
    Entry,
    SourceSpec,
    TimedCase,
    TimedStep,
    WindowSpec,
    fitting,
)
from wallaroo_conformance.cases.timed.operators import KEYS, STATEFUL, STATELESS
from wallaroo_conformance.cases.timed.rewiring import rewirings, with_another_source
from wallaroo_conformance.cases.timed.times import LATER, earlier, time_of, with_time

T = TypeVar("T")

_TEXTS, _LETTER, _STATE, _TIME = (
    *(next(iter(AGGREGATIONS)), next(iter(KEYS)), next(iter(STATEFUL))),
    SourceSpec.event_time,
)
_OTHER_LETTER = b"z"
_PLACED = "place-in-oldest-window"  # no policy of sessions
_RANGE, _SESSION, _COUNT = WindowSpec(), WindowSpec("session", 5), WindowSpec("count", 2)


def timed_exchanges(case: TimedCase) -> list[TimedCase]:
    """Return the cases in which one thing of this one has been exchanged, without repetitions."""
    found = [
        *(*_times(case), *_ends(case), *_without_message(case)),
        *(*_steps(case), *_keys(case), *rewirings(case)),
    ]
    fitted = [
        replace(one, inputs=tuple([fitting(entry, one.sources) for entry in one.inputs]))
        for one in found
    ]
    return [one for one in dict.fromkeys(fitted) if one != case]


def _times(case: TimedCase) -> Iterator[TimedCase]:
    """Exchange event times and arrival times, and early times and later ones."""
    inputs = tuple([with_time(entry, (time_of(entry) or 0) + LATER) for entry in case.inputs])
    yield replace(case, inputs=inputs)
    inputs = tuple([replace(entry, at=entry.at + LATER) for entry in case.inputs])
    yield replace(case, inputs=inputs)
    yield earlier(case)
    inputs = tuple([with_time(entry, (time_of(entry) or 0) + 1) for entry in case.inputs])
    yield replace(case, inputs=inputs)  # at other places in their windows
    inputs = tuple([one if one.what == "tick" else replace(one, at=0) for one in case.inputs])
    yield replace(case, inputs=inputs)
    for index, source in enumerate(case.sources):
        sources = list(case.sources)
        of_messages = source.event_time is not None
        sources[index] = replace(source, event_time=None if of_messages else _TIME)
        exchanged = _at_its_time if of_messages else _with_its_arrival
        entries = [exchanged(one, index) for one in case.inputs]
        yield replace(case, sources=tuple(sources), inputs=tuple(entries))


def _ends(case: TimedCase) -> Iterator[TimedCase]:
    """Exchange the ends of sources, ticks, and messages of much later."""
    yield replace(case, ended=True)
    latest = max([entry.at for entry in case.inputs], default=0)
    times = [time_of(entry) or 0 for entry in case.inputs]
    later = max([latest, *times]) + LATER
    last = f"a {later} m".encode()
    kept = tuple([entry for entry in case.inputs if entry.what != "tick"])
    for inputs in dict.fromkeys((case.inputs, kept)):
        yield replace(case, inputs=inputs)
        yield replace(case, inputs=(*inputs, Entry("tick", at=later)), ended=False)
        frames = [Entry("frame", number, later, last) for number in range(len(case.sources))]
        yield replace(case, inputs=(*inputs, *frames), ended=False)
    ticks = [(Entry("tick", at=entry.at), entry) for entry in case.inputs]
    yield replace(case, inputs=tuple(chain.from_iterable(ticks)))
    more = with_another_source(case)
    for index, entry in enumerate(case.inputs):
        if entry.what == "tick" and more is not None:
            end = Entry("end", len(case.sources), entry.at, b"")
            yield replace(more, inputs=_put(case.inputs, index, end))
        if entry.what != "frame":
            for source in range(len(case.sources)):
                frame = Entry("frame", source, entry.at, f"a {entry.at} m".encode())
                yield replace(case, inputs=_put(case.inputs, index, frame))


def _without_message(case: TimedCase) -> Iterator[TimedCase]:
    """Exchange frames that give no message: filtered, not decoded, without an event time."""
    for index, entry in enumerate(case.inputs):
        if entry.what == "frame" and (
            time_of(entry) is None or entry.payload.endswith((b" ", b"e"))
        ):
            for payload in (b"a 1 ", b"?", b"a x m"):
                other = replace(entry, payload=payload)
                yield replace(case, inputs=_put(case.inputs, index, other))


def _steps(case: TimedCase) -> Iterator[TimedCase]:
    """Exchange kinds of windows, windows and states, and computations."""
    for index, step in enumerate(case.steps):
        others: list[TimedStep] = []
        if step.window is not None:
            others += [replace(step, window=window) for window in _windows(step)]
            others.append(replace(step, operator=_STATE, window=None))
        elif step.operator in STATEFUL:
            others += [
                replace(step, operator=_TEXTS, window=window)
                for window in (_RANGE, _SESSION, _COUNT)
            ]
            others += [replace(step, operator=name) for name in STATEFUL]
        elif step.operator in STATELESS:
            others += [replace(step, operator=name) for name in STATELESS]
        for other in others:
            yield replace(case, steps=_put(case.steps, index, other))


def _windows(step: TimedStep) -> Iterator[WindowSpec]:
    window = step.window
    assert window is not None
    late = {"range": window.late, "session": window.late.replace(_PLACED, "dead-letter")}
    for other in (_RANGE, _SESSION):
        if other.kind != window.kind and (other.kind == "range" or step.operator in COMBINING):
            size = other.size if window.kind == "count" else window.size
            yield replace(other, size=size, delay=window.delay, late=late[other.kind])
    if window.kind != "count":
        yield _COUNT


def _keys(case: TimedCase) -> Iterator[TimedCase]:
    """Exchange letters, and one key, where messages have none, and the keys of their letters."""
    for index, entry in enumerate(case.inputs):
        if time_of(entry) is not None:
            other = replace(entry, payload=_OTHER_LETTER + entry.payload[1:])
            yield replace(case, inputs=_put(case.inputs, index, other))
    if case.form == "builder":
        for index, step in enumerate(case.steps):
            route = _LETTER if step.route is None else None
            yield replace(case, steps=_put(case.steps, index, replace(step, route=route)))
        return
    for index, step in enumerate(case.steps):
        if step.operator in KEYS or step.operator == "collect":
            for name in (*KEYS, "collect"):
                yield replace(case, steps=_put(case.steps, index, replace(step, operator=name)))
    for index in range(len(case.steps)):
        key = TimedStep(_LETTER)
        yield replace(case, steps=(*case.steps[:index], key, *case.steps[index:]))


def _at_its_time(entry: Entry, source: int) -> Entry:
    """Return a message of a source with its event time as arrival time."""
    return replace(entry, at=time_of(entry) or entry.at) if entry.source == source else entry


def _with_its_arrival(entry: Entry, source: int) -> Entry:
    """Return a message of a source with its arrival time as event time; a tick becomes one."""
    if entry.what == "tick":
        return Entry("frame", source, payload=f"a {entry.at} m".encode())
    return replace(with_time(entry, entry.at), at=0) if entry.source == source else entry


def _put(items: tuple[T, ...], index: int, item: T) -> tuple[T, ...]:
    return (*items[:index], item, *items[index + 1 :])
