"""Steps of sessions and of count windows with a fault each."""

# ruff: noqa: D101, D102 - `second_part` says what each does

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from wallaroo_reference.isolated.counts import CountStep
from wallaroo_reference.isolated.sessions import SessionStep
from wallaroo_reference.isolated.windows import Arrival, Firing, Freeze

from wallaroo.judging import DeadLetterError
from wallaroo.operations import Windowed
from wallaroo.windows import CountWindows, LateDataPolicy
from wallaroo_mutants.windowing import Silent


class SilentlyLateSession(Silent, SessionStep):
    pass


class OwnWindowIsSession(SessionStep):
    def _late(self, arrival: Arrival, policy: LateDataPolicy) -> Firing | None:
        own = super()._late(arrival, policy)
        return own and replace(own, end=own.start + self._windows.gap)


class CountHasGreatestTime(CountStep):
    def take(self, arrival: Arrival) -> Firing | None:
        full = super().take(arrival)
        return full and replace(full, time=full.end - 1)


class InTimeAtItsEnd(SessionStep):
    def take(self, arrival: Arrival) -> Firing | None:
        reached = self.watermark
        if arrival.time + self._windows.gap + self._windows.delay == reached:
            self.watermark = reached - 1
        own = super().take(arrival)
        self.watermark = reached
        return own


class TouchingSessions(SessionStep):
    def _meets(self, session: Any, time: int) -> bool:
        gap = self._windows.gap
        return bool(session.first <= time + gap and time <= session.last + gap)


class NarrowSessions(SessionStep):
    def _merged(self, parts: Any) -> Any:
        merged = super()._merged(parts)
        merged.last = parts[0].last
        return merged


class SessionsBackwards(SessionStep):
    def _merged(self, parts: Any) -> Any:
        return super()._merged(parts[::-1])


class SessionsHandedOut(SessionStep):
    """What `combine` gave is kept as it is; a call that fails may have altered it."""

    def _merged(self, parts: Any) -> Any:
        right, self._freeze = self._freeze, lambda value: value
        try:
            return super()._merged(parts)
        finally:
            self._freeze = right


class LateThoughMet(SessionStep):
    def take(self, arrival: Arrival) -> Firing | None:
        if arrival.time + self._windows.gap + self._windows.delay <= self.watermark:
            return self._late(arrival, self._windows.late)
        return super().take(arrival)


class LosesSessionsThatFail(SessionStep):
    def take(self, arrival: Arrival) -> Firing | None:
        try:
            return super().take(arrival)
        except DeadLetterError as dead:
            if dead.error_type is not None and arrival.known in self._keys:
                known = self._keys[arrival.known]
                left = [one for one in known.sessions if not self._meets(one, arrival.time)]
                if left:
                    known.sessions = left
                    self._calendar.note(arrival.known)
                else:
                    del self._keys[arrival.known]
            raise


class CountsFailed(CountStep):
    def take(self, arrival: Arrival) -> Firing | None:
        try:
            return super().take(arrival)
        except DeadLetterError:
            if arrival.known in self._keys:
                self._keys[arrival.known].number += 1
            raise


class KeysCountedTogether(CountStep):
    def take(self, arrival: Arrival) -> Firing | None:
        found = super().take(arrival)
        waiting = sum([one.number for one in self._keys.values()])
        if found is not None or waiting < self._windows.count:
            return found
        self._keys[arrival.known].number = self._windows.count - 1
        right = self._aggregation
        self._aggregation = replace(right, call=lambda _message, _accumulator: None)
        found = super().take(arrival)
        self._aggregation = right
        return found


class TimeoutByEventTime(CountStep):
    def take(self, arrival: Arrival) -> Firing | None:
        return super().take(replace(arrival, now=arrival.time))


class TimeoutFromLast(CountStep):
    def take(self, arrival: Arrival) -> Firing | None:
        found = super().take(arrival)
        if arrival.known in self._keys:
            self._keys[arrival.known].opened = arrival.now
        return found


class TimeoutOfTheWindowBefore(CountStep):
    """A window that is full leaves its timer behind, which fires the key's next one."""

    def __init__(self, operation: Windowed, windows: CountWindows, freeze: Freeze) -> None:
        super().__init__(operation, windows, freeze)
        self._begun: dict[Hashable, int] = {}

    def take(self, arrival: Arrival) -> Firing | None:
        timeout = self._windows.timeout
        if timeout is not None and arrival.known not in self._keys:
            begun = self._begun.get(arrival.known, arrival.now)
            if begun + timeout <= arrival.now:
                begun = arrival.now
            self._begun[arrival.known] = begun
            arrival = replace(arrival, now=begun)
        return super().take(arrival)


class OneMoreToCount(CountStep):
    def __init__(self, operation: Windowed, windows: CountWindows, freeze: Freeze) -> None:
        super().__init__(operation, replace(windows, count=windows.count + 1), freeze)
