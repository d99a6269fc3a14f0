"""The tour of timed cases: each window and each state, with each mark, over the same few records.

Random cases combine everything with everything, but a short search leaves much out. The tour has
every kind of window, every policy for late messages, every key extractor and every mark. Its
records come out of order, several keys at one time, and then nothing for a while.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product
from typing import Final

from wallaroo.engine import OnError
from wallaroo.times import TIME_END
from wallaroo_conformance.cases.operators import Tone, Trait
from wallaroo_conformance.cases.timed.aggregations import AGGREGATIONS, COMBINING
from wallaroo_conformance.cases.timed.case import (
    Entry,
    SourceSpec,
    TimedCase,
    TimedStep,
    What,
    WindowSpec,
)
from wallaroo_conformance.cases.timed.marks import ENDS_THE_RUN, MARKS
from wallaroo_conformance.cases.timed.operators import (
    ALTERING,
    EVENT_TIMES,
    KEYS,
    STATEFUL,
    STATELESS,
)
from wallaroo_conformance.cases.timed.tour_of_time import tour_of_time

_POLICIES: Final = ("dead-letter", "drop", "fire-per-message", "place-in-oldest-window")
_RANGES: Final = (
    WindowSpec(),
    WindowSpec(size=10, slide=4),
    WindowSpec(size=20, slide=5),
    WindowSpec(delay=5),
)
_SESSIONS: Final = (WindowSpec("session", 5), WindowSpec("session", 5, delay=10))
_JOINED: Final = WindowSpec("session", 9, delay=10)
"""In its sessions, two messages come before one that has a mark."""
_COUNTS: Final = (
    WindowSpec("count", 2),
    WindowSpec("count", 9, timeout=10),
    WindowSpec("count", 3, timeout=10),
)
_WINDOWS: Final = (
    *[replace(one, late=late) for one, late in product(_RANGES, _POLICIES)],
    *[replace(one, late=late) for one, late in product(_SESSIONS, _POLICIES[:-1])],
    *_COUNTS,
)
_FULL_OR_DUE: Final = WindowSpec("count", 2, timeout=10)
_EXPIRES: Final = 21

_FRAMES: Final = (
    *((0, "a", 5), (0, "b", 3), (0, "c", 4), (0, "b", 9), (0, "c", 17)),
    *((2, "a", 13), (2, "a", 9)),
    *((21, "b", 5), (22, "a", 31), (22, "b", 12), (24, "a", 24), (70, "c", 99)),
)
"""Arrival time, letter and event time of each."""
_FRAMES_OF_TWO: Final = (
    *((0, "a", 5), (1, "a", 10), (0, "b", 10), (0, "a", 15), (1, "b", 15)),
    *((1, "c", 20), (0, "c", 20), (0, "b", 35)),
)
"""Source, letter and event time of each; each time is where some window is due, and a
session's gap after another."""
_TICKS: Final = ((19, 7), (60, len(_FRAMES) - 1))
"""Arrival times of ticks, and the number of frames before each."""
_MARKED: Final = (3, 6)
"""The frames that have the mark."""
_BAD_FRAMES: Final = (
    *("a x m", "a yes m", "a half m", "a below m", f"a {1 << 63} m", "a 0 ", "?", "a 0 e"),
)
"""Payloads that bring no event time."""
_IN_EVERY_ORDER: Final = (1, 4, 12)
"""Event times: the first two are in one window of each kind, the last one ends it."""
_ENDING: Final = (
    *((WindowSpec(size=10, slide=5), "ekwuco"), (WindowSpec("session", 5), "uco")),
    (WindowSpec("count", 2), "uo"),
)
"""Windows, and marks at which user code around them exits."""
_REFUSED: Final = "pr"
"""Marks that a case's own codec refuses."""
_LAST_OF_GENERATORS: Final[tuple[What, ...]] = ("end", "failed", "exited")
_ON_ERROR: Final[tuple[OnError, ...]] = ("skip", "stop")
_BEGINNING: Final = 1_000
_LATER: Final = 200
_TEXTS, _LETTER, _STATE, _TIME = (
    next(iter(table)) for table in (AGGREGATIONS, KEYS, STATEFUL, EVENT_TIMES)
)
"""The plainest of each kind."""
_FEW_AGGREGATIONS, _FEW_KEYS = (table.having(Trait.LATE_AS_ANY) for table in (AGGREGATIONS, KEYS))
_LATE_AS_ANY: Final = (
    *[(name, _LETTER) for name in _FEW_AGGREGATIONS],
    *[(_TEXTS, name) for name in _FEW_KEYS],
)
"""Aggregations and key extractors of cases without the policies for late messages."""


def timed_tour(tone: Tone) -> list[TimedCase]:
    """Return the tour's cases; `tame`: for `trusting` mode, without operators that alter."""
    # At least every second log goes on, so that not every failure is blamed on the end of the log.
    found = [
        replace(case, ended=case.ended and number % 2 == 0) for number, case in enumerate(_cases())
    ]
    if tone == "tame":
        found = [replace(case, isolation="trusting") for case in found if not case.alters]
    return list(dict.fromkeys(found))


def _cases() -> Iterator[TimedCase]:
    for window, aggregation, key in product(_WINDOWS, AGGREGATIONS, (None, *KEYS)):
        plain = window.kind == "count" or (window.kind == "range" and window.slide is None)
        if aggregation not in COMBINING and not plain:
            continue
        if aggregation not in _FEW_AGGREGATIONS and key not in _FEW_KEYS:
            yield _case(key, TimedStep(aggregation, window=window))
    for window, (aggregation, key) in product((*_RANGES, *_SESSIONS, *_COUNTS), _LATE_AS_ANY):
        yield _case(key, TimedStep(aggregation, window=window))
    for window, mark in product(_WINDOWS, MARKS):
        case = _case(_LETTER, TimedStep(_TEXTS, window=window), mark)
        yield replace(case, codec=mark in _REFUSED)
    uncombined = [name for name in AGGREGATIONS if name not in COMBINING]
    for aggregation, window in product(uncombined, (WindowSpec(), WindowSpec("count", 3))):
        yield replace(_case(_LETTER, TimedStep(aggregation, window=window)), codec=True)
    for aggregation, mark in product(AGGREGATIONS.having(Trait.FINDING), "uc"):
        yield _case(_LETTER, TimedStep(aggregation, window=_JOINED), mark)
    for window in _WINDOWS:
        case = _case(_LETTER, TimedStep(_TEXTS, window=window))
        yield replace(case, expire_after=_EXPIRES)  # of the state behind it
        behind = TimedStep(_TEXTS, window=WindowSpec(size=5))  # the event times show there
        yield replace(case, steps=(*case.steps[:-1], behind))
    for state, key, expires in product(STATEFUL, (None, *KEYS), (None, _EXPIRES)):
        marks = ("", "b") if key in _FEW_KEYS else ("", "b", "s", "k", "f", "d", *_REFUSED)
        for mark in marks:
            case = replace(_case(key, TimedStep(state), mark), codec=mark in _REFUSED)
            at_last = Entry("tick", at=_LATER)  # when no entity is left
            yield replace(case, expire_after=expires, inputs=(*case.inputs, at_last))
            yield replace(case, expire_after=expires, inputs=_inputs("", ticks=False))
    for payload, first in product(("", *_BAD_FRAMES), (SourceSpec(), SourceSpec(None))):
        yield _with_a_source_that_has_no_time(payload, first)
    # When it holds nothing back any more, the frame of that time is late.
    yield _with_a_source_that_has_no_time("", SourceSpec(), begins=0, idle_after=_FRAMES[7][0])
    for window, time in product((*_RANGES, *_SESSIONS), EVENT_TIMES):
        if time != _TIME:
            case = _case(_LETTER, TimedStep(_TEXTS, window=window))
            yield replace(case, sources=(SourceSpec(time),))
    yield from _two_sources()
    yield from _idle()
    yield from _branched()
    yield from _of_a_frame_and_a_value()
    yield from _stopped()
    yield from _in_every_order()
    yield from _around_what_is_due()
    yield from _visited_by_what_fails()
    yield from _failing_together()
    yield from _equal()
    yield from _behind_one_another()
    yield from _ended_by_generators()
    yield from _at_the_end_of_time()
    yield from _done()
    yield from tour_of_time()


def _two_sources() -> Iterator[TimedCase]:
    """Yield cases whose sources hold one another back, each log ended where windows are due."""
    inputs = [
        Entry(source=source, at=number, payload=f"{letter} {time} {number}".encode())
        for number, (source, letter, time) in enumerate(_FRAMES_OF_TWO)
    ]
    for window, last in product((*_RANGES, *_SESSIONS), range(4, len(inputs) + 1)):
        step = TimedStep(_TEXTS, window=window)
        steps = (TimedStep("merge", other=1), TimedStep(_LETTER), step)
        yield TimedCase((SourceSpec(),) * 2, steps, tuple(inputs[:last]), ended=False)


def _idle() -> Iterator[TimedCase]:
    """Yield cases whose source is silent for exactly as long as makes it idle, or for less.

    Behind them, cases in which time passes until a frame comes that gives no message.
    """
    windows = (*_RANGES, *_SESSIONS, _COUNTS[1])  # the count window's timeout is one of these times
    for window, silent, less in product(windows, (5, 8, 10), (0, 1)):
        inputs = (Entry(payload=b"a 5 0"), Entry(payload=b"a 10 1"), Entry("tick", at=silent))
        steps = (TimedStep(_LETTER), TimedStep(_TEXTS, window=window))
        yield TimedCase((SourceSpec(idle_after=silent + less),), steps, inputs, ended=False)
    for source, window in (
        (SourceSpec(None), WindowSpec()),
        (SourceSpec(None), _SESSIONS[0]),
        (SourceSpec(), _COUNTS[1]),
    ):
        steps = (TimedStep(_LETTER), TimedStep(_TEXTS, window=window))
        # Frames that give no message move time, too; and what they make due comes before them.
        for payload, mark in product((b"a 5 ", b"?", b"a x e"), (b"", b"o")):
            fired = (Entry(payload=b"a 5 0" + mark), Entry(at=40, payload=payload))
            yield TimedCase((source,), steps, fired, ended=False)
    for payload in (b"?", b"a 5 "):  # nothing has an event time when the source becomes idle
        step = TimedStep(_TEXTS, window=WindowSpec())
        quiet = (Entry(at=5, payload=payload), Entry("tick", at=60))
        later = (Entry(at=70, payload=b"a 3 0"), Entry(at=71, payload=b"a 25 1"))
        yield TimedCase((SourceSpec(idle_after=30),), (step,), (*quiet, *later), ended=False)


def _branched() -> Iterator[TimedCase]:
    """Yield cases whose messages go two ways, to an entity that both share, and come together."""
    *_, one, other = STATELESS  # any two would do
    for operator, key in product(STATELESS, (None, _LETTER)):
        first = TimedStep(operator)
        for after in (
            (TimedStep(_STATE), TimedStep(_STATE, origin=1)),
            (TimedStep(one), TimedStep(other, origin=1), TimedStep("merge", other=1)),
        ):
            case = _case(key, first, "d")
            yield replace(case, steps=(*case.steps[:-1], *after), shared=True)


def _of_a_frame_and_a_value() -> Iterator[TimedCase]:
    """Yield cases in which messages of a generator, and of frames before them, fail."""
    sources = (SourceSpec(), SourceSpec(generator=True))
    merged = (TimedStep("merge", other=1), TimedStep(_LETTER))
    window = TimedStep(_TEXTS, window=WindowSpec())
    for step, marks in ((TimedStep(_STATE), "kbw"), (window, "euo")):
        for mark in marks:
            inputs = [
                Entry(source=number % 2, payload=f"a {number} {number}{mark}".encode())
                for number in range(1, 5)
            ]
            inputs.append(Entry("failed", 1, payload=b""))
            yield TimedCase(sources, (*merged, step), tuple(inputs))


def _stopped() -> Iterator[TimedCase]:
    """Yield cases that end at their first dead letter (dead-4), or at an exit (dead-3)."""
    window = _case(_LETTER, TimedStep(_TEXTS, window=WindowSpec()))
    state = _case(_LETTER, TimedStep(_STATE))
    for case in (window, state):
        for mark in ("", *MARKS):
            yield replace(case, inputs=_inputs(mark), on_error="stop")
    for kind, marks in _ENDING:
        case = _case(_LETTER, TimedStep(_TEXTS, window=kind))
        for mark in marks:
            yield replace(case, inputs=_inputs(mark + ENDS_THE_RUN))
    for mark in "bs":
        yield replace(state, inputs=_inputs(mark + ENDS_THE_RUN))
    for payload in _BAD_FRAMES:
        bad = Entry(at=1, payload=payload.encode())
        yield replace(window, inputs=(*window.inputs[:5], bad, *window.inputs[5:]), on_error="stop")


def _in_every_order() -> Iterator[TimedCase]:
    """Yield cases in which each message of a window has the least time, or the greatest."""
    windows = (_RANGES[1], WindowSpec("session", 9), WindowSpec("count", 3))
    for window, times in product(windows, permutations(_IN_EVERY_ORDER)):
        inputs = tuple(
            Entry(at=number, payload=f"a {time} {number}".encode())
            for number, time in enumerate((*times, *times))
        )
        yield TimedCase(steps=(TimedStep(_LETTER), TimedStep(_TEXTS, window=window)), inputs=inputs)


def _around_what_is_due() -> Iterator[TimedCase]:
    """Yield cases in which a message comes when something is due by arrival time, or near it."""
    windows = ((WindowSpec(), 9), (WindowSpec("session", 5), 5), (_FULL_OR_DUE, 10))
    steps = [(TimedStep(_TEXTS, window=window), due) for window, due in windows]
    for (step, due), beside in product((*steps, (TimedStep(_STATE), _EXPIRES)), (-1, 0, 1)):
        inputs = (Entry(at=1, payload=b"a 5 0"), Entry(at=1 + due + beside, payload=b"a 5 1"))
        case = TimedCase((SourceSpec(None),), (TimedStep(_LETTER), step), inputs, ended=False)
        yield replace(case, expire_after=_EXPIRES)


def _visited_by_what_fails() -> Iterator[TimedCase]:
    """Yield cases in which an entity is still there, or just gone, behind a call that failed."""
    for state, mark, later in product(STATEFUL, "bs", (0, 1)):
        failed = _EXPIRES // 2
        inputs = (
            Entry(at=1, payload=b"a 5 0"),
            Entry(at=1 + failed, payload=f"a 5 1{mark}".encode()),
            Entry(at=1 + failed + _EXPIRES - 1 + later, payload=b"a 5 2"),
        )
        yield TimedCase(
            (SourceSpec(None),),
            (TimedStep(_LETTER), TimedStep(state)),
            inputs,
            ended=False,
            expire_after=_EXPIRES,
        )


def _failing_together() -> Iterator[TimedCase]:
    """Yield cases with windows due together, of which some give nothing and one fails."""
    step = TimedStep(_TEXTS, window=WindowSpec())
    for marks in permutations(("n", "o", "")):
        inputs = [
            Entry(payload=f"{letter} 5 {number}{mark}".encode())
            for number, (letter, mark) in enumerate(zip("abc", marks, strict=True))
        ]
        behind = Entry(payload=b"a 20 3")
        yield TimedCase(steps=(TimedStep(_LETTER), step), inputs=(*inputs, behind), ended=False)


def _equal() -> Iterator[TimedCase]:
    """Yield cases with messages that are equal, and that user code, or a codec, tells apart."""
    inputs = tuple([Entry(payload=f"a {one} t".encode()) for one in ("1", "yes", "one", "1")])
    lasts = (TimedStep(_STATE), TimedStep(_TEXTS, window=_COUNTS[0]))
    for operator in STATELESS:
        yield TimedCase((SourceSpec(None),), (TimedStep(operator),), inputs, codec=True)
    for operator, key, last in product((None, *STATELESS), _FEW_KEYS, lasts):
        before = () if operator is None else (TimedStep(operator),)
        steps = (*before, TimedStep(key), last)
        yield TimedCase((SourceSpec(None),), steps, inputs, ended=False)


def _behind_one_another() -> Iterator[TimedCase]:
    """Yield cases with each sort of step right behind every other, and a state that shows keys."""
    *_, drop, twice = STATELESS
    [*_, pair, _] = KEYS
    steps = (
        *[TimedStep(name) for name in (drop, twice, pair, _STATE, "collect")],
        *[TimedStep(_TEXTS, window=window) for window in (_RANGES[1], _SESSIONS[0], _COUNTS[0])],
        TimedStep("merge", other=1),
    )
    for one, other in product(steps, steps):
        behind = (one, other, TimedStep(_STATE))
        yield TimedCase(steps=(TimedStep(_LETTER), *behind), inputs=_inputs("", ticks=False))


def _ended_by_generators() -> Iterator[TimedCase]:
    """Yield cases in which a generator ends, fails or exits, and windows are due by that."""
    windows = (*_RANGES[:2], *_SESSIONS, _COUNTS[1])
    steps = [*[TimedStep(_TEXTS, window=window) for window in windows], TimedStep(_STATE)]
    values = [
        Entry(source=source, at=number, payload=f"a {time} {number}".encode())
        for number, (source, time) in enumerate(((0, 5), (1, 3), (0, 16), (0, 40)))
    ]
    for what, step, on_error in product(_LAST_OF_GENERATORS, steps, _ON_ERROR):
        yield TimedCase(
            (SourceSpec(generator=True),) * 2,
            (TimedStep("merge", other=1), TimedStep(_LETTER), step),
            (*values[:3], Entry(what, source=1, at=20), *values[3:]),
            on_error=on_error,
        )


def _at_the_end_of_time() -> Iterator[TimedCase]:
    """Yield cases with the last event time, and others before it; windows end behind it."""
    last = TIME_END - 1
    windows = (*_RANGES, *_SESSIONS, _COUNTS[0])
    for window, times in product(windows, ((last,), (last - 20, last, last - 3), (5, last, 3))):
        inputs = [Entry(payload=f"a {time} {at}".encode()) for at, time in enumerate(times)]
        steps = (TimedStep(_LETTER), TimedStep(_TEXTS, window=window))
        yield TimedCase(steps=steps, inputs=tuple(inputs))


def _done() -> Iterator[TimedCase]:
    """Yield cases whose pipelines have no sink, with each sort of step as the last one."""
    windows = (_RANGES[1], _SESSIONS[0], _COUNTS[0])
    last = (
        *[TimedStep(name) for name in (*STATELESS, _LETTER, _STATE, "collect")],
        *[TimedStep(_TEXTS, window=window) for window in windows],
        TimedStep("merge", other=1),
    )
    for one, sink in product(last, (False, True)):
        steps = (TimedStep(_LETTER), TimedStep(_STATE, sink=sink), one, replace(one, origin=1))
        yield TimedCase(steps=steps, inputs=_inputs(""), ended=sink, done=True)


def _case(key: str | None, step: TimedStep, mark: str = "") -> TimedCase:
    """Return a case with one step, and a computation and a state behind it."""
    keys = () if key is None else (TimedStep(key),)
    alters = key in ALTERING or step.operator in ALTERING
    behind = () if alters else (TimedStep(_STATE),)
    return TimedCase(steps=(*keys, step, *behind), inputs=_inputs(mark))


def _inputs(mark: str, *, ticks: bool = True) -> tuple[Entry, ...]:
    entries = []
    for number, (at, letter, time) in enumerate(_FRAMES):
        text = f"{number}{mark * (number in _MARKED)}"
        entries.append(Entry(at=at, payload=f"{letter} {time} {text}".encode()))
    for at, behind in reversed(_TICKS) if ticks else ():
        entries.insert(behind, Entry("tick", at=at))
    return tuple(entries)


def _with_a_source_that_has_no_time(
    payload: str, first: SourceSpec, *, begins: int = _BEGINNING, idle_after: int = 15
) -> TimedCase:
    """Return a case in which one of two sources has frames, or none, and none that brings a time.

    What counts there is how long the log has gone on, whether it begins in 1970 or not.
    """
    bad = [Entry(source=1, at=at, payload=payload.encode()) for at in (1, 7, 14) if payload]
    inputs = sorted([*_inputs(""), *bad], key=lambda entry: entry.at)
    inputs = [replace(entry, at=entry.at + begins) for entry in inputs]
    step = TimedStep(_TEXTS, window=WindowSpec())
    second = SourceSpec(idle_after=idle_after)
    return TimedCase((first, second), (TimedStep("merge", other=1), step), tuple(inputs))
