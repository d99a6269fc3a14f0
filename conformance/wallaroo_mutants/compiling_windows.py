"""Mutants of the compiled engine: faults in its windows, its keys and its time."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import wallaroo_reference.compiled.machine
import wallaroo_reference.compiled.ranges
import wallaroo_reference.compiled.sessions
import wallaroo_reference.compiled.windows
from wallaroo_conformance.killing import Mutant
from wallaroo_reference.compiled.clocks import Clock, Times
from wallaroo_reference.compiled.codegen import Program
from wallaroo_reference.compiled.counts import Counts
from wallaroo_reference.compiled.entities import Entities
from wallaroo_reference.compiled.ranges import RangePanes
from wallaroo_reference.compiled.windows import (
    NOTHING,
    Firing,
    KeptWindows,
    judge,
    key_of,
    own,
)

from wallaroo.operations import Collect
from wallaroo.times import event_time_from
from wallaroo.topology import Step
from wallaroo_mutants.compiling import compiled_mutant

_line = Program.line
_step = Program._step
_taken = Counts.take
_turn = Times.turn
_updated = KeptWindows.updated
_take_in = RangePanes.take
_combined = KeptWindows.combined
_enter = Entities.enter
_released_at = Times._released_at
_held_back_by = Times._held_back_by
_of_source = Times._of_source


def _only_the_first_copied(self: KeptWindows, parts: Sequence[Any], shared: int = 0) -> Any:
    first = len(parts) - shared
    copied = [own(part) for part in parts[first : first + 1]]
    return _combined(self, [*parts[:first], *copied, *parts[first + 1 :]])


def _as_they_were_opened(self: Counts) -> Iterator[Firing]:
    found: list[Hashable] = []
    while (time := self._calendar.first()) is not None and time <= self._times.now:
        found += self._calendar.take(time)
    for known in sorted(found, key=lambda known: self._open[known].opened):
        yield self._taken(known)


def _tuples_visited_once(self: Entities, key: Any, now: int) -> Any:
    known = self.judge(key)
    visited = self.visits.get(known)
    state = _enter(self, key, now)
    if visited is not None:
        self.visits[known] = visited
    return state


def _since_the_first_record(self: Times, clock: Clock) -> float:
    last, clock.last_frame = clock.last_frame, None
    try:
        return _released_at(self, clock)
    finally:
        clock.last_frame = last


def _held_back_further(self: Times, ways: Mapping[str, int]) -> float:
    return _held_back_by(self, ways) - 1


def _idle_a_record_later(self: Times, clock: Clock) -> float | None:
    was = clock.idle_after
    if was is not None and clock.last_frame == self.now - was:
        clock.idle_after = None
    try:
        return _of_source(self, clock)
    finally:
        clock.idle_after = was


def _bools_for_ints(self: Program, indent: int, text: str) -> None:
    _line(self, indent, text.replace(" is int and -", " in (int, bool) and -"))


def _keys_not_judged(self: Program, indent: int, text: str) -> None:
    _line(self, indent, "pass" if text.startswith("judge(") else text)


def _collects_in_loops_only(
    self: Program, indent: int, index: int, step: Step, message: str, skip: str
) -> None:
    if isinstance(step.operation, Collect) and not self._loops:
        self._follow(indent, index, message, skip)
    else:
        _step(self, indent, index, step, message, skip)


def _begins_with_the_first_two(self: Counts, message: Any, key: Any, time: int) -> Firing | None:
    window = self._open.get(judge(key))
    least = None if window is None or window.number == 1 else window.least
    firing = _taken(self, message, key, time)
    if window is None or least is None:
        return firing
    window.least = least
    return None if firing is None else (*firing[:2], least, *firing[3:])


def _all_watermarks_first(self: Times, fire: Callable[[int], None]) -> None:
    self.catch_up()
    _turn(self, fire)


def _late_within_the_delay(self: RangePanes, message: Any, key: Any, time: int) -> Firing | None:
    judge(key)
    self.refresh()
    if (time - self._delay) // self._slide <= self._fired_by(self.watermark):
        return self.late(message, key, time, self._policy)
    return _take_in(self, message, key, time)


def _exits_in_windows_are_errors(
    self: KeptWindows, message: Any, accumulator: Any = NOTHING
) -> Any:
    try:
        return _updated(self, message, accumulator)
    except SystemExit as error:
        raise ValueError from error


def _itself(value: Any) -> Any:
    return value


def _combined_if_true(self: KeptWindows, parts: Sequence[Any], shared: int = 0) -> Any:
    combine = self._combine

    def combined(earlier: Any, later: Any) -> Any:
        assert combine is not None  # several parts
        return combine(earlier, later) or earlier

    self._combine = combined
    try:
        return _combined(self, parts, shared)
    finally:
        self._combine = combine


def _by_text(known: Any) -> bytes:
    return str(key_of(known)).encode("utf-8", "surrogatepass")


def _by_a_float(result: Any) -> int:
    return (
        int(result.timestamp() * 1e9) if isinstance(result, datetime) else event_time_from(result)
    )


def _never_waiting(_self: Times, _source: str | None) -> bool:
    return False


COMPILED_WINDOW_MUTANTS: tuple[Mutant, ...] = (
    compiled_mutant(
        "window-5",
        "panes copied one level deep",
        "`copy.copy`, which shares what is inside",
        (wallaroo_reference.compiled.windows, "own", copy.copy),
    ),
    compiled_mutant(
        "time-4",
        "no turn with a frame that gives no message",
        "what time makes due is looked for behind the decoder",
        (Times, "is_waiting", _never_waiting),
    ),
    compiled_mutant(
        "key-2",
        "collect forgotten behind a merge",
        "in code that one function in two has, the old key goes on",
        (Program, "_step", _collects_in_loops_only),
    ),
    compiled_mutant(
        "window-8",
        "a count window's bounds of its first two messages",
        "a bound that is not widened any more",
        (Counts, "take", _begins_with_the_first_two),
    ),
    compiled_mutant(
        "time-4",
        "all watermarks first",
        "time moves on everywhere before anything fires",
        (Times, "turn", _all_watermarks_first),
    ),
    compiled_mutant(
        "window-6",
        "the delay for firing only",
        "the delay added where windows fire, and not where a message is called late",
        (RangePanes, "take", _late_within_the_delay),
    ),
    compiled_mutant(
        "dead-3",
        "exits in an aggregation are errors",
        "`except BaseException` around the calls of windows",
        (KeptWindows, "updated", _exits_in_windows_are_errors),
    ),
    compiled_mutant(
        "window-5",
        "only the first of shared panes copied",
        "`combine` alters the earlier one, but it may also give the later one",
        (KeptWindows, "combined", _only_the_first_copied),
    ),
    compiled_mutant(
        "window-8",
        "timeouts in the order of opening",
        "timers in the order in which they were set",
        (Counts, "due", _as_they_were_opened),
    ),
    compiled_mutant(
        "window-9",
        "sessions half joined",
        "no undo where the second of two calls raises",
        (wallaroo_reference.compiled.sessions, "own", _itself),
    ),
    compiled_mutant(
        "key-4",
        "further visits of tuples not noted",
        "one of two ways to an entity",
        (Entities, "enter", _tuples_visited_once),
    ),
    compiled_mutant(
        "route-2",
        "keys judged where they are used",
        "what is no key goes on until a state wants it",
        (Program, "line", _keys_not_judged),
    ),
    compiled_mutant(
        "time-3",
        "held back by what has come as far",
        "`>` where `>=` is meant",
        (Times, "_held_back_by", _held_back_further),
    ),
    compiled_mutant(
        "time-3",
        "idle a record later",
        "`>` where `>=` is meant, for silence",
        (Times, "_of_source", _idle_a_record_later),
    ),
    compiled_mutant(
        "route-2",
        "True a key",
        "`isinstance(key, int)`",
        (Program, "line", _bools_for_ints),
    ),
    compiled_mutant(
        "time-3",
        "silence counted from the first record",
        "frames without an event time are not heard",
        (Times, "_released_at", _since_the_first_record),
    ),
    compiled_mutant(
        "window-4",
        "combine asked for its truth",
        "`combine(earlier, later) or earlier`, where 0 is a result",
        (KeptWindows, "combined", _combined_if_true),
    ),
    compiled_mutant(
        "time-4",
        "keys in the order of their texts",
        "keys of several types sorted by `str`, where 10 comes before 9",
        (wallaroo_reference.compiled.ranges, "encoded", _by_text),
    ),
    compiled_mutant(
        "time-2",
        "moments made floats",
        "`timestamp() * 1e9`, which has 53 bits for 61",
        (wallaroo_reference.compiled.machine, "event_time_from", _by_a_float),
    ),
)
