"""Mutants of the compiled engine: faults in its windows, its keys and its time."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import wallaroo_reference.compiled.machine
import wallaroo_reference.compiled.ranges
import wallaroo_reference.compiled.windows
from wallaroo_conformance.killing import Mutant
from wallaroo_reference.compiled.clocks import Times
from wallaroo_reference.compiled.codegen import Program
from wallaroo_reference.compiled.entities import Entities
from wallaroo_reference.compiled.windows import StepWindows, key_of, own

from wallaroo.operations import Collect
from wallaroo.times import event_time_from
from wallaroo.topology import Step
from wallaroo.windowing.kinds import Count, Counts, Incoming, Ranges, Taken
from wallaroo.windowing.watermarks import NO_TIME, SourceTime
from wallaroo_mutants.compiling import compiled_mutant

_line = Program.line
_step = Program._step
_taken = Counts.take
_turn = Times.turn
_updated = StepWindows.updated
_pane_for = Ranges.pane_for
_combined = StepWindows.combined
_enter = Entities.enter
_held_back_by = Times._held_back_by
_watermark = SourceTime.watermark


def _only_the_first_copied(self: StepWindows, parts: Sequence[Any], shared: int = 0) -> Any:
    first = len(parts) - shared
    copied = [own(part) for part in parts[first : first + 1]]
    return _combined(self, [*parts[:first], *copied, *parts[first + 1 :]])


def _opened(self: Counts, windows: Count) -> int:
    return windows.opened


def _tuples_visited_once(self: Entities, key: Any, now: int) -> Any:
    known = self.judge(key)
    visited = self.visits.get(known)
    state = _enter(self, key, now)
    if visited is not None:
        self.visits[known] = visited
    return state


def _since_the_first_record(self: SourceTime, now: int, first: int | None) -> float | None:
    last = self.last_frame
    if self.greatest == NO_TIME:
        self.last_frame = None
    try:
        return _watermark(self, now, first)
    finally:
        self.last_frame = last


def _held_back_further(self: Times, ways: Mapping[str, int]) -> float:
    return _held_back_by(self, ways) - 1


def _idle_a_record_later(self: SourceTime, now: int, first: int | None) -> float | None:
    was = self.idle_after
    if was is not None and self.last_frame == now - was:
        self.idle_after = None
    try:
        return _watermark(self, now, first)
    finally:
        self.idle_after = was


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


def _begins_with_the_first_two(
    self: Counts, aggregation: Any, windows: Count | None, incoming: Incoming
) -> Taken:
    after, firing, counted = _taken(self, aggregation, windows, incoming)
    if windows is None or windows.number == 1:
        return after, firing, counted
    if firing is not None:
        firing = firing._replace(start=windows.least)
    return after and after._replace(least=windows.least), firing, counted


def _all_watermarks_first(self: Times, fire: Callable[[int], None]) -> None:
    self.catch_up()
    _turn(self, fire)


def _late_within_the_delay(self: Ranges, time: int, first_open: float) -> tuple[int | None, bool]:
    if (time - self._delay) // self._slide < first_open:
        return None, False
    return _pane_for(self, time, first_open)


def _exits_in_windows_are_errors(self: StepWindows, message: Any, part: Any) -> Any:
    try:
        return _updated(self, message, part)
    except SystemExit as error:
        raise ValueError from error


def _combined_at_once(self: StepWindows, parts: Sequence[Any]) -> Any:
    return self.combined(parts)


def _combined_if_true(self: StepWindows, parts: Sequence[Any], shared: int = 0) -> Any:
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
        (Ranges, "pane_for", _late_within_the_delay),
    ),
    compiled_mutant(
        "dead-3",
        "exits in an aggregation are errors",
        "`except BaseException` around the calls of windows",
        (StepWindows, "updated", _exits_in_windows_are_errors),
    ),
    compiled_mutant(
        "window-5",
        "only the first of shared panes copied",
        "`combine` alters the earlier one, but it may also give the later one",
        (StepWindows, "combined", _only_the_first_copied),
    ),
    compiled_mutant(
        "window-8",
        "timeouts in the order of opening",
        "timers in the order in which they were set",
        (Counts, "end", _opened),
    ),
    compiled_mutant(
        "window-9",
        "sessions half joined",
        "no undo where the second of two calls raises",
        (StepWindows, "joined", _combined_at_once),
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
        (SourceTime, "watermark", _idle_a_record_later),
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
        (SourceTime, "watermark", _since_the_first_record),
    ),
    compiled_mutant(
        "window-4",
        "combine asked for its truth",
        "`combine(earlier, later) or earlier`, where 0 is a result",
        (StepWindows, "combined", _combined_if_true),
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
