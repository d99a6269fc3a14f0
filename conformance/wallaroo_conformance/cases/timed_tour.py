"""The tour of graphs, time and windows: each window and each state, with each mark.

The tour has every kind of window, every policy for late messages, every key extractor and every
mark, over the same few records: they come out of order, several keys at one time, and then nothing
for a while. Behind these come cases in which one thing comes after another: a timer, a silence or a
delay acts on what it is meant for, and on nothing that came later, on another way or from another
source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations, product
from typing import Any, Final

from wallaroo.engine import OnError
from wallaroo.times import TIME_END
from wallaroo_conformance.cases.case import (
    FIRST_STEP,
    ConformanceCase,
    Input,
    SinkSpec,
    SourceSpec,
    StepSpec,
    What,
    WindowSpec,
)
from wallaroo_conformance.cases.composing import TIMED_SOURCE, graph, record, step
from wallaroo_conformance.cases.operators import (
    AGGREGATIONS,
    ALTERING,
    COMBINING,
    ENCODERS,
    EVENT_TIMES,
    KEYS,
    STATE_COMPUTATIONS,
    STATE_MULTI_COMPUTATIONS,
    STATEFUL,
    STATELESS,
    Tone,
    Trait,
)
from wallaroo_conformance.cases.operators.marks import ENDS_THE_RUN, MARKS

_COMPUTATIONS, _STATES = (table.choices("any", triples=True) for table in (STATELESS, STATEFUL))
_TEXTS, _LETTER, _TIME = (next(iter(table)) for table in (AGGREGATIONS, KEYS, EVENT_TIMES))
_STATE = _STATES[0]
"""The plainest of each kind."""
[_ENCODER] = ENCODERS.having(Trait.OF_TRIPLES)
_DROP, _DOUBLED = _COMPUTATIONS[-2:]
_FEW_AGGREGATIONS, _FEW_KEYS = (table.having(Trait.LATE_AS_ANY) for table in (AGGREGATIONS, KEYS))
_LATE_AS_ANY: Final = (
    *[(name, _LETTER) for name in _FEW_AGGREGATIONS],
    *[(_TEXTS, name) for name in _FEW_KEYS],
)
"""Aggregations and key extractors of cases without the policies for late messages."""

_POLICIES: Final = ("dead-letter", "drop", "fire-per-message", "place-in-oldest-window")
_RANGE: Final = WindowSpec()
_SESSION: Final = WindowSpec("session", 5)
_COUNT: Final = WindowSpec("count", 2)
_TIMEOUT: Final = WindowSpec("count", 9, timeout=10)
_RANGES: Final = (
    _RANGE,
    *[WindowSpec(size=a, slide=b) for a, b in ((10, 4), (20, 5))],
    WindowSpec(delay=5),
)
_SESSIONS: Final = (_SESSION, WindowSpec("session", 5, delay=10))
_COUNTS: Final = (_COUNT, _TIMEOUT, WindowSpec("count", 3, timeout=10))
_ALL: Final = (*_RANGES, *_SESSIONS, *_COUNTS)
_WINDOWS: Final = (
    *[replace(one, late=late) for one, late in product(_RANGES, _POLICIES)],
    *[replace(one, late=late) for one, late in product(_SESSIONS, _POLICIES[:-1])],
    *_COUNTS,
)
_ONE_OF_EACH: Final = (_RANGES[1], _SESSION, _COUNT)
_KINDS: Final = (_RANGE, _SESSION, _TIMEOUT)
_JOINED: Final = WindowSpec("session", 9, delay=10)
"""In its sessions, two messages come before one that has a mark."""
_EXPIRES: Final = 21
_EXPIRES_SOONER: Final = 20
_SILENT: Final = 10
_TODAY: Final = 1_790_000_000_000_000_000
"""An arrival time of our days, of which floats leave out most; a multiple of what they know."""

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
_ENDING: Final = ((WindowSpec(slide=5), "ekwuco"), (_SESSION, "uco"), (_COUNT, "uo"))
"""Windows, and marks at which user code around them exits."""
_REFUSED: Final = "pr"
"""Marks that a case's own codec refuses."""
_LAST_OF_GENERATORS: Final[tuple[What, ...]] = ("end", "failed", "exited")
_ON_ERROR: Final[tuple[OnError, ...]] = ("skip", "stop")


def timed_tour(tone: Tone) -> list[ConformanceCase]:
    """Return the tour's cases; `tame`: for `trusting` mode, without operators that alter."""
    # At least every second log goes on, so that not every failure is one at the end of the log.
    found = [
        replace(case, ended=case.ended and number % 2 == 0) for number, case in enumerate(_cases())
    ]
    if tone == "tame":
        found = [replace(case, isolation="trusting") for case in found if not case.alters]
    return list(dict.fromkeys(found))


def _cases() -> Iterator[ConformanceCase]:
    yield from _windows()
    yield from _states()
    yield from _without_times()
    for window, time in product((*_RANGES, *_SESSIONS), EVENT_TIMES):
        if time != _TIME:
            yield _alone(_LETTER, _window(window), sources=(_source(time),))
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
    yield from _after_what_has_gone()
    yield from _silent_and_back()
    yield from _left_out()
    yield from _behind_delays()
    yield from _side_by_side()
    yield from _visited_on_two_ways()
    yield from _failing_behind_another()
    yield from _after_the_end()


def _windows() -> Iterator[ConformanceCase]:
    """Yield cases with every window, and each aggregation, key extractor and mark there."""
    for window, aggregation, key in product(_WINDOWS, AGGREGATIONS, (None, *KEYS)):
        plain = window.kind == "count" or (window.kind == "range" and window.slide is None)
        few = aggregation in _FEW_AGGREGATIONS or key in _FEW_KEYS
        if not few and (plain or aggregation in COMBINING):
            yield _alone(key, step(aggregation, window=window))
    for window, (aggregation, key) in product(_ALL, _LATE_AS_ANY):
        yield _alone(key, step(aggregation, window=window))
    for window, mark in product(_WINDOWS, MARKS):
        yield _alone(_LETTER, _window(window), mark, codec=mark in _REFUSED)
    uncombined = [name for name in AGGREGATIONS if name not in COMBINING]
    for aggregation, window in product(uncombined, (_RANGE, WindowSpec("count", 3))):
        yield _alone(_LETTER, step(aggregation, window=window), codec=True)
    for aggregation, mark in product(AGGREGATIONS.having(Trait.FINDING), "uc"):
        yield _alone(_LETTER, step(aggregation, window=_JOINED), mark)
    for window in _WINDOWS:
        yield _alone(_LETTER, _window(window), expires=_EXPIRES)  # the state behind it
        behind = _window(WindowSpec(size=5))  # the event times show there
        yield graph(step(_LETTER), _window(window), behind, inputs=_inputs(""))


def _states() -> Iterator[ConformanceCase]:
    """Yield cases with every state computation, and each key extractor and mark there."""
    states = [
        *STATE_COMPUTATIONS.choices("any", triples=True),
        *STATE_MULTI_COMPUTATIONS.choices("any", triples=True),
    ]
    for state, key, expires in product(states, (None, *KEYS), (None, _EXPIRES)):
        for mark in ("", "b") if key in _FEW_KEYS else ("", "b", "s", "k", "f", "d", *_REFUSED):
            at_last = record(200, "", "tick")  # when no entity is left
            case = _alone(key, step(state), mark, codec=mark in _REFUSED, expires=expires)
            yield replace(case, inputs=(*case.inputs, at_last))
            yield replace(case, inputs=_inputs("", ticks=False))


def _without_times() -> Iterator[ConformanceCase]:
    """Yield cases in which one of two sources has frames, or none, and none that brings a time.

    What counts there is how long the log has gone on, whether it begins in 1970 or not.
    """
    steps = (step("merge", 0, 1), _window(_RANGE))
    # When it holds nothing back any more, the frame of the eighth's time is late.
    of_all = [(payload, one, 1_000, 15) for payload in ("", *_BAD_FRAMES) for one in (_TIME, None)]
    for payload, time, begins, idle_after in (*of_all, ("", _TIME, 0, _FRAMES[7][0])):
        bad = [record(at, payload, source=1) for at in (1, 7, 14) if payload]
        inputs = sorted([*_inputs(""), *bad], key=lambda entry: entry.at)
        sources = (_source(time), _source(idle_after=idle_after))
        yield graph(*steps, sources=sources, inputs=_later(inputs, begins))


def _two_sources() -> Iterator[ConformanceCase]:
    """Yield cases whose sources hold one another back, each log ended where windows are due."""
    inputs = [
        record(number, f"{letter} {time} {number}", source=source)
        for number, (source, letter, time) in enumerate(_FRAMES_OF_TWO)
    ]
    for window, last in product((*_RANGES, *_SESSIONS), range(4, len(inputs) + 1)):
        steps = (step("merge", 0, 1), step(_LETTER), _window(window))
        yield graph(*steps, sources=(_source(),) * 2, inputs=inputs[:last], ended=False)


def _idle() -> Iterator[ConformanceCase]:
    """Yield cases whose source is silent for exactly as long as makes it idle, or for less.

    Behind them, cases in which time passes until a frame comes that gives no message.
    """
    windows = (*_RANGES, *_SESSIONS, _TIMEOUT)  # the count window's timeout is one of these times
    for window, silent, less in product(windows, (5, 8, 10), (0, 1)):
        inputs = (record(0, "a 5 0"), record(0, "a 10 1"), record(silent, "", "tick"))
        sources = (_source(idle_after=silent + less),)
        yield _keyed(_window(window), sources=sources, inputs=inputs, ended=False)
    for time, window in ((None, _RANGE), (None, _SESSION), (_TIME, _TIMEOUT)):
        # Frames that give no message move time, too; and what they make due comes before them.
        for payload, mark in product(("a 5 ", "?", "a x e"), ("", "o")):
            fired = (record(0, "a 5 0" + mark), record(40, payload))
            yield _keyed(_window(window), sources=(_source(time),), inputs=fired, ended=False)
    for payload in ("?", "a 5 "):  # nothing has an event time when the source becomes idle
        quiet = (
            record(5, payload),
            record(60, "", "tick"),
            record(70, "a 3 0"),
            record(71, "a 25 1"),
        )
        sources = (_source(idle_after=30),)
        yield graph(_window(_RANGE), sources=sources, inputs=quiet, ended=False)


def _branched() -> Iterator[ConformanceCase]:
    """Yield cases whose messages go two ways, to an entity that both share, and come together."""
    for operator, key in product(_COMPUTATIONS, (None, _LETTER)):
        keys = () if key is None else (step(key),)
        for after in (
            (step(_STATE), step(_STATE, 1)),
            (step(_DROP), step(_DOUBLED, 1), step("merge", 0, 1)),
        ):
            yield graph(*keys, step(operator), *after, inputs=_inputs("d"), shared=True)


def _of_a_frame_and_a_value() -> Iterator[ConformanceCase]:
    """Yield cases in which messages of a generator, and of frames before them, fail."""
    sources = (_source(), _source(generator=True))
    for chosen, marks in ((step(_STATE), "kbw"), (_window(_RANGE), "euo")):
        for mark in marks:
            inputs = [record(0, f"a {one} {one}{mark}", source=one % 2) for one in range(1, 5)]
            inputs.append(record(0, "", "failed", 1))
            yield graph(step("merge", 0, 1), step(_LETTER), chosen, sources=sources, inputs=inputs)


def _stopped() -> Iterator[ConformanceCase]:
    """Yield cases that end at their first dead letter (dead-4), or at an exit (dead-3)."""
    for chosen, mark in product((_window(_RANGE), step(_STATE)), ("", *MARKS)):
        yield _alone(_LETTER, chosen, mark, on_error="stop")
    for window, marks in _ENDING:
        for mark in marks:
            yield _alone(_LETTER, _window(window), mark + ENDS_THE_RUN)
    for mark in "bs":
        yield _alone(_LETTER, step(_STATE), mark + ENDS_THE_RUN)
    for payload in _BAD_FRAMES:
        case = _alone(_LETTER, _window(_RANGE), on_error="stop")
        yield replace(case, inputs=(*case.inputs[:5], record(1, payload), *case.inputs[5:]))


def _in_every_order() -> Iterator[ConformanceCase]:
    """Yield cases in which each message of a window has the least time, or the greatest."""
    windows = (_RANGES[1], WindowSpec("session", 9), WindowSpec("count", 3))
    # The first two times are in one window of each kind, the last one ends it.
    for window, times in product(windows, permutations((1, 4, 12))):
        inputs = [record(at, f"a {time} {at}") for at, time in enumerate((*times, *times))]
        yield _keyed(_window(window), inputs=inputs)


def _around_what_is_due() -> Iterator[ConformanceCase]:
    """Yield cases in which a message comes when something is due by arrival time, or near it."""
    full_or_due = WindowSpec("count", 2, timeout=10)
    steps = [
        (_window(window), due) for window, due in ((_RANGE, 9), (_SESSION, 5), (full_or_due, 10))
    ]
    for (chosen, due), beside in product((*steps, (step(_STATE), _EXPIRES)), (-1, 0, 1)):
        inputs = (record(1, "a 5 0"), record(1 + due + beside, "a 5 1"))
        yield _by_arrival(chosen, inputs=inputs, expires=_EXPIRES)


def _visited_by_what_fails() -> Iterator[ConformanceCase]:
    """Yield cases in which an entity is still there, or just gone, behind a call that failed."""
    for state, mark, later in product(_STATES, "bs", (0, 1)):
        failed = 1 + _EXPIRES // 2
        times = ((1, "0"), (failed, f"1{mark}"), (failed + _EXPIRES - 1 + later, "2"))
        inputs = [record(at, f"a 5 {text}") for at, text in times]
        yield _by_arrival(step(state), inputs=inputs, expires=_EXPIRES)


def _failing_together() -> Iterator[ConformanceCase]:
    """Yield cases with windows due together, of which some give nothing and one fails."""
    for marks in permutations(("n", "o", "")):
        pairs = enumerate(zip("abc", marks, strict=True))
        inputs = [record(0, f"{letter} 5 {number}{mark}") for number, (letter, mark) in pairs]
        yield _keyed(_window(_RANGE), inputs=[*inputs, record(0, "a 20 3")], ended=False)


def _equal() -> Iterator[ConformanceCase]:
    """Yield cases with messages that are equal, and that user code, or a codec, tells apart."""
    inputs = [record(0, f"a {one} t") for one in ("1", "yes", "one", "1")]
    fields: dict[str, Any] = {"sources": (_source(None),), "inputs": inputs}
    for operator in _COMPUTATIONS:
        yield graph(step(operator), codec=True, **fields)
    lasts = (step(_STATE), _window(_COUNT))
    for operators, key, last in product(
        ((), *[(step(name),) for name in _COMPUTATIONS]), _FEW_KEYS, lasts
    ):
        yield graph(*operators, step(key), last, ended=False, **fields)


def _behind_one_another() -> Iterator[ConformanceCase]:
    """Yield cases with each sort of step right behind every other, and a state that shows keys."""
    [*_, pair, _] = KEYS
    steps = (
        *[step(name) for name in (_DROP, _DOUBLED, pair, _STATE, "collect")],
        *[_window(window) for window in _ONE_OF_EACH],
        step("merge", 0, 1),
    )
    for one, other in product(steps, steps):
        yield _keyed(one, other, step(_STATE), inputs=_inputs("", ticks=False))


def _ended_by_generators() -> Iterator[ConformanceCase]:
    """Yield cases in which a generator ends, fails or exits, and windows are due by that."""
    windows = (*_RANGES[:2], *_SESSIONS, _TIMEOUT)
    steps = [*[_window(window) for window in windows], step(_STATE)]
    given = ((0, 5), (1, 3), (0, 16), (0, 40))
    values = [
        record(at, f"a {time} {at}", source=source) for at, (source, time) in enumerate(given)
    ]
    for what, chosen, on_error in product(_LAST_OF_GENERATORS, steps, _ON_ERROR):
        yield graph(
            *(step("merge", 0, 1), step(_LETTER), chosen),
            sources=(_source(generator=True),) * 2,
            inputs=(*values[:3], record(20, "", what, 1), *values[3:]),
            on_error=on_error,
        )


def _at_the_end_of_time() -> Iterator[ConformanceCase]:
    """Yield cases with the last event time, and others before it; windows end behind it."""
    last = TIME_END - 1
    windows = (*_RANGES, *_SESSIONS, _COUNT)
    for window, times in product(windows, ((last,), (last - 20, last, last - 3), (5, last, 3))):
        inputs = [record(0, f"a {time} {number}") for number, time in enumerate(times)]
        yield _keyed(_window(window), inputs=inputs)


def _done() -> Iterator[ConformanceCase]:
    """Yield cases whose pipelines have no sink, with each sort of step as the last one."""
    last = (
        *[step(name) for name in (*_COMPUTATIONS, _LETTER, _STATE, "collect")],
        *[_window(window) for window in _ONE_OF_EACH],
        step("merge", 0, 1),
    )
    for chosen, sink in product(last, (False, True)):
        other = replace(chosen, origins=(1, *chosen.origins[1:]))
        case = _keyed(step(_STATE), chosen, other, inputs=_inputs(""), ended=sink)
        sinks = (SinkSpec(FIRST_STEP + 1, _ENCODER),) if sink else ()
        yield replace(case, sinks=sinks)


def _after_what_has_gone() -> Iterator[ConformanceCase]:
    """Yield cases whose key meets windows, or an entity, one after the other.

    Each has a time at which it is due. A message comes when less of it has gone by since the one
    before, or more; so what is due next is often due soon after what has gone already was.
    """
    windows = (
        *[WindowSpec("count", size, timeout=10) for size in (2, 3)],
        *(WindowSpec("session", 10), _RANGE),
    )
    steps = [*[(_window(one), 10) for one in windows], (step(_STATE), _EXPIRES_SOONER)]
    for chosen, due in steps:
        failing = "b" if chosen.window is None else "u"
        for gaps, mark in product(product((due * 4 // 10, due * 7 // 10), repeat=3), ("", failing)):
            arrivals = [0, gaps[0], sum(gaps[:2]), sum(gaps)]
            inputs = [
                record(at, f"a 5 {number}{mark * (number == 0)}")
                for number, at in enumerate(arrivals)
            ]
            began = _TODAY if mark else 0
            yield _by_arrival(chosen, inputs=_later(inputs, began), expires=_EXPIRES_SOONER)


def _silent_and_back() -> Iterator[ConformanceCase]:
    """Yield cases in which a source falls silent, comes back, and the other goes on after it."""
    for before, back, idle in product(
        ("", "a 3 1", "a x 1"), ("a 4 2", "a 16 2", "a x 2"), (None, 3 * _SILENT)
    ):
        inputs = (
            record(0, "a 5 0"),
            *([record(1, before, source=1)] if before else ()),
            record(4 * _SILENT, "", "tick"),
            record(4 * _SILENT + 1, back, source=1),
            record(4 * _SILENT + 2, "a 35 3"),
            *[record(4 * _SILENT + 3, payload) for payload in ("a 6 4", "a 17 5")],
            record(5 * _SILENT + 1, "", "tick"),
            record(6 * _SILENT, "a 7 6"),
        )
        yield graph(
            *(step("merge", 0, 1), step(_LETTER), _window(_RANGE)),
            sources=(_source(idle_after=idle), _source(idle_after=_SILENT)),
            inputs=_later(inputs, 0 if idle else _TODAY),
            ended=False,
        )


def _left_out() -> Iterator[ConformanceCase]:
    """Yield cases in which nothing holds windows back, or only a source of another step."""
    after = 2 * _SILENT
    inputs = (
        record(0, "a x 0"),
        record(after, "", "tick"),
        record(after + 1, "a 5 1"),
        record(after + 1, "a 15 2"),
    )
    for kind in _KINDS:
        sources = (_source(idle_after=_SILENT),)
        yield _keyed(_window(kind), sources=sources, inputs=inputs, ended=False)
        apart = (record(0, "a 5 0"), record(10, "a 15 1"))
        both = (_source(),) * 2
        yield graph(_window(kind, 1), _window(kind, 1), sources=both, inputs=apart, ended=False)


def _behind_delays() -> Iterator[ConformanceCase]:
    """Yield cases in which windows wait behind one another, or on two ways to another window."""
    inputs = [
        record(time, f"{'ab'[time % 2]} {time} {time}") for time in (1, 7, 12, 3, 18, 23, 31, 44)
    ]
    last = _window(WindowSpec(size=5))
    for first, second, left in product((0, 5, 10), (0, 5, 10), (0, 1)):
        one, other = WindowSpec(size=5, delay=first), WindowSpec(size=5, delay=second)
        merge = step("merge", left, 1 - left)
        ways: list[tuple[StepSpec, ...]] = [(_window(other, 1), merge), (_window(other),)]
        if not second:
            ways.append((merge,))
        for way in ways[left:] if first != second else ():
            yield _keyed(_window(one), *way, last, inputs=inputs, ended=False)
    for delay, kind in product((0, 5), (_RANGE, _SESSION)):
        at_once = (record(0, "a 5 0"), record(0, f"a {10 + delay} 1"))
        chained = (_window(replace(kind, delay=delay)), _window(_RANGE))
        yield graph(*chained, inputs=at_once, ended=False)


def _side_by_side() -> Iterator[ConformanceCase]:
    """Yield cases in which windows are due together: of some keys, or on two branches."""
    at_one_time = [record(0, text) for text in ("c 5 0", "a 5 1", "b 5 2")]
    for kind, more in product(_KINDS, ("", "a", "b")):  # its session ends later than the others
        later = (record(0, f"{more} 7 3"),) if more else ()
        due = (record(10, "d 10 4"), record(40, "d 40 5"))
        yield _keyed(_window(kind), inputs=(*at_one_time, *later, *due), ended=False)
    for one, other, mark in product(_KINDS, _KINDS, ("", "o")):
        given = ("a 2 0", "b 1 1", f"a 3 2{mark}", "b 4 3")
        inputs = [*[record(at, text) for at, text in enumerate(given)], record(30, "c 30 5")]
        steps = (_window(one), _window(other, 1), step("merge", 0, 1), step(_STATE))
        yield _keyed(*steps, inputs=inputs, ended=False, expires=_EXPIRES_SOONER)


def _visited_on_two_ways() -> Iterator[ConformanceCase]:
    """Yield cases in which two steps share an entity, and some messages come only to one."""
    given = ((0, ""), (12, "d"), (24, ""), (36, "d"), (48, "d"), (60, ""))
    inputs = [record(at, f"a 5 {at}{mark}") for at, mark in given]
    for ways in (
        (step(_DROP), step(_STATE), step(_STATE, 2)),
        (step(_STATE), step(_DROP, 1), step(_STATE)),
    ):
        yield _keyed(*ways, inputs=inputs, shared=True, expires=_EXPIRES_SOONER)


def _failing_behind_another() -> Iterator[ConformanceCase]:
    """Yield cases in which all fails that windows behind windows give: the lineages show."""

    def inputs(mark: str) -> list[Input]:
        return [record(at, f"{'ab'[at % 2]} {at} {at}{mark}") for at in (1, 2, 3, 4, 30, 31)]

    kinds = (*_KINDS, _COUNT)
    for one, other in product(kinds, kinds):
        yield _keyed(_window(one), _window(other), inputs=inputs("w"))
    for behind in (
        *[(step(name),) for name in (*_COMPUTATIONS, _LETTER, "collect", _STATE)],
        (step(_STATE), step(_STATE, 1)),
        (_window(_RANGE, 1), step("merge", 0, 1)),
        (step(_COMPUTATIONS[0]), step("merge", 0, 1)),
    ):
        yield _keyed(_window(_RANGE), *behind, inputs=inputs("w"))
    for window, mark in product((*kinds, WindowSpec(slide=5)), "uo"):
        yield _keyed(_window(window), inputs=inputs(mark), on_error="stop")


def _after_the_end() -> Iterator[ConformanceCase]:
    """Yield cases in which a count window's timeout comes when every source has ended."""
    inputs = (record(0, "a 5 0"), record(0, "", "end"), record(30, "", "tick"))
    for late, kind in product(_POLICIES, (_RANGE, _SESSION)):
        if kind is _RANGE or late != "place-in-oldest-window":
            yield _keyed(_window(_TIMEOUT), _window(replace(kind, late=late)), inputs=inputs)


def _window(window: WindowSpec, origin: int = 0) -> StepSpec:
    return step(_TEXTS, origin, window=window)


def _source(
    event_time: str | None = _TIME, idle_after: int | None = None, *, generator: bool = False
) -> SourceSpec:
    return replace(TIMED_SOURCE, event_time=event_time, idle_after=idle_after, generator=generator)


def _alone(key: str | None, chosen: StepSpec, mark: str = "", **fields: Any) -> ConformanceCase:
    """Return a case with a step behind a key, and a state behind it, over the same records."""
    keys = () if key is None else (step(key),)
    alters = key in ALTERING or chosen.operator in ALTERING
    behind = () if alters else (step(_STATE),)
    return graph(*keys, chosen, *behind, inputs=_inputs(mark), **fields)


def _keyed(*steps: StepSpec, **fields: Any) -> ConformanceCase:
    """Return a case with steps behind a key."""
    return graph(step(_LETTER), *steps, **fields)


def _by_arrival(chosen: StepSpec, **fields: Any) -> ConformanceCase:
    """Return a case with a step behind a key, by arrival times, whose log goes on."""
    return _keyed(chosen, sources=(_source(None),), ended=False, **fields)


def _later(inputs: Sequence[Input], by: int) -> list[Input]:
    return [replace(entry, at=entry.at + by) for entry in inputs]


def _inputs(mark: str, *, ticks: bool = True) -> tuple[Input, ...]:
    """Return the records of most cases, some with a mark."""
    entries = []
    for number, (at, letter, time) in enumerate(_FRAMES):
        entries.append(record(at, f"{letter} {time} {number}{mark * (number in _MARKED)}"))
    for at, behind in reversed(_TICKS) if ticks else ():
        entries.insert(behind, record(at, "", "tick"))
    return tuple(entries)
