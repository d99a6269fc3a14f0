"""Range windows, rule by rule: which a message belongs to, and which are due."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from wallaroo.operations import Windowed
from wallaroo.overriding import override
from wallaroo.windows import LateDataPolicy, RangeWindows
from wallaroo_reference.cells import PANE, identity_of, key_of_name, name_of
from wallaroo_reference.isolated.copies import packed
from wallaroo_reference.isolated.watermarks import FOREVER, NEVER
from wallaroo_reference.isolated.windows import Arrival, Firing, Freeze, Held, WindowStep

_ABSENT = object()


@dataclass(slots=True)
class _Panes(Held):
    """The panes of one key: accumulators by number, and the number of its earliest open window."""

    parts: dict[int, Any]
    earliest: int


class RangeStep(WindowStep[RangeWindows, _Panes]):
    """Range windows, kept as panes (window-5); the identity of a cell is (pane, key's identity)."""

    kind = "panes"

    def __init__(
        self, operation: Windowed, windows: RangeWindows, freeze: Freeze, begun: Freeze
    ) -> None:
        super().__init__(operation, windows, freeze, begun)
        self._pane = windows.pane
        self._count = 0  # panes, of all keys

    @override
    def take(self, arrival: Arrival) -> Firing | None:
        windows = self._windows
        pane = arrival.time // self._pane
        partly = self._fired((arrival.time - windows.range) // windows.slide + 1)
        if self._fired(arrival.time // windows.slide):
            placed = windows.late is LateDataPolicy.PLACE_IN_OLDEST_WINDOW
            if not placed or self.watermark == FOREVER:
                start = arrival.time // windows.slide * windows.slide
                last = start + windows.range + windows.delay
                return self._late(arrival, windows.late, last)
            pane, partly = self._first_open() * windows.slide // self._pane, False
        panes = self._keys.get(arrival.identity)
        if panes is not None and pane in panes.parts:
            panes.parts[pane] = self._updated(arrival.message, panes.parts[pane])
        else:
            part = self._updated(arrival.message)
            earliest = max(self._first_with(pane), self._first_open())
            if panes is None:
                panes = self._keys[arrival.identity] = _Panes(arrival.key, {}, earliest)
            panes.parts[pane] = part
            self._count += 1
            panes.earliest = min(panes.earliest, earliest)
            self._timers.note(arrival.identity)
        self.touch((pane, arrival.identity))
        self.partly_late += partly
        return None

    @override
    def due(self, now: int) -> Iterator[Firing]:
        windows = self._windows
        while (end := self._timers.first()) is not None:
            if self.watermark < end + windows.delay:
                return
            for identity in self._timers.take(end, self._encoded):
                panes = self._keys[identity]
                number = panes.earliest
                parts = self._parts(panes, number)
                self._forget_fired(identity, panes)
                yield Firing(panes.key, end - windows.range, end, end - 1, parts)

    @override
    def next_due(self) -> int | None:
        end = self._timers.first()
        return None if end is None else end + self._windows.delay

    @override
    def open(self) -> Iterator[Firing]:
        windows = self._windows
        for panes in self._keys.values():
            numbers: set[int] = set()
            for pane in panes.parts:
                first = max(self._first_with(pane), panes.earliest)
                numbers.update(range(first, pane * self._pane // windows.slide + 1))
            for number in sorted(numbers):
                start = number * windows.slide
                end = start + windows.range
                yield Firing(panes.key, start, end, end - 1, self._parts(panes, number))

    @override
    def count(self) -> int:
        return self._count

    @override
    def identities(self) -> list[Any]:
        return [(pane, identity) for identity, panes in self._keys.items() for pane in panes.parts]

    @override
    def named(self, identity: Any) -> bytes:
        return PANE.pack(identity[0]) + name_of(identity[1])

    @override
    def go_on(self) -> None:  # between two records: what is due has fired
        for panes in self._keys.values():
            panes.earliest = max(self._first_with(min(panes.parts)), self._first_open())
        super().go_on()

    def _form(self, identity: Any) -> Any:
        panes = self._keys.get(identity[1])
        part = _ABSENT if panes is None else panes.parts.get(identity[0], _ABSENT)
        return None if part is _ABSENT else packed(part)

    def _make(self, name: bytes, form: Any) -> None:
        identity = identity_of(name[PANE.size :])
        panes = self._keys.get(identity)
        if panes is None:
            panes = self._keys[identity] = _Panes(key_of_name(name, self.kind), {}, 0)
        panes.parts[PANE.unpack_from(name)[0]] = self._part(form)
        self._count += 1

    def _fired(self, number: int) -> bool:
        """Whether the window that starts at `number * slide` has fired, or would have."""
        windows = self._windows
        return number * windows.slide + windows.range + windows.delay <= self.watermark

    def _first_open(self) -> int:
        """Return the number of the earliest window on the grid that has not fired."""
        windows = self._windows
        if self.watermark == NEVER:
            return -windows.range // windows.slide  # earlier than that of any event time
        fired_up_to = int(self.watermark) - windows.range - windows.delay
        return fired_up_to // windows.slide + 1

    def _first_with(self, pane: int) -> int:
        """Return the number of the first window on the grid that holds a pane."""
        return (pane * self._pane - self._windows.range) // self._windows.slide + 1

    def _parts(self, panes: _Panes, number: int) -> tuple[Any, ...]:
        """Return the accumulators of a window, in order of time."""
        start = number * self._windows.slide
        end = start + self._windows.range
        inside = [pane for pane in panes.parts if start <= pane * self._pane < end]
        return tuple([panes.parts[pane] for pane in sorted(inside)])

    def _forget_fired(self, identity: Hashable, panes: _Panes) -> None:
        """Forget the panes that only the key's earliest window still held, which has fired."""
        panes.earliest += 1
        start = panes.earliest * self._windows.slide
        for pane in [number for number in panes.parts if number * self._pane < start]:
            del panes.parts[pane]
            self._count -= 1
            self.touch((pane, identity))
        if panes.parts:
            panes.earliest = max(panes.earliest, self._first_with(min(panes.parts)))
            self._timers.note(identity)
        else:
            del self._keys[identity]  # window-10

    @override
    def _waits_for(self, identity: Hashable) -> int | None:
        panes = self._keys.get(identity)
        if panes is None:
            return None
        return panes.earliest * self._windows.slide + self._windows.range
