"""Interpreters with a fault each in time: watermarks, ticks, ends, event times, expiry."""

# ruff: noqa: D101, D102 - `second_part` says what each does

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from wallaroo_reference.isolated.copies import freeze, thaw
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.isolated.ranges import RangeStep
from wallaroo_reference.isolated.watermarks import FOREVER, NEVER, Watermark, Watermarks
from wallaroo_reference.isolated.windows import Firing, WindowStep
from wallaroo_reference.places import Place, Store

from wallaroo.components import EventTime
from wallaroo.judging import DeadLetterError
from wallaroo.records import End, Tick, Value
from wallaroo.times import TIME_END
from wallaroo.topology import Application, Source
from wallaroo.trace import Lineage, Reason

_arrive = Watermarks.arrive


def greatest_of_sources(self: Watermarks, ways: dict[str, int]) -> Watermark:
    """Return the greatest watermark of a step's sources."""
    found = [(self._of_source(self._sources[name]), delay) for name, delay in ways.items()]
    return max([mark - delay for mark, delay in found if mark is not None], default=NEVER)


def forever_without_sources(self: Watermarks, ways: dict[str, int]) -> Watermark:
    """Return what the least of no watermarks is, where no source holds back."""
    found = [(self._of_source(self._sources[name]), delay) for name, delay in ways.items()]
    return min([mark - delay for mark, delay in found if mark is not None], default=FOREVER)


def delays_ignored(self: Watermarks, ways: dict[str, int]) -> Watermark:
    """Return the least watermark of a step's sources, as if no window on the way waited."""
    found = [self._of_source(self._sources[name]) for name in ways]
    return min([mark for mark in found if mark is not None], default=NEVER)


def never_back(self: Watermarks, ways: dict[str, int]) -> Watermark:
    """Return the least of the greatest watermarks that a step's sources have had."""
    marks = self.__dict__.setdefault("_marks", {})
    found = []
    for name, delay in ways.items():
        mark = self._of_source(self._sources[name])
        if mark is not None:
            marks[name] = max(mark, marks.get(name, NEVER))
            found.append(marks[name] - delay)
    return min(found, default=NEVER)


def idle_at_once(self: Watermarks, source: Any) -> Watermark | None:
    """Let time run on behind each frame, not only when a source has been idle long enough."""
    if source.ended:
        return FOREVER
    if source.by_arrival:
        return self.now
    if source.idle_after is None or source.last_frame is None or source.greatest == NEVER:
        return source.greatest  # type: ignore[no-any-return]  # the source is not typed here
    return source.greatest + self.now - source.last_frame  # type: ignore[no-any-return]  # nor here


def never_idle(self: Watermarks, source: Any) -> Watermark | None:
    """Wait for an idle source for ever."""
    if source.ended:
        return FOREVER
    return self.now if source.by_arrival else source.greatest


def begun_when_not_0(self: Watermarks, at: int, source: str | None) -> None:
    """Take the first arrival time that is not 0 for that of the first record."""
    if self.first == 0:
        self.first = None
    _arrive(self, at, source)


def never_ended(self: Watermarks, source: str) -> None:
    """Take no notice of an end."""


def only_own_frames(self: Watermarks, at: int, source: str | None) -> None:
    """Let time go on with frames only."""
    if source is not None or self.first is None:
        self.now = max(self.now, at)
    if self.first is None:
        self.first = self.now
    if source is not None:
        self._sources[source].last_frame = self.now


class OwnLetterFirst(Interpreter):
    """A frame's own dead letter is written before what the frame makes due."""

    def _decode(self, place: Place, payload: bytes, lineage: Lineage) -> None:
        before = len(self.dead_letters)
        super()._decode(place, payload, lineage)
        self.dead_letters[before:] = sorted(
            self.dead_letters[before:], key=lambda letter: letter.lineage != lineage
        )


class PayloadOfBefore(Interpreter):
    """A value of a generator goes on with the payload of the frame before it."""

    def feed(self, source: str, payloads: Sequence[bytes], at: int = 0) -> None:
        super().feed(source, payloads, at)
        self._before: bytes | None = payloads[-1]

    def _generate(self, record: Value, lineage: Lineage) -> None:
        self._payload = getattr(self, "_before", None)
        super()._generate(record, lineage)


class TicksUncounted(Interpreter):
    def take(self, record: Value | Tick | End) -> None:
        super().take(record)
        if isinstance(record, Tick):
            self.sequence -= 1


class TicksFireNothing(Interpreter):
    def _take_turns(self, lineage: Lineage) -> None:
        if self._source is not None:
            super()._take_turns(lineage)


class EventTimeTakesMessage(Interpreter):
    def _begin(self, place: Place, message: Any, lineage: Lineage) -> None:
        if message is not None and self._find_time is not None:
            mine = thaw(message)
            try:
                self._find_time.call(mine)
                message = freeze(mine)
            except Exception:  # noqa: BLE001, S110 - the call that counts raises it again
                pass
        super()._begin(place, message, lineage)


class ArrivalTimeInstead(Interpreter):
    def _event_time(self, event_time: EventTime, message: Any) -> int:
        try:
            return super()._event_time(event_time, message)
        except DeadLetterError:
            return self._watermarks.now


class EventTimeLost(Interpreter):
    """Messages that a computation makes have the arrival time."""

    def _compute(self, place: Place, message: Any, lineage: Lineage) -> None:
        before = self._context
        self._context = replace(before, time=self._watermarks.now)
        super()._compute(place, message, lineage)
        self._context = before


class ZeroIsNoTime(Interpreter):
    def _event_time(self, find: EventTime, message: Any) -> int:
        return super()._event_time(find, message) or self._watermarks.now


class LastIsNoTime(Interpreter):
    def _event_time(self, find: EventTime, message: Any) -> int:
        time = super()._event_time(find, message)
        if time == TIME_END - 1:
            raise DeadLetterError(Reason.BAD_TIME, "no 64 bits with a sign hold what comes next")
        return time


class EndsIn64Bits(RangeStep):
    """A window's end begins again behind the last time that 64 bits with a sign can hold."""

    def due(self, now: int) -> Iterator[Firing]:
        return (replace(one, end=one.end % TIME_END) for one in super().due(now))


class ShortestWay(Interpreter):
    """Where a source comes to a step over several ways, the least of their delays counts."""

    def __init__(self, application: Application, *arguments: Any, **options: Any) -> None:
        super().__init__(application, *arguments, **options)
        for (_, ways), index in zip(self._windows.values(), application.window_steps, strict=True):
            ways.update(_least_delays(application, index))


def _least_delays(application: Application, index: int) -> dict[str, int]:
    found: dict[str, int] = {}
    for origin in getattr(application.nodes[index], "inputs", ()):
        node = application.nodes[origin]
        if isinstance(node, Source):
            found[node.pipeline] = 0
            continue
        delay = getattr(getattr(getattr(node, "operation", None), "windows", None), "delay", 0)
        for name, before in _least_delays(application, origin).items():
            found[name] = min(found.get(name, before + delay), before + delay)
    return found


class ExpiresBehindWhatIsDue(Interpreter):
    """Windows that a record makes due meet entities that its arrival time makes expire."""

    def _arrive(self, at: int, frame_of: str | None) -> None:
        expiring, self._expiring = self._expiring, []
        super()._arrive(at, frame_of)
        self._expiring = expiring

    def _take_turns(self, lineage: Lineage) -> None:
        super()._take_turns(lineage)
        for store in self._expiring:
            store.expire(self._watermarks.now)


class OneFailureATurn(Interpreter):
    """Where a window fails, the others that are due at its step give nothing."""

    def _fire(self, place: Place, step: WindowStep, firing: Firing, lineage: Lineage) -> None:
        failed = self.__dict__.setdefault("_failed", set())
        if (place, lineage[:-1]) not in failed:
            letters = len(self.dead_letters)
            super()._fire(place, step, firing, lineage)
            if any(letter.step == place.step for letter in self.dead_letters[letters:]):
                failed.add((place, lineage[:-1]))


class OwnMessageFirst(Interpreter):
    def _begin(self, place: Place, message: Any, lineage: Lineage) -> None:
        if message is not None and self._find_time is not None:
            try:
                time = self._event_time(self._find_time, message)
            except DeadLetterError:
                super()._begin(place, message, lineage)
                return
            assert self._source is not None
            self._watermarks.move(self._source, time)
            self._context = replace(self._context, time=time)
        if message is not None:
            self._follow(place, message, lineage)
        self._take_turns(lineage)


class LaterStepsFirst(Interpreter):
    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._windows = dict(reversed(self._windows.items()))


def _expire(store: Any, now: int, after: int) -> None:
    for known, visit in list(store.visits.items()):
        if now - visit >= after:
            del store.visits[known], store.entities[known]


def expires_late(self: Store[Any], now: int) -> None:
    """Forget entities a nanosecond late."""
    _expire(self, now, (self.partition.expire_after or 0) + 1)


def expires_early(self: Store[Any], now: int) -> None:
    """Forget entities a nanosecond early."""
    _expire(self, now, (self.partition.expire_after or 0) - 1)


def first_visit_counts(self: Store[Any], known: Hashable, now: int) -> None:
    """Note the first visit only."""
    if self.partition.expire_after is not None:
        self.visits.setdefault(known, now)
