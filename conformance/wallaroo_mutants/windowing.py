"""Steps of range windows with a fault each, and how broken steps of any kind are put in."""

# ruff: noqa: D101, D102 - `second_part` says what each does

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from dataclasses import replace
from typing import Any

from wallaroo_reference.isolated.counts import CountStep
from wallaroo_reference.isolated.ranges import RangeStep
from wallaroo_reference.isolated.sessions import SessionStep
from wallaroo_reference.isolated.watermarks import FOREVER, NEVER
from wallaroo_reference.isolated.window_steps import window_step
from wallaroo_reference.isolated.windows import Arrival, Firing, Freeze, WindowStep

from wallaroo.judging import DeadLetterError
from wallaroo.keys import identity
from wallaroo.operations import Windowed
from wallaroo.windows import CountWindows, LateDataPolicy, RangeWindows, SessionWindows


def with_steps(*broken: Any) -> Callable[[Windowed, Freeze], WindowStep]:
    """Return a function that makes window steps, with these classes in place of the right ones."""
    kinds = {RangeStep: RangeWindows, SessionStep: SessionWindows, CountStep: CountWindows}

    def make(operation: Windowed, freeze: Freeze) -> WindowStep:
        for one in broken:
            for right, windows in kinds.items():
                if issubclass(one, right) and isinstance(operation.windows, windows):
                    made: WindowStep = one(operation, operation.windows, freeze)
                    return made
        return window_step(operation, freeze)

    return make


class OneWindowTooMany(RangeStep):
    def take(self, arrival: Arrival) -> Firing | None:
        found = super().take(arrival)
        if not self._fired(arrival.time // self._windows.slide):
            super().take(replace(arrival, time=arrival.time + self._windows.slide))
        return found


class OneWindowTooFew(RangeStep):
    def _first_with(self, pane: int) -> int:
        sliding = self._windows.slide != self._windows.range
        return super()._first_with(pane) + sliding


class EdgeBefore(RangeStep):
    """A message at the beginning of a window is put into the window before."""

    def take(self, arrival: Arrival) -> Firing | None:
        at_edge = arrival.time > 0 and arrival.time % self._windows.slide == 0
        return super().take(replace(arrival, time=arrival.time - at_edge))


class FirstWindowByWatermark(RangeStep):
    def take(self, arrival: Arrival) -> Firing | None:
        new = arrival.known not in self._keys
        late = self._fired(arrival.time // self._windows.slide)
        if new and not late and arrival.time < self.watermark:
            return None
        return super().take(arrival)


class GridOfEachKey(RangeStep):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._offsets: dict[Hashable, int] = {}

    def _offset(self, arrival: Arrival) -> int:
        return self._offsets.setdefault(arrival.known, arrival.time % self._windows.slide)

    def take(self, arrival: Arrival) -> Firing | None:
        return super().take(replace(arrival, time=arrival.time - self._offset(arrival)))

    def due(self, now: int) -> Iterator[Firing]:
        return map(self._moved, super().due(now))

    def open(self) -> Iterator[Firing]:
        return map(self._moved, super().open())

    def _moved(self, firing: Firing) -> Firing:
        by = self._offsets.get(identity(firing.key), 0)
        return replace(firing, start=firing.start + by, end=firing.end + by, time=firing.time + by)


class GridAfterGap(GridOfEachKey):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._met: set[Hashable] = set()

    def _offset(self, arrival: Arrival) -> int:
        if arrival.known not in self._met:
            self._met.add(arrival.known)
            self._offsets[arrival.known] = 0
        elif arrival.known not in self._keys:
            self._offsets[arrival.known] = arrival.time % self._windows.slide
        return self._offsets[arrival.known]


class FiresLate(RangeStep):
    def due(self, now: int) -> Iterator[Firing]:
        right = self.watermark
        self.watermark = right - 1
        found = list(super().due(now))
        self.watermark = right
        return iter(found)


class ForgetsDelay(RangeStep):
    def due(self, now: int) -> Iterator[Firing]:
        right = self._windows
        self._windows = replace(right, delay=0)
        found = list(super().due(now))
        self._windows = right
        return iter(found)


class RoundsDelayUp(RangeStep):
    def __init__(self, operation: Windowed, windows: RangeWindows, freeze: Freeze) -> None:
        rounded = -(-windows.delay // windows.slide) * windows.slide
        super().__init__(operation, replace(windows, delay=rounded), freeze)


class FiresAgain(RangeStep):
    """A window that has fired opens again for a late message."""

    def take(self, arrival: Arrival) -> Firing | None:
        right = self.watermark
        self.watermark = NEVER
        try:
            return super().take(arrival)
        finally:
            self.watermark = right


class LateWithinDelay(RangeStep):
    def take(self, arrival: Arrival) -> Firing | None:
        right = self._windows
        self._windows = replace(right, delay=0)
        try:
            return super().take(arrival)
        finally:
            self._windows = right


class LateBehindWatermark(RangeStep):
    def take(self, arrival: Arrival) -> Firing | None:
        if arrival.time + self._windows.delay < self.watermark:
            return self._late(arrival, self._windows.late)
        return super().take(arrival)


class Silent(WindowStep):
    def _late(self, arrival: Arrival, policy: LateDataPolicy) -> Firing | None:
        silent = policy is LateDataPolicy.DEAD_LETTER
        return None if silent else super()._late(arrival, policy)


class SilentlyLate(Silent, RangeStep):
    pass


class DropsUncounted(RangeStep):
    def _late(self, arrival: Arrival, policy: LateDataPolicy) -> Firing | None:
        found = super()._late(arrival, policy)
        self.dropped = 0
        return found


class PartlyUncounted(RangeStep):
    def take(self, arrival: Arrival) -> Firing | None:
        found = super().take(arrival)
        self.partly_late = 0
        return found


class PerMessageOnGrid(RangeStep):
    def take(self, arrival: Arrival) -> Firing | None:
        found = super().take(arrival)
        if found is None or not found.own:
            return found
        start = arrival.time // self._windows.slide * self._windows.slide
        return replace(found, start=start, end=start + self._windows.range)


class PlacesInSecondOldest(RangeStep):
    def take(self, arrival: Arrival) -> Firing | None:
        windows = self._windows
        late = self._fired(arrival.time // windows.slide) and self.watermark != FOREVER
        if late and windows.late is LateDataPolicy.PLACE_IN_OLDEST_WINDOW:
            arrival = replace(arrival, time=(self._first_open() + 1) * windows.slide)
        return super().take(arrival)


class FloatDivision(RangeStep):
    def take(self, arrival: Arrival) -> Firing | None:
        pane = int(arrival.time / self._pane)
        if pane != arrival.time // self._pane:
            arrival = replace(arrival, time=pane * self._pane)
        return super().take(arrival)


class PanesBackwards(RangeStep):
    def _parts(self, panes: Any, number: int) -> tuple[Any, ...]:
        return super()._parts(panes, number)[::-1]


class PanesAsTheyCame(RangeStep):
    def _parts(self, panes: Any, number: int) -> tuple[Any, ...]:
        start = number * self._windows.slide
        end = start + self._windows.range
        inside = [pane for pane in panes.parts if start <= pane * self._pane < end]
        return tuple([panes.parts[pane] for pane in inside])


class SharedAccumulator(RangeStep):
    """All panes begin with one object, which `update` alters."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._first = self._aggregation.initial_accumulator()
        shared = replace(self._aggregation, initial_accumulator=lambda: self._first)
        self._aggregation = shared


class OneAccumulatorForWindows(RangeStep):
    """Later windows find in a pane what `combine` has left there."""

    def due(self, now: int) -> Iterator[Firing]:
        for firing in super().due(now):
            panes = self._keys.get(identity(firing.key))
            if panes is not None and len(firing.parts) > 1:
                combined = self._freeze(self.combined(firing.parts))
                for pane, part in panes.parts.items():
                    if part is firing.parts[-1]:
                        panes.parts[pane] = combined
            yield firing


class FailedUpdateOpens(RangeStep):
    def take(self, arrival: Arrival) -> Firing | None:
        try:
            return super().take(arrival)
        except DeadLetterError as dead:
            if dead.error_type is not None and arrival.known not in self._keys:
                right = self._aggregation
                self._aggregation = replace(right, call=lambda _message, _accumulator: None)
                super().take(arrival)
                self._aggregation = right
            raise


class StaysListed(RangeStep):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._gone: list[Firing] = []

    def due(self, now: int) -> Iterator[Firing]:
        for firing in super().due(now):
            self._gone.append(firing)
            yield firing

    def open(self) -> Iterator[Firing]:
        yield from super().open()
        yield from self._gone


class ListsFirstPane(RangeStep):
    def open(self) -> Iterator[Firing]:
        return (replace(firing, parts=firing.parts[:1]) for firing in super().open())


class EndWithin(RangeStep):
    def due(self, now: int) -> Iterator[Firing]:
        return (replace(firing, end=firing.end - 1) for firing in super().due(now))


class TimeIsEnd(RangeStep):
    def due(self, now: int) -> Iterator[Firing]:
        return (replace(firing, time=firing.end) for firing in super().due(now))


class NoneIsAccumulator(RangeStep):
    """An accumulator that `update` alters in place is begun again."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        right = self._aggregation

        def call(message: Any, accumulator: Any) -> Any:
            result = right.call(message, accumulator)
            return right.initial_accumulator() if result is None else result

        self._aggregation = replace(right, call=call)


class NonePassedOn(RangeStep):
    def output(self, firing: Firing) -> Any:
        given = super().output(firing)
        return self._freeze(["-", 0, "None"]) if given is None else given


class AsOpened(RangeStep):
    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._opened: dict[tuple[Hashable, int], None] = {}

    def take(self, arrival: Arrival) -> Firing | None:
        windows = self._windows
        first, last = (arrival.time - windows.range) // windows.slide + 1, arrival.time
        for number in range(first, last // windows.slide + 1):
            self._opened[arrival.known, number * windows.slide] = None
        return super().take(arrival)

    def due(self, now: int) -> Iterator[Firing]:
        found = {(identity(firing.key), firing.start): firing for firing in super().due(now)}
        for window in [one for one in self._opened if one in found]:
            del self._opened[window]
            yield found.pop(window)
        yield from found.values()


class AnyOrder(RangeStep):
    def _encoded(self, known: Hashable) -> bytes:
        return b""
