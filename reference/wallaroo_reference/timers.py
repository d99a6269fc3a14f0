"""A calendar: finds which keys have something due at which time, without looking at all keys."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable


class Timers:
    """Times, and the keys that wait for each.

    A key's time may become later without a call here; the key is then found at its later time. When
    the time may have become earlier, call `note`.

    Args:
        due: returns the time for which a key waits now, `None` if it waits for nothing.
    """

    def __init__(self, due: Callable[[Hashable], int | None]) -> None:
        self._due = due
        self._noted: dict[Hashable, int] = {}
        self._waiting: dict[int, list[Hashable]] = {}
        self._times: list[int] = []

    def note(self, key: Hashable) -> None:
        """Note the time for which a key waits, unless an earlier one is noted."""
        time = self._due(key)
        if time is None or self._noted.get(key, time + 1) <= time:
            return
        self._noted[key] = time
        waiting = self._waiting.get(time)
        if waiting is None:
            waiting = self._waiting[time] = []
            heapq.heappush(self._times, time)
        waiting.append(key)

    def first(self) -> int | None:
        """Return the earliest time for which a key waits; `None`: none waits."""
        while self._times:
            time = self._times[0]
            waiting = self._waiting[time]
            while waiting:
                key = waiting[-1]
                if self._noted.get(key) == time:
                    if self._due(key) == time:
                        return time
                    del self._noted[key]
                    self.note(key)
                waiting.pop()
            heapq.heappop(self._times)
            del self._waiting[time]
        return None

    def take(self, time: int, order: Callable[[Hashable], bytes] | None = None) -> list[Hashable]:
        """Return the keys that wait for `time`, which `first` has just returned, and forget them.

        Args:
            time: the earliest time.
            order: what the keys are sorted by.
        """
        heapq.heappop(self._times)
        due = []
        for key in self._waiting.pop(time):
            if self._noted.get(key) == time:
                del self._noted[key]
                if self._due(key) == time:
                    due.append(key)
                else:
                    self.note(key)
        return due if order is None else sorted(due, key=order)
