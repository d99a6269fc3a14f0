"""Range, session and count windows: where a message goes, and what is due.

A kind knows the rules and holds no windows. It gets a key's windows as a plain value and returns
them, as a new value or the changed one; `None` stands for no open window. Accumulators are called
parts here: an engine keeps them in a form of its own, and calls user code for them
(`Accumulating`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

from wallaroo.judging import DeadLetterError
from wallaroo.operations import Windowed
from wallaroo.overriding import override
from wallaroo.topology import Application, Step
from wallaroo.trace import Reason
from wallaroo.windowing.watermarks import FOREVER, NEVER
from wallaroo.windows import CountWindows, LateDataPolicy, RangeWindows, SessionWindows, Windows

_BUCKETS = 64  # of a calendar, in the time that a window lasts


class Firing(NamedTuple):
    """A window that fires, or is open.

    Args:
        key: its key, as the engine has it.
        start, end: its bounds, in nanoseconds since 1970.
        time: the event time of the message that it gives.
        parts: accumulators, one or more, to be combined in this order.
        shared: how many of the last accumulators are also parts of windows that fire later.
        own: it was made for one late message (window-6).
    """

    key: Any
    start: int
    end: int
    time: int
    parts: Sequence[Any]
    shared: int = 0
    own: bool = False


class Incoming(NamedTuple):
    """A message that comes to a window step.

    Args:
        key: its key, as the engine has it.
        message: the message, which user code may change.
        time: its event time.
        arrived: its record's arrival time.
        watermark: the step's.
    """

    key: Any
    message: Any
    time: int
    arrived: int
    watermark: float


class Accumulating(Protocol):
    """Calls of an aggregation; what user code raises is not caught."""

    def begun(self, message: Any) -> Any:
        """Return the accumulator of a first message."""

    def updated(self, message: Any, part: Any) -> Any:
        """Return an accumulator after one more message."""

    def joined(self, parts: Sequence[Any]) -> Any:
        """Return accumulators combined in their order; if it raises, they can be used again."""


Taken: TypeAlias = tuple[Any, Firing | None, str | None]
"""What happened to a message.

(its key's windows after it, the window that fires with it, what is counted: ``dropped`` or
``partly``).
"""


class WindowKind(Protocol):
    """What the kinds have in common."""

    width: int
    """Nanoseconds of a bucket in a calendar of what is due."""

    by_arrival: bool
    """Windows are due by arrival time, not by watermark."""

    def take(self, aggregation: Accumulating, windows: Any, incoming: Incoming) -> Taken:
        """Put a message into its key's windows; exceptions of user code are not caught.

        If it raises, the windows are as before.

        Raises:
            DeadLetterError: `late`: the policy is to make a dead letter of it (window-6).
        """

    def due(self, windows: Any) -> int | None:
        """Return the watermark, or arrival time, at which the next window fires."""

    def end(self, windows: Any) -> int:
        """Return the end of the window that fires next."""

    def fire(self, key: Any, windows: Any) -> tuple[Firing, Any]:
        """Return the window that fires next, and the key's windows without it."""

    def open(self, key: Any, windows: Any) -> Iterator[Firing]:
        """Yield a key's windows as they would fire (window-11)."""

    def number(self, windows: Any) -> int:
        """Return how many windows of a key are open."""


def windowed(application: Application, index: int) -> Windowed:
    """Return the operation of the window step at a node."""
    step = application.nodes[index]
    assert isinstance(step, Step)
    assert isinstance(step.operation, Windowed)
    return step.operation


def kind_of(windows: Windows) -> Ranges | KeyedKind:
    """Return the rules of these windows."""
    if isinstance(windows, RangeWindows):
        return Ranges(windows)
    if isinstance(windows, SessionWindows):
        return Sessions(windows)
    return Counts(windows)


class Panes(NamedTuple):
    """A key's range windows.

    Args:
        earliest: the number of its earliest window that has not fired; window k begins at k slides.
        parts: accumulators by the panes' numbers; pane j begins at j pane lengths.
    """

    earliest: int
    parts: dict[int, Any]


class Ranges(WindowKind):
    """Range windows, kept as panes (window-2, window-5)."""

    by_arrival = False

    def __init__(self, windows: RangeWindows) -> None:
        self._range, self._slide, self._delay = windows.range, windows.slide, windows.delay
        self._pane, self._policy = windows.pane, windows.late
        self.width = max(1, windows.slide // _BUCKETS)

    @override
    def take(self, aggregation: Accumulating, windows: Panes | None, incoming: Incoming) -> Taken:
        _, message, time, _, watermark = incoming
        pane = time // self._pane
        if windows is not None and pane in windows.parts and watermark <= time + self._delay:
            # Nearly every message: all its windows are open, and this is known.
            parts = windows.parts
            parts[pane] = aggregation.updated(message, parts[pane])
            return windows, None, None
        first_open = self.first_open(watermark)
        place, partly = self.pane_for(time, first_open)
        if place is None:
            return windows, *self.late(aggregation, incoming)
        parts = {} if windows is None else windows.parts
        if place in parts:
            part = aggregation.updated(message, parts[place])
        else:
            part = aggregation.begun(message)
        earliest = int(max(self.first_with(place), first_open))
        if windows is not None:
            earliest = min(earliest, windows.earliest)
        return Panes(earliest, {**parts, place: part}), None, "partly" if partly else None

    @override
    def due(self, windows: Panes) -> int:
        return self.due_at(windows.earliest)

    @override
    def end(self, windows: Panes) -> int:
        return windows.earliest * self._slide + self._range

    @override
    def fire(self, key: Any, windows: Panes) -> tuple[Firing, Panes | None]:
        firing = self._firing(key, windows, windows.earliest)
        following = windows.earliest + 1
        start = following * self._slide
        kept = {pane: part for pane, part in windows.parts.items() if pane * self._pane >= start}
        if not kept:
            return firing, None
        return firing, Panes(max(following, self.first_with(min(kept))), kept)

    @override
    def open(self, key: Any, windows: Panes) -> Iterator[Firing]:
        for numbers in self._open(windows):
            for number in numbers:
                yield self._firing(key, windows, number)

    @override
    def number(self, windows: Panes) -> int:
        if self._pane == self._range:  # tumbling: a pane is a window
            return len(windows.parts)
        return sum(map(len, self._open(windows)))

    def pane_for(self, time: int, first_open: float) -> tuple[int | None, bool]:
        """Return the pane in which a message is accumulated, and whether it is partly late.

        `None`: it is late, and its policy is not to go to the oldest open window (window-6).

        Args:
            time: its event time.
            first_open: see the method `first_open`.
        """
        pane = time // self._pane
        if first_open <= time // self._slide:
            return pane, first_open > self.first_with(pane)
        if self._policy is not LateDataPolicy.PLACE_IN_OLDEST_WINDOW or first_open == FOREVER:
            return None, False
        return int(first_open) * self._slide // self._pane, False

    def first_with(self, pane: int) -> int:
        """Return the number of the first window that a pane belongs to."""
        return (pane * self._pane - self._range) // self._slide + 1

    def first_open(self, watermark: float) -> float:
        """Return the number of the first window on the grid that has not fired."""
        if watermark in (NEVER, FOREVER):
            return watermark
        return (int(watermark) - self._delay - self._range) // self._slide + 1

    def due_at(self, number: int) -> int:
        """Return the watermark at which a window fires."""
        return number * self._slide + self._range + self._delay

    def late(
        self, aggregation: Accumulating, incoming: Incoming
    ) -> tuple[Firing | None, str | None]:
        """Do with a late message what the policy says; see `_late`."""
        return _late(self._policy, aggregation, incoming, self.due_at(incoming.time // self._slide))

    def _open(self, windows: Panes) -> Iterator[range]:
        """Yield the numbers of a key's open windows, in order."""
        following = windows.earliest
        for pane in sorted(windows.parts):
            first = max(self.first_with(pane), following)
            following = max(pane * self._pane // self._slide + 1, following)
            yield range(first, following)

    def _firing(self, key: Any, windows: Panes, number: int) -> Firing:
        start = number * self._slide
        end = start + self._range
        panes = sorted([pane for pane in windows.parts if start <= pane * self._pane < end])
        return Firing(key, start, end, end - 1, [windows.parts[pane] for pane in panes])


class KeyedKind(WindowKind, Protocol):
    """A kind whose windows can be written for each key, with their parts as bytes."""

    def form(self, windows: Any, dumps: Callable[[Any], bytes]) -> Any:
        """Return a key's windows as plain tuples."""

    def made(self, form: Any, loads: Callable[[bytes], Any]) -> Any:
        """Return the windows that `form` has described."""


class Session(NamedTuple):
    """A session: the first and last event time in it, and its accumulator."""

    first: int
    last: int
    part: Any


class Sessions(KeyedKind):
    """Sessions: a key's are a list in order of time (window-7)."""

    by_arrival = False

    def __init__(self, windows: SessionWindows) -> None:
        self._gap, self._delay, self._policy = windows.gap, windows.delay, windows.late
        self.width = max(1, windows.gap // _BUCKETS)

    @override
    def take(
        self, aggregation: Accumulating, windows: list[Session] | None, incoming: Incoming
    ) -> Taken:
        _, message, time, _, watermark = incoming
        sessions, gap = windows or [], self._gap
        if len(sessions) == 1:
            first, last, part = sessions[0]
            if first <= time < last + gap:
                # Nearly every message: it goes on with its key's only session.
                part = aggregation.joined([part, aggregation.begun(message)])
                return [Session(first, max(last, time), part)], None, None
        met = [
            session
            for session in sessions
            if time < session.last + gap and session.first < time + gap
        ]
        due = time + gap + self._delay
        if not met and due <= watermark:
            return windows, *_late(self._policy, aggregation, incoming, due)
        new = Session(time, time, aggregation.begun(message))
        if met:
            # The sort is stable: on a tie, the older session comes before the message's.
            parts = sorted([*met, new], key=_first)
            part = aggregation.joined([session.part for session in parts])
            new = Session(parts[0].first, max([session.last for session in parts]), part)
        others = (
            [session for session in sessions if session not in met]
            if len(sessions) > len(met)
            else []
        )
        return sorted([*others, new], key=_first), None, None

    @override
    def due(self, windows: list[Session]) -> int:
        return windows[0].last + self._gap + self._delay

    @override
    def end(self, windows: list[Session]) -> int:
        return windows[0].last + self._gap

    @override
    def fire(self, key: Any, windows: list[Session]) -> tuple[Firing, list[Session] | None]:
        return self._firing(key, windows[0]), windows[1:] or None

    @override
    def open(self, key: Any, windows: list[Session]) -> Iterator[Firing]:
        for session in windows:
            yield self._firing(key, session)

    @override
    def number(self, windows: list[Session]) -> int:
        return len(windows)

    @override
    def form(self, windows: list[Session], dumps: Callable[[Any], bytes]) -> Any:
        return [(session.first, session.last, dumps(session.part)) for session in windows]

    @override
    def made(self, form: Any, loads: Callable[[bytes], Any]) -> list[Session]:
        return [Session(first, last, loads(part)) for first, last, part in form]

    def _firing(self, key: Any, session: Session) -> Firing:
        end = session.last + self._gap
        return Firing(key, session.first, end, end - 1, (session.part,))


def _first(session: Session) -> int:
    return session.first


class Count(NamedTuple):
    """A count window.

    Args:
        number: of its messages.
        least, greatest, last: event times of its messages.
        opened: the arrival time of its first message.
        part: its accumulator.
    """

    number: int
    least: int
    greatest: int
    last: int
    opened: int
    part: Any


class Counts(KeyedKind):
    """Count windows: a key has at most one (window-8)."""

    by_arrival = True

    def __init__(self, windows: CountWindows) -> None:
        self._count, self._timeout = windows.count, windows.timeout
        self.width = max(1, (windows.timeout or 1) // _BUCKETS)

    @override
    def take(self, aggregation: Accumulating, windows: Count | None, incoming: Incoming) -> Taken:
        key, message, time, arrived, _ = incoming
        if windows is None:
            windows = Count(1, time, time, time, arrived, aggregation.begun(message))
        else:
            number, least, greatest, _, opened, part = windows
            part = aggregation.updated(message, part)
            windows = Count(number + 1, min(least, time), max(greatest, time), time, opened, part)
        if windows.number < self._count:
            return windows, None, None
        firing, rest = self.fire(key, windows)
        return rest, firing, None

    @override
    def due(self, windows: Count) -> int | None:
        return None if self._timeout is None else windows.opened + self._timeout

    @override
    def end(self, windows: Count) -> int:
        return windows.greatest + 1

    @override
    def fire(self, key: Any, windows: Count) -> tuple[Firing, None]:
        end = windows.greatest + 1
        return Firing(key, windows.least, end, windows.last, (windows.part,)), None

    @override
    def open(self, key: Any, windows: Count) -> Iterator[Firing]:
        yield self.fire(key, windows)[0]

    @override
    def number(self, windows: Count) -> int:
        return 1

    @override
    def form(self, windows: Count, dumps: Callable[[Any], bytes]) -> Any:
        return (*windows[:-1], dumps(windows.part))

    @override
    def made(self, form: Any, loads: Callable[[bytes], Any]) -> Count:
        window = Count(*form)
        return window._replace(part=loads(window.part))


def _late(
    policy: LateDataPolicy, aggregation: Accumulating, incoming: Incoming, last: int
) -> tuple[Firing | None, str | None]:
    """Do with a late message what the policy says (window-6).

    Args:
        policy: the step's.
        aggregation: calls the aggregation.
        incoming: the message.
        last: the watermark at which the last window fired that it belongs to, or would have.

    Returns:
        The window that fires for it alone; what is counted.

    Raises:
        DeadLetterError: `late`.
    """
    if policy is LateDataPolicy.DROP:
        return None, "dropped"
    key, message, time, _, _ = incoming
    if policy is LateDataPolicy.FIRE_PER_MESSAGE:
        return Firing(key, time, time + 1, time, (aggregation.begun(message),), own=True), None
    raise DeadLetterError(
        Reason.LATE,
        f"its event time is {time}, and the step's watermark has reached {last}: every window "
        "that it belongs to has fired",
    )
