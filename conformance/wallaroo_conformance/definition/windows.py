"""What a window step holds: which windows are open and due, and the accumulators in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wallaroo.aggregations import AggregationRecord, WindowBounds
from wallaroo.windows import CountWindows, RangeWindows, SessionWindows, Windows
from wallaroo_conformance.definition.judging import Copies, Copy, called
from wallaroo_conformance.definition.time import NEVER


@dataclass(frozen=True)
class Key:
    """A key, and its canonical encoding."""

    value: Any = field(compare=False)
    encoded: bytes


@dataclass(frozen=True)
class Window:
    """A window that is open.

    Args:
        key: its key.
        start, end: its bounds.
        accumulators: of its panes, in order of time.
        time: the event time of what it gives.
        due: it fires when the step's watermark, or of count windows the arrival time, is here.
    """

    key: Key
    start: int
    end: int
    accumulators: Sequence[Copy]
    time: int
    due: float = math.inf


@dataclass
class Ranges:
    """Windows on a grid (window-2 to window-6)."""

    kind: RangeWindows
    watermark: float = NEVER
    panes: dict[tuple[Key, int], Copy] = field(default_factory=dict)
    """The accumulator of each pane that has got a message, by its key and start."""
    closed: set[tuple[Key, int]] = field(default_factory=set)
    """The windows that have fired, or would have, by key and start."""

    def pane(self, time: int) -> int:
        """Return the start of the pane that a time lies in (window-5)."""
        length = math.gcd(self.kind.range, self.kind.slide)
        return time // length * length

    def starts(self, time: int) -> list[int]:
        """Return the starts of the windows that a time lies in."""
        last = time // self.kind.slide * self.kind.slide
        return sorted(range(last, time - self.kind.range, -self.kind.slide))

    def has_fired(self, start: int) -> bool:
        """Whether time has come so far that a window has fired, or would have."""
        return start + self.kind.range + self.kind.delay <= self.watermark

    def oldest(self) -> int | None:
        """Return the start of the earliest window that has not fired; `None`: there is none."""
        if math.isinf(self.watermark):
            return None
        last = int(self.watermark) - self.kind.range - self.kind.delay
        return (last // self.kind.slide + 1) * self.kind.slide

    def put(self, key: Key, time: int, accumulator: Copy) -> None:
        """Set a pane's accumulator; the windows of it that time has passed stay closed."""
        self.panes[key, self.pane(time)] = accumulator
        self.closed |= {(key, start) for start in self.starts(time) if self.has_fired(start)}

    def windows(self) -> list[Window]:
        """Return the windows that are open."""
        begun = {(key, start) for key, pane in self.panes for start in self.starts(pane)}
        return [self._window(key, start) for key, start in begun - self.closed]

    def _window(self, key: Key, start: int) -> Window:
        end = start + self.kind.range
        inside = sorted(pane for one, pane in self.panes if one == key and start <= pane < end)
        accumulators = [self.panes[key, pane] for pane in inside]
        return Window(key, start, end, accumulators, end - 1, end + self.kind.delay)

    def close(self, window: Window) -> None:
        """A window has fired, and is gone."""
        self.closed.add((window.key, window.start))


@dataclass
class Sessions:
    """Sessions (window-7), the oldest first."""

    kind: SessionWindows
    watermark: float = NEVER
    open: list[Window] = field(default_factory=list)

    def windows(self) -> list[Window]:
        """Return the sessions that are open."""
        return self.open

    def session(self, key: Key, first: int, end: int, accumulator: Copy) -> Window:
        """Return a session of messages from `first` on."""
        return Window(key, first, end, [accumulator], end - 1, end + self.kind.delay)

    def met(self, key: Key, time: int) -> list[Window]:
        """Return the sessions that a message's own session overlaps."""
        own = [one for one in self.open if one.key == key]
        return [one for one in own if one.start < time + self.kind.gap and time < one.end]

    def has_fired(self, time: int) -> bool:
        """Whether the own session of a message with this time would have fired."""
        return time + self.kind.gap + self.kind.delay <= self.watermark

    def close(self, window: Window) -> None:
        """A session has fired, and is gone."""
        self.open = [one for one in self.open if one is not window]


@dataclass
class Count:
    """The open window of a key."""

    accumulator: Copy
    begun: int  # arrival time of its first message
    times: list[int]  # event times of its messages


@dataclass
class Counts:
    """Windows of a number of messages (window-8)."""

    kind: CountWindows
    watermark: float = NEVER
    open: dict[Key, Count] = field(default_factory=dict)

    def window(self, key: Key) -> Window:
        """Return the open window of a key."""
        one, timeout = self.open[key], self.kind.timeout
        due = math.inf if timeout is None else one.begun + timeout
        start, end = min(one.times), max(one.times) + 1
        return Window(key, start, end, [one.accumulator], one.times[-1], due)

    def windows(self) -> list[Window]:
        """Return the windows that are open."""
        return [self.window(key) for key in self.open]

    def close(self, window: Window) -> None:
        """A window has fired, and is gone."""
        del self.open[window.key]


Held = Ranges | Sessions | Counts  # the windows of one step


def held_by(kind: Windows) -> Held:
    """Return what a step with such windows holds at the beginning."""
    if isinstance(kind, RangeWindows):
        return Ranges(kind)
    return Sessions(kind) if isinstance(kind, SessionWindows) else Counts(kind)


def due(held: Held, now: int) -> list[Window]:
    """Return the windows that fire in the step's turn, in their order (time-4)."""
    clock = now if isinstance(held, Counts) else held.watermark
    found = [window for window in held.windows() if window.due <= clock]
    return sorted(found, key=lambda window: (window.end, window.key.encoded))


@dataclass(frozen=True)
class Aggregating:
    """Calls an aggregation; what it calls raises as `called` and `Copies.of` do."""

    aggregation: AggregationRecord
    copies: Copies

    def updated(self, before: Copy | None, message: Copy) -> Copy:
        """Return an accumulator after one more message; `None`: it is the first (window-4)."""
        if before is None:
            before = self.copies.of(called(self.aggregation.initial_accumulator))
        own = self.copies.read(before)
        result = called(self.aggregation.call, self.copies.read(message), own)
        return self.copies.of(own if result is None else result)

    def combined(self, accumulators: Sequence[Copy]) -> Any:
        """Return one accumulator made of several, in their order (window-5)."""
        whole, *rest = map(self.copies.read, accumulators)
        for later in rest:
            result = called(self.aggregation.combine, whole, later)  # type: ignore[arg-type]
            whole = whole if result is None else result
        return whole

    def result(self, window: Window) -> list[Copy]:
        """Return what a window gives; nothing for `None`."""
        arguments = [window.key.value, self.combined(window.accumulators)]
        if self.aggregation.wants_window:
            arguments.append(WindowBounds(window.start, window.end))
        output = called(self.aggregation.output, *arguments)
        return [] if output is None else [self.copies.of(output)]

    def alone(self, key: Key, time: int, message: Copy) -> list[Copy]:
        """Return what a late message's own window gives (window-6)."""
        return self.result(Window(key, time, time + 1, [self.updated(None, message)], time))
