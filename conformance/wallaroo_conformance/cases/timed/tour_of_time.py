"""The part of the tour in which one thing comes after another: what has gone leaves nothing behind.

A timer, a silence or a delay acts on what it is meant for, and on nothing that came later, on
another way or from another source.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Final

from wallaroo_conformance.cases.timed.aggregations import AGGREGATIONS
from wallaroo_conformance.cases.timed.case import (
    Entry,
    SourceSpec,
    TimedCase,
    TimedStep,
    WindowSpec,
)
from wallaroo_conformance.cases.timed.operators import (
    KEYS,
    STATEFUL,
    STATELESS,
)

_TEXTS, _LETTER, _STATE = (next(iter(table)) for table in (AGGREGATIONS, KEYS, STATEFUL))
_TODAY: Final = 1_790_000_000_000_000_000
"""An arrival time of our days, of which floats leave out most; a multiple of what they know."""
_EXPIRES: Final = 20
_SILENT: Final = 10
_LATE: Final = ("dead-letter", "drop", "fire-per-message", "place-in-oldest-window")
_TIMEOUT: Final = WindowSpec("count", 9, timeout=10)
_BEHIND: Final = tuple(TimedStep(name) for name in (*STATELESS, _LETTER, "collect", _STATE))
_KINDS: Final = (WindowSpec(), WindowSpec("session", 5), _TIMEOUT)


def tour_of_time() -> Iterator[TimedCase]:
    """Yield these cases."""
    yield from _after_what_has_gone()
    yield from _silent_and_back()
    yield from _left_out()
    yield from _behind_delays()
    yield from _side_by_side()
    yield from _visited_on_two_ways()
    yield from _failing_behind_another()
    yield from _after_the_end()


def _window(window: WindowSpec, origin: int = 0) -> TimedStep:
    return TimedStep(_TEXTS, origin=origin, window=window)


def _after_what_has_gone() -> Iterator[TimedCase]:
    """Yield cases whose key meets windows, or an entity, one after the other.

    Each has a time at which it is due. A message comes when less of it has gone by since the one
    before, or more; so what is due next is often due soon after what has gone already was.
    """
    for step, due in (
        (_window(WindowSpec("count", 2, timeout=10)), 10),
        (_window(WindowSpec("count", 3, timeout=10)), 10),
        (_window(WindowSpec("session", 10)), 10),
        (_window(WindowSpec()), 10),
        (TimedStep(_STATE), _EXPIRES),
    ):
        failing = "b" if step.window is None else "u"
        for gaps, mark in product(product((due * 4 // 10, due * 7 // 10), repeat=3), ("", failing)):
            began = _TODAY if mark else 0
            arrivals = [0, gaps[0], sum(gaps[:2]), sum(gaps)]
            inputs = [
                Entry(at=began + at, payload=f"a 5 {number}{mark * (number == 0)}".encode())
                for number, at in enumerate(arrivals)
            ]
            steps = (TimedStep(_LETTER), step)
            case = TimedCase((SourceSpec(None),), steps, tuple(inputs), ended=False)
            yield replace(case, expire_after=_EXPIRES)


def _silent_and_back() -> Iterator[TimedCase]:
    """Yield cases in which a source falls silent, comes back, and the other goes on after it."""
    steps = (TimedStep("merge", other=1), TimedStep(_LETTER), _window(WindowSpec()))
    for before, back, idle in product(
        ("", "a 3 1", "a x 1"), ("a 4 2", "a 16 2", "a x 2"), (None, 3 * _SILENT)
    ):
        inputs = (
            Entry(payload=b"a 5 0"),
            *([Entry(source=1, at=1, payload=before.encode())] if before else ()),
            Entry("tick", at=4 * _SILENT),
            Entry(source=1, at=4 * _SILENT + 1, payload=back.encode()),
            Entry(at=4 * _SILENT + 2, payload=b"a 35 3"),
            *[Entry(at=4 * _SILENT + 3, payload=payload) for payload in (b"a 6 4", b"a 17 5")],
            Entry("tick", at=5 * _SILENT + 1),
            Entry(at=6 * _SILENT, payload=b"a 7 6"),
        )
        began = 0 if idle else _TODAY
        inputs = tuple(replace(one, at=one.at + began) for one in inputs)
        sources = (SourceSpec(idle_after=idle), SourceSpec(idle_after=_SILENT))
        yield TimedCase(sources, steps, inputs, ended=False)


def _left_out() -> Iterator[TimedCase]:
    """Yield cases in which nobody holds back, or only a source of another step."""
    nobody = (
        Entry(payload=b"a x 0"),
        Entry("tick", at=2 * _SILENT),
        *[Entry(at=2 * _SILENT + 1, payload=payload) for payload in (b"a 5 1", b"a 15 2")],
    )
    for kind in _KINDS:
        steps = (TimedStep(_LETTER), _window(kind))
        yield TimedCase((SourceSpec(idle_after=_SILENT),), steps, nobody, ended=False)
        apart = (_window(kind, 1), _window(kind, 1))
        inputs = (Entry(payload=b"a 5 0"), Entry(at=10, payload=b"a 15 1"))
        yield TimedCase((SourceSpec(),) * 2, apart, inputs, ended=False)


def _behind_delays() -> Iterator[TimedCase]:
    """Yield cases in which windows wait behind one another, or on two ways to another window."""
    inputs = tuple(
        Entry(at=time, payload=f"{'ab'[time % 2]} {time} {time}".encode())
        for time in (1, 7, 12, 3, 18, 23, 31, 44)
    )
    last = WindowSpec(size=5)
    for first, second, left in product((0, 5, 10), (0, 5, 10), (0, 1)):
        one, other = WindowSpec(size=5, delay=first), WindowSpec(size=5, delay=second)
        merge = TimedStep("merge", origin=left, other=1 - left)
        ways: list[tuple[TimedStep, ...]] = [(_window(other, 1), merge), (_window(other),)]
        if not second:
            ways.append((merge,))
        for way in ways[left:] if first != second else ():
            steps = (TimedStep(_LETTER), _window(one), *way, _window(last))
            yield TimedCase(steps=steps, inputs=inputs, ended=False)
    for delay in (0, 5):
        at_once = (Entry(payload=b"a 5 0"), Entry(payload=f"a {10 + delay} 1".encode()))
        for kind in (WindowSpec(), WindowSpec("session", 5)):
            chained = (_window(replace(kind, delay=delay)), _window(WindowSpec()))
            yield TimedCase(steps=chained, inputs=at_once, ended=False)


def _side_by_side() -> Iterator[TimedCase]:
    """Yield cases in which windows are due together: of some keys, or on two branches."""
    inputs = [
        Entry(at=at, payload=f"{letter} {time} {at}".encode())
        for at, (letter, time) in enumerate((("a", 2), ("b", 1), ("a", 3), ("b", 4)))
    ]
    at_one_time = (Entry(payload=b"c 5 0"), Entry(payload=b"a 5 1"), Entry(payload=b"b 5 2"))
    for kind, going_on in product(_KINDS, ("", "a", "b")):  # its session ends later than the others
        later = (Entry(payload=f"{going_on} 7 3".encode()),) if going_on else ()
        due = (Entry(at=10, payload=b"d 10 4"), Entry(at=40, payload=b"d 40 5"))
        alone = (TimedStep(_LETTER), _window(kind))
        yield TimedCase(steps=alone, inputs=(*at_one_time, *later, *due), ended=False)
    ways = (TimedStep("merge", other=1), TimedStep(_STATE))
    for one, other, mark in product(_KINDS, _KINDS, ("", "o")):
        failing = replace(inputs[2], payload=inputs[2].payload + mark.encode())
        records = (*inputs[:2], failing, inputs[3], Entry(at=30, payload=b"c 30 5"))
        steps = (TimedStep(_LETTER), _window(one), _window(other, 1), *ways)
        yield TimedCase(steps=steps, inputs=records, ended=False, expire_after=_EXPIRES)


def _visited_on_two_ways() -> Iterator[TimedCase]:
    """Yield cases in which two steps share an entity, and some messages come only to one."""
    inputs = tuple(
        Entry(at=at, payload=f"a 5 {at}{mark}".encode())
        for at, mark in ((0, ""), (12, "d"), (24, ""), (36, "d"), (48, "d"), (60, ""))
    )
    for ways in (
        (TimedStep("drop"), TimedStep(_STATE), TimedStep(_STATE, origin=2)),
        (TimedStep(_STATE), TimedStep("drop", origin=1), TimedStep(_STATE)),
    ):
        steps = (TimedStep(_LETTER), *ways)
        yield TimedCase(steps=steps, inputs=inputs, shared=True, expire_after=_EXPIRES)


def _failing_behind_another() -> Iterator[TimedCase]:
    """Yield cases in which all fails that windows behind windows give: the lineages show."""
    inputs = tuple(
        Entry(at=at, payload=f"{'ab'[at % 2]} {at} {at}w".encode()) for at in (1, 2, 3, 4, 30, 31)
    )
    kinds = (*_KINDS, WindowSpec("count", 2))
    for one, other in product(kinds, kinds):
        yield TimedCase(steps=(TimedStep(_LETTER), _window(one), _window(other)), inputs=inputs)
    for behind in (
        *[(step,) for step in _BEHIND],
        (TimedStep(_STATE), TimedStep(_STATE, origin=1)),
        (_window(WindowSpec(), 1), TimedStep("merge", other=1)),
        (TimedStep(), TimedStep("merge", other=1)),
    ):
        yield TimedCase(steps=(TimedStep(_LETTER), _window(WindowSpec()), *behind), inputs=inputs)
    for window, mark in product((*kinds, WindowSpec(size=10, slide=5)), "uo"):
        marked = tuple(replace(one, payload=one.payload[:-1] + mark.encode()) for one in inputs)
        steps = (TimedStep(_LETTER), _window(window))
        yield TimedCase(steps=steps, inputs=marked, on_error="stop")


def _after_the_end() -> Iterator[TimedCase]:
    """Yield cases in which a count window's timeout comes when every source has ended."""
    inputs = (Entry(payload=b"a 5 0"), Entry("end"), Entry("tick", at=30))
    for late, kind in product(_LATE, (WindowSpec(), WindowSpec("session", 5))):
        if kind.kind == "range" or late != "place-in-oldest-window":
            window = _window(replace(kind, late=late))
            yield TimedCase(steps=(TimedStep(_LETTER), _window(_TIMEOUT), window), inputs=inputs)
