"""Count windows in the compiled path (window-8)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from wallaroo.operations import Windowed
from wallaroo.overriding import override
from wallaroo.windows import CountWindows
from wallaroo_reference.calendar import Calendar
from wallaroo_reference.compiled.clocks import Times
from wallaroo_reference.compiled.windows import Firing, KeptWindows, encoded, judge, key_of
from wallaroo_reference.kept import identity_of


class _Count:
    """An open count window."""

    __slots__ = ("greatest", "last", "least", "number", "opened", "part")

    def __init__(self, time: int, opened: int, part: Any) -> None:
        self.number = 1
        self.least = self.greatest = self.last = time
        self.opened = opened
        self.part = part


class Counts(KeptWindows):
    """Count windows, by the identities of their keys."""

    def __init__(self, operation: Windowed, ways: Mapping[str, int], times: Times) -> None:
        super().__init__(operation, ways, times)
        windows = operation.windows
        assert isinstance(windows, CountWindows)
        self._count, self._timeout = windows.count, windows.timeout
        self._open: dict[Hashable, _Count] = {}
        self._calendar = Calendar(self._timeout_of)

    @override
    def take(self, message: Any, key: Any, time: int) -> Firing | None:
        known = judge(key)
        self.touch(known)
        window = self._open.get(known)
        if window is None:
            part = self.updated(message)
            window = self._open[known] = _Count(time, self._times.now, part)
            if self._timeout is not None:
                self._calendar.note(known)
        else:
            window.part = self.updated(message, window.part)
            window.number += 1
            window.last = time
            if time < window.least:
                window.least = time
            elif time > window.greatest:
                window.greatest = time
        if window.number < self._count:
            return None
        return self._taken(known)

    def due(self) -> Iterator[Firing]:
        """See `KeptWindows.due`: those whose timeout has passed, by their ends."""
        found: list[Hashable] = []
        while (time := self._calendar.first()) is not None and time <= self._times.now:
            found += self._calendar.take(time)
        found.sort(key=lambda known: (self._open[known].greatest, encoded(known)))
        for known in found:
            yield self._taken(known)

    @override
    def next_timeout(self) -> int | None:
        return None if self._timeout is None else self._calendar.first()

    @override
    def open(self) -> Iterator[Firing]:
        for known, window in self._open.items():
            yield _window(known, window)

    @override
    def count(self) -> int:
        return len(self._open)

    @override
    def identities(self) -> list[Any]:
        return list(self._open)

    @override
    def go_on(self) -> None:
        for known in self._open:
            self._calendar.note(known)

    def _form(self, known: Any) -> Any:
        one = self._open.get(known)
        if one is None:
            return None
        part = self._packer.dumps(one.part)
        return one.number, one.least, one.greatest, one.last, one.opened, part

    def _make(self, name: bytes, form: Any) -> None:
        number, least, greatest, last, opened, part = form
        one = self._open[identity_of(name)] = _Count(last, opened, self._packer.loads(part))
        one.number, one.least, one.greatest = number, least, greatest

    @property
    @override
    def held(self) -> int:
        return len(self._open)

    def _taken(self, known: Hashable) -> Firing:
        self.touch(known)
        return _window(known, self._open.pop(known))

    def _timeout_of(self, known: Hashable) -> int | None:
        window = self._open.get(known)
        return None if window is None or self._timeout is None else window.opened + self._timeout


def _window(known: Hashable, window: _Count) -> Firing:
    end = window.greatest + 1
    return key_of(known), window.last, window.least, end, (window.part,), 0, False
