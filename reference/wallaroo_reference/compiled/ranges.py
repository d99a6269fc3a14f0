"""Range windows in the compiled path (window-2 to window-6).

They are kept as panes: for each pane that has messages the accumulators of its keys. So what is due
is found by looking at the first pane, and firing touches no other keys.
"""

from __future__ import annotations

import heapq
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, TypeAlias

from wallaroo.judging import judged_key
from wallaroo.operations import Windowed
from wallaroo.overriding import override
from wallaroo.windowing.kinds import Incoming, Ranges
from wallaroo.windowing.watermarks import FOREVER, NEVER
from wallaroo.windows import RangeWindows
from wallaroo_reference.cells import PANE, identity_of, name_of
from wallaroo_reference.compiled.clocks import Times
from wallaroo_reference.compiled.windows import Fired, Own, StepWindows, encoded, key_of

_Pane: TypeAlias = "dict[Hashable, Any]"
"""Accumulators by the identities of their keys."""


class RangePanes(StepWindows):
    """Range windows; the identity of a cell is (pane, identity of the key).

    Attributes:
        panes: by number, the panes of which no window has fired yet: accumulators by the identities
            of keys. The generated code looks here first.
    """

    kind = "panes"

    def __init__(
        self, operation: Windowed, ways: Mapping[str, int], times: Times, own: Own
    ) -> None:
        super().__init__(operation, ways, times, own)
        windows = operation.windows
        assert isinstance(windows, RangeWindows)
        self._kind = Ranges(windows)
        self.panes: dict[int, _Pane] = {}
        self._later: dict[int, _Pane] = {}  # panes of which a window has fired
        self._numbers: list[int] = []  # a heap of both
        self._range, self._slide = windows.range, windows.slide
        self._pane = windows.pane
        self._panes_in_slide = windows.slide // windows.pane
        self._panes_in_range = windows.range // windows.pane
        self._first: float = NEVER  # the first window that has not fired, of those that exist
        self._firing: tuple[int, list[Hashable]] | None = None  # and whose turn is to come

    @override
    def take(self, message: Any, key: Any, time: int) -> Fired | None:
        identity = judged_key(key)
        self.refresh()
        kind, watermark = self._kind, self.watermark
        first_open = kind.first_open(watermark)
        pane, partly = kind.pane_for(time, first_open)
        if pane is None:
            incoming = Incoming(key, message, time, self._times.now, watermark)
            firing, counted = kind.late(self, incoming)
            if counted is not None:
                self.late[counted] += 1
            return firing
        self.touch((pane, identity))
        kept = self._later if kind.first_with(pane) < first_open else self.panes
        accumulators = kept.get(pane)
        if accumulators is None:
            part = self.begun(message)
            self._first = max(self._first, first_open)
            kept[pane] = {identity: part}
            heapq.heappush(self._numbers, pane)
            self._settle()
        elif identity in accumulators:
            accumulators[identity] = self.updated(message, accumulators[identity])
        else:
            accumulators[identity] = self.begun(message)
        if partly:
            self.late["partly"] += 1
        return None

    @override
    def due(self) -> Iterator[Fired]:
        while self._numbers and self.next_due <= self.watermark:
            number = self._first_open(self._numbers[0])
            inside = self._inside(number)
            panes = self._divided(number, inside)
            order = sorted(set().union(*panes[0], *panes[1]), key=encoded, reverse=True)
            self._firing = number, order
            while order:
                yield self._window(number, panes, order.pop())
            self._firing = None
            self._forget(number, inside)
            self._settle()

    @override
    def open(self) -> Iterator[Fired]:
        numbers: dict[int, None] = {}
        for pane in self._numbers:
            last = pane // self._panes_in_slide
            numbers.update(dict.fromkeys(range(self._first_open(pane), last + 1)))
        for number in numbers:
            panes = self._divided(number, self._inside(number))
            waiting = set().union(*panes[0], *panes[1])
            if self._firing is not None and number == self._firing[0]:
                waiting.intersection_update(self._firing[1])
            for identity in waiting:
                yield self._window(number, panes, identity)

    @override
    def count(self) -> int:
        return sum([len(self._of(pane)) for pane in self._numbers])

    @override
    def identities(self) -> list[Any]:
        return [(pane, identity) for pane in self._numbers for identity in self._of(pane)]

    @override
    def named(self, identity: Any) -> bytes:
        return PANE.pack(identity[0]) + name_of(identity[1])

    @override
    def go_on(self) -> None:
        # Between two records, what is due has fired.
        self._first = self._kind.first_open(self.watermark)
        for pane in [pane for pane in self.panes if self._kind.first_with(pane) < self._first]:
            self._later[pane] = self.panes.pop(pane)
        self._numbers = sorted([*self.panes, *self._later])
        self._settle()

    def _form(self, identity: Any) -> Any:
        pane, key = identity
        kept = self.panes.get(pane) or self._later.get(pane, {})
        return self._copies.dumps(kept[key]) if key in kept else None

    def _make(self, name: bytes, form: Any) -> None:
        pane = self.panes.setdefault(PANE.unpack_from(name)[0], {})
        pane[identity_of(name[PANE.size :])] = self._copies.loads(form)

    @property
    @override
    def held(self) -> int:
        kept = (*self.panes.values(), *self._later.values())
        return sum(map(len, kept))

    def _first_open(self, pane: int) -> int:
        """Return the first window that holds a pane and has not fired."""
        return int(max(self._first, self._kind.first_with(pane)))

    def _of(self, pane: int) -> _Pane:
        accumulators = self.panes.get(pane)
        return self._later[pane] if accumulators is None else accumulators

    def _inside(self, number: int) -> list[int]:
        """Return the panes of a window that have messages, in order."""
        first = number * self._panes_in_slide
        end = first + self._panes_in_range
        if self._panes_in_range < len(self._numbers):
            return [pane for pane in range(first, end) if pane in self.panes or pane in self._later]
        return sorted([pane for pane in self._numbers if first <= pane < end])

    def _divided(self, number: int, inside: list[int]) -> tuple[list[_Pane], list[_Pane]]:
        """Return a window's panes: those of this window only, and those of later windows too."""
        needed = (number + 1) * self._panes_in_slide
        ending = [self._of(pane) for pane in inside if pane < needed]
        return ending, [self._of(pane) for pane in inside if pane >= needed]

    def _window(
        self, number: int, panes: tuple[list[_Pane], list[_Pane]], identity: Hashable
    ) -> Fired:
        """Return a key's window; `panes` are those that `_divided` gives."""
        ending = [pane[identity] for pane in panes[0] if identity in pane]
        shared = [pane[identity] for pane in panes[1] if identity in pane]
        start = number * self._slide
        end = start + self._range
        return key_of(identity), start, end, end - 1, ending + shared, len(shared), False

    def _forget(self, number: int, inside: list[int]) -> None:
        """Forget the panes that only a window held that has fired."""
        self._first = number + 1
        for pane in inside:
            accumulators = self.panes.pop(pane, None)
            if pane // self._panes_in_slide <= number:
                gone = self._later.pop(pane, None) or accumulators or {}
                if self._keeps:
                    self.changed.update(dict.fromkeys([(pane, identity) for identity in gone]))
            elif accumulators is not None:
                self._later[pane] = accumulators
        while self._numbers and self._numbers[0] // self._panes_in_slide <= number:
            heapq.heappop(self._numbers)

    def _settle(self) -> None:
        """Find out what is due next."""
        before = self.next_due
        self.next_due = FOREVER
        if self._numbers:
            self.next_due = self._kind.due_at(self._first_open(self._numbers[0]))
        if self.next_due != before:
            self._times.settle()
