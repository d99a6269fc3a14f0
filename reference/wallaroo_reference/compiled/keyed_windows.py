"""Session windows and count windows in the compiled path: kept by key (window-7, window-8)."""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from wallaroo.judging import judged_key
from wallaroo.operations import Windowed
from wallaroo.overriding import override
from wallaroo.windowing.kinds import Counts, Firing, Incoming, KeyedKind, Sessions
from wallaroo.windowing.watermarks import FOREVER
from wallaroo.windows import RangeWindows, SessionWindows
from wallaroo_reference.cells import identity_of
from wallaroo_reference.compiled.clocks import Times
from wallaroo_reference.compiled.windows import Own, StepWindows, encoded, key_of
from wallaroo_reference.timers import Timers


class KeyedWindows(StepWindows):
    """The windows of a step, by the identities of their keys."""

    def __init__(
        self, operation: Windowed, ways: Mapping[str, int], times: Times, own: Own
    ) -> None:
        super().__init__(operation, ways, times, own)
        windows = operation.windows
        assert not isinstance(windows, RangeWindows)  # those are kept by pane
        self._kind: KeyedKind = (
            Sessions(windows) if isinstance(windows, SessionWindows) else Counts(windows)
        )
        self._open: dict[Hashable, Any] = {}
        self._timers = Timers(self._due_of)

    @override
    def take(self, message: Any, key: Any, time: int) -> Firing | None:
        identity = judged_key(key)
        kind = self._kind
        if not kind.by_arrival:
            self.refresh()
        self.touch(identity)
        before = self._open.get(identity)
        incoming = Incoming(key, message, time, self._times.now, self.watermark)
        windows, firing, counted = kind.take(self, before, incoming)
        if counted is not None:
            self.late[counted] += 1
        if windows is None:
            self._open.pop(identity, None)
        elif windows is not before:
            self._open[identity] = windows
            due = kind.due(windows)
            was = None if before is None else kind.due(before)
            if was is None or (due is not None and due < was):  # a later one need not be noted
                self._timers.note(identity)
            if not kind.by_arrival and due is not None and due < self.next_due:
                self.next_due = due
                self._times.settle()
        return firing

    @override
    def due(self) -> Iterator[Firing]:
        kind, calendar = self._kind, self._timers
        until = self._times.now if kind.by_arrival else self.watermark
        waiting: list[tuple[int, bytes, Hashable]] = []
        while (time := calendar.first()) is not None and time <= until:
            for identity in calendar.take(time):
                waiting.append((kind.end(self._open[identity]), encoded(identity), identity))
        heapq.heapify(waiting)
        while waiting:
            _, name, identity = heapq.heappop(waiting)
            firing, rest = kind.fire(key_of(identity), self._open[identity])
            self.touch(identity)
            if rest is None:
                del self._open[identity]  # window-10
            else:
                self._open[identity] = rest
                due = kind.due(rest)
                if due is not None and due <= until:
                    heapq.heappush(waiting, (kind.end(rest), name, identity))
                else:
                    calendar.note(identity)
            yield firing
        self.settle()

    @override
    def settle(self) -> None:
        # A session that goes on ends later than was noted.
        due = None if self._kind.by_arrival else self._timers.first()
        self.next_due = FOREVER if due is None else due

    @override
    def next_timeout(self) -> int | None:
        return self._timers.first() if self._kind.by_arrival else None

    @override
    def open(self) -> Iterator[Firing]:
        for identity, windows in self._open.items():
            yield from self._kind.open(key_of(identity), windows)

    @property
    @override
    def held(self) -> int:
        return sum(map(self._kind.number, self._open.values()))

    @override
    def count(self) -> int:
        return len(self._open)

    @override
    def identities(self) -> list[Any]:
        return list(self._open)

    @override
    def go_on(self) -> None:
        for identity in self._open:
            self._timers.note(identity)
        self.settle()

    @override
    def _form(self, identity: Any) -> Any:
        windows = self._open.get(identity)
        return None if windows is None else self._kind.form(windows, self._copies.dumps)

    @override
    def _make(self, name: bytes, form: Any) -> None:
        self._open[identity_of(name)] = self._kind.made(form, self._copies.loads)

    def _due_of(self, identity: Hashable) -> int | None:
        windows = self._open.get(identity)
        return None if windows is None else self._kind.due(windows)
