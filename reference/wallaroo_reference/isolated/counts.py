"""Count windows, rule by rule: which a message fills, and which are due (window-8)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from wallaroo.overriding import override
from wallaroo.windows import CountWindows
from wallaroo_reference.cells import identity_of, key_of_name
from wallaroo_reference.isolated.copies import packed
from wallaroo_reference.isolated.windows import Arrival, Firing, Held, WindowStep


@dataclass(slots=True)
class _Count(Held):
    """An open count window of one key."""

    number: int
    least: int
    greatest: int
    last: int
    opened: int
    part: Any


class CountStep(WindowStep[CountWindows, _Count]):
    """Count windows (window-8)."""

    @override
    def take(self, arrival: Arrival) -> Firing | None:
        time = arrival.time
        window = self._keys.get(arrival.identity)
        if window is None:
            part = self._updated(arrival.message)
            window = _Count(arrival.key, 1, time, time, time, arrival.now, part)
            self._keys[arrival.identity] = window
            self._timers.note(arrival.identity)
        else:
            window.part = self._updated(arrival.message, window.part)
            window.number += 1
            window.least, window.greatest = min(window.least, time), max(window.greatest, time)
            window.last = time
        self.touch(arrival.identity)
        if window.number < self._windows.count:
            return None
        del self._keys[arrival.identity]
        return _counted(window)

    @override
    def due(self, now: int) -> Iterator[Firing]:  # by arrival time, in order of their ends
        due: list[Hashable] = []
        while (time := self._timers.first()) is not None and time <= now:
            due += self._timers.take(time)
        for identity in sorted(due, key=self._order):
            self.touch(identity)
            yield _counted(self._keys.pop(identity))

    @override
    def next_due(self) -> int | None:
        return None  # watermarks do not fire count windows

    @override
    def next_timeout(self) -> int | None:
        return self._timers.first()

    @override
    def open(self) -> Iterator[Firing]:
        for window in self._keys.values():
            yield _counted(window)

    def _form(self, identity: Any) -> Any:
        window = self._keys.get(identity)
        if window is None:
            return None
        times = window.least, window.greatest, window.last, window.opened
        return window.number, *times, packed(window.part)

    def _make(self, name: bytes, form: Any) -> None:
        number, least, greatest, last, opened, part = form
        self._keys[identity_of(name)] = _Count(
            key_of_name(name), number, least, greatest, last, opened, self._part(part)
        )

    def _order(self, identity: Hashable) -> tuple[int, bytes]:
        return self._keys[identity].greatest, self._encoded(identity)

    @override
    def _waits_for(self, identity: Hashable) -> int | None:
        window, timeout = self._keys.get(identity), self._windows.timeout
        return None if window is None or timeout is None else window.opened + timeout


def _counted(window: _Count) -> Firing:
    return Firing(window.key, window.least, window.greatest + 1, window.last, (window.part,))
