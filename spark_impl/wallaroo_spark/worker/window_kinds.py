"""Range, session and count windows: where a message goes, and what is due.

A kind knows the rules and holds no windows. It gets a key's windows as a plain value and returns
them, as a new value or the changed one (`window_store`); `None` stands for no open window.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol, TypeAlias

from wallaroo.trace import Reason
from wallaroo.windows import CountWindows, LateDataPolicy, RangeWindows, SessionWindows, Windows
from wallaroo_spark.worker.aggregating import Aggregating, Firing
from wallaroo_spark.worker.results import DeadLetterError
from wallaroo_spark.worker.watermarks import FOREVER, NEVER

_BUCKETS = 64  # of a calendar, in the time that a window lasts


class LateError(DeadLetterError):
    """A late message whose policy is `dead-letter` (window-6)."""

    reason = Reason.LATE


Coming: TypeAlias = tuple[bytes, Any, int, int, float]
"""A message that comes to a window step.

(encoded key, a copy of the message of its own, its event time, its record's arrival time, the
step's watermark).
"""

Taken: TypeAlias = tuple[Any, Firing | None, str | None]
"""What happened to a message.

(its key's windows after it, the window that fires with it, what is counted: ``dropped`` or
``partly``).
"""


class WindowKind(Protocol):
    """What the kinds have in common."""

    width: int
    """Nanoseconds of a bucket in the calendar."""

    by_arrival: bool
    """Windows are due by arrival time, not by watermark."""

    def take(self, aggregating: Aggregating, windows: Any, coming: Coming) -> Taken:
        """Put a message into its key's windows; exceptions of user code are not caught.

        If it raises, the windows are as before.
        """

    def due(self, windows: Any) -> int | None:
        """Return the watermark, or arrival time, at which the next window fires."""

    def end(self, windows: Any) -> int:
        """Return the end of the window that fires next."""

    def fire(self, key: bytes, windows: Any) -> tuple[Firing, Any]:
        """Return the window that fires next, and the key's windows without it."""

    def open(self, key: bytes, windows: Any) -> Iterator[Firing]:
        """Yield a key's windows as they would fire (window-11)."""

    def number(self, windows: Any) -> int:
        """Return how many windows of a key are open."""


def kind_of(windows: Windows) -> WindowKind:
    """Return the rules of these windows."""
    if isinstance(windows, RangeWindows):
        return _Ranges(windows)
    if isinstance(windows, SessionWindows):
        return _Sessions(windows)
    return _Counts(windows)


class _Panes(NamedTuple):
    """A key's range windows.

    Args:
        earliest: the number of its earliest window that has not fired; window k begins at k slides.
        parts: frozen accumulators by the panes' numbers; pane j begins at j pane lengths.
    """

    earliest: int
    parts: dict[int, Any]


class _Ranges:
    """Range windows, kept as panes (window-2, window-5)."""

    by_arrival = False

    def __init__(self, windows: RangeWindows) -> None:
        self._range, self._slide, self._delay = windows.range, windows.slide, windows.delay
        self._pane, self._policy = windows.pane, windows.late
        self.width = max(1, windows.slide // _BUCKETS)

    def take(self, aggregating: Aggregating, windows: _Panes | None, coming: Coming) -> Taken:
        _, message, time, _, watermark = coming
        pane = time // self._pane
        if windows is not None and pane in windows.parts and watermark <= time + self._delay:
            # Nearly every message: all its windows are open, and this is known.
            parts = windows.parts
            parts[pane] = aggregating.updated(message, parts[pane])
            return windows, None, None
        begins = time // self._slide  # the last window that the message lies in
        first_open = self._first_open(watermark)
        late = None
        if first_open > begins:
            if self._policy is not LateDataPolicy.PLACE_IN_OLDEST_WINDOW or first_open == FOREVER:
                last = begins * self._slide + self._range + self._delay
                return _late(self._policy, aggregating, windows, coming, last)
            pane = int(first_open) * self._slide // self._pane
        elif first_open > self._first_with(time):
            late = "partly"
        parts = {} if windows is None else windows.parts
        if pane in parts:
            part = aggregating.updated(message, parts[pane])
        else:
            part = aggregating.begun(message)
        earliest = int(max(self._first_with(pane * self._pane), first_open))
        if windows is not None:
            earliest = min(earliest, windows.earliest)
        return _Panes(earliest, {**parts, pane: part}), None, late

    def due(self, windows: _Panes) -> int:
        return self.end(windows) + self._delay

    def end(self, windows: _Panes) -> int:
        return windows.earliest * self._slide + self._range

    def fire(self, key: bytes, windows: _Panes) -> tuple[Firing, _Panes | None]:
        firing = self._firing(key, windows, windows.earliest)
        following = windows.earliest + 1
        start = following * self._slide
        kept = {pane: part for pane, part in windows.parts.items() if pane * self._pane >= start}
        if not kept:
            return firing, None
        return firing, _Panes(max(following, self._first_with(min(kept) * self._pane)), kept)

    def open(self, key: bytes, windows: _Panes) -> Iterator[Firing]:
        for numbers in self._open(windows):
            for number in numbers:
                yield self._firing(key, windows, number)

    def number(self, windows: _Panes) -> int:
        if self._pane == self._range:  # tumbling: a pane is a window
            return len(windows.parts)
        return sum(map(len, self._open(windows)))

    def _open(self, windows: _Panes) -> Iterator[range]:
        """Yield the numbers of a key's open windows, in order."""
        following = windows.earliest
        for pane in sorted(windows.parts):
            start = pane * self._pane
            first = max(self._first_with(start), following)
            following = max(start // self._slide + 1, following)
            yield range(first, following)

    def _firing(self, key: bytes, windows: _Panes, number: int) -> Firing:
        start = number * self._slide
        end = start + self._range
        panes = sorted([pane for pane in windows.parts if start <= pane * self._pane < end])
        return Firing(key, start, end, end - 1, [windows.parts[pane] for pane in panes])

    def _first_with(self, time: int) -> int:
        """Return the number of the first window that a time lies in."""
        return (time - self._range) // self._slide + 1

    def _first_open(self, watermark: float) -> float:
        """Return the number of the first window on the grid that has not fired."""
        if watermark in (NEVER, FOREVER):
            return watermark
        return (int(watermark) - self._delay - self._range) // self._slide + 1


class _Session(NamedTuple):
    """A session: the first and last event time in it, and its frozen accumulator."""

    first: int
    last: int
    part: Any


class _Sessions:
    """Sessions: a key's are a list in order of time (window-7)."""

    by_arrival = False

    def __init__(self, windows: SessionWindows) -> None:
        self._gap, self._delay, self._policy = windows.gap, windows.delay, windows.late
        self.width = max(1, windows.gap // _BUCKETS)

    def take(
        self, aggregating: Aggregating, windows: list[_Session] | None, coming: Coming
    ) -> Taken:
        _, message, time, _, watermark = coming
        sessions = windows or []
        met = [
            one for one in sessions if time < one.last + self._gap and one.first < time + self._gap
        ]
        own_due = time + self._gap + self._delay
        if not met and own_due <= watermark:
            return _late(self._policy, aggregating, windows, coming, own_due)
        own = _Session(time, time, aggregating.begun(message))
        if met:
            # The sort is stable: on a tie, the older session comes before the message's.
            parts = sorted([*met, own], key=lambda one: one.first)
            part = aggregating.frozen(aggregating.combined([one.part for one in parts]))
            own = _Session(parts[0].first, max([one.last for one in parts]), part)
        others = [one for one in sessions if one not in met]
        return sorted([*others, own], key=lambda one: one.first), None, None

    def due(self, windows: list[_Session]) -> int:
        return self.end(windows) + self._delay

    def end(self, windows: list[_Session]) -> int:
        return windows[0].last + self._gap

    def fire(self, key: bytes, windows: list[_Session]) -> tuple[Firing, list[_Session] | None]:
        return self._firing(key, windows[0]), windows[1:] or None

    def open(self, key: bytes, windows: list[_Session]) -> Iterator[Firing]:
        for session in windows:
            yield self._firing(key, session)

    def number(self, windows: list[_Session]) -> int:
        return len(windows)

    def _firing(self, key: bytes, session: _Session) -> Firing:
        end = session.last + self._gap
        return Firing(key, session.first, end, end - 1, [session.part])


class _Count(NamedTuple):
    """A count window.

    Args:
        number: of its messages.
        least, greatest, last: event times of its messages.
        opened: the arrival time of its first message.
        part: its frozen accumulator.
    """

    number: int
    least: int
    greatest: int
    last: int
    opened: int
    part: Any


class _Counts:
    """Count windows: a key has at most one (window-8)."""

    by_arrival = True

    def __init__(self, windows: CountWindows) -> None:
        self._count, self._timeout = windows.count, windows.timeout
        self.width = max(1, (windows.timeout or 1) // _BUCKETS)

    def take(self, aggregating: Aggregating, windows: _Count | None, coming: Coming) -> Taken:
        key, message, time, arrived, _ = coming
        if windows is None:
            part = aggregating.begun(message)
            windows = _Count(1, time, time, time, arrived, part)
        else:
            windows = _Count(
                windows.number + 1,
                min(windows.least, time),
                max(windows.greatest, time),
                time,
                windows.opened,
                aggregating.updated(message, windows.part),
            )
        if windows.number < self._count:
            return windows, None, None
        firing, rest = self.fire(key, windows)
        return rest, firing, None

    def due(self, windows: _Count) -> int | None:
        return None if self._timeout is None else windows.opened + self._timeout

    def end(self, windows: _Count) -> int:
        return windows.greatest + 1

    def fire(self, key: bytes, windows: _Count) -> tuple[Firing, None]:
        end = windows.greatest + 1
        return Firing(key, windows.least, end, windows.last, [windows.part]), None

    def open(self, key: bytes, windows: _Count) -> Iterator[Firing]:
        yield self.fire(key, windows)[0]

    def number(self, windows: _Count) -> int:
        return 1


def _late(
    policy: LateDataPolicy, aggregating: Aggregating, windows: Any, coming: Coming, last: int
) -> Taken:
    """Do with a late message what the policy says (window-6).

    Args:
        policy: the step's.
        aggregating: calls the aggregation.
        windows: the windows of the message's key.
        coming: the message.
        last: the watermark at which the last window fired that it belongs to, or would have.
    """
    if policy is LateDataPolicy.DROP:
        return windows, None, "dropped"
    key, message, time, _, _ = coming
    if policy is LateDataPolicy.FIRE_PER_MESSAGE:
        part = aggregating.begun(message)
        return windows, Firing(key, time, time + 1, time, [part], own=True), None
    raise LateError(
        f"its event time is {time}, and the step's watermark has reached {last}: every window "
        "that it belongs to has fired"
    )
