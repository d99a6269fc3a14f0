"""Range, session and count windows: which a message belongs to, and which are due, rule by rule.

Which windows are due is found through a calendar, so a turn in which nothing is due looks at one
number, however many windows are open.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from wallaroo.keys import Key, encode_key
from wallaroo.operations import Windowed
from wallaroo.windows import CountWindows, LateDataPolicy, RangeWindows, SessionWindows
from wallaroo_reference.calendar import Calendar
from wallaroo_reference.isolated.copies import packed
from wallaroo_reference.isolated.watermarks import FOREVER, NEVER
from wallaroo_reference.isolated.windows import Arrival, Firing, Freeze, WindowStep
from wallaroo_reference.kept import PANE, identity_of, key_of_name, name_of


def window_step(operation: Windowed, freeze: Freeze) -> WindowStep:
    """Return the windows of a step, none of them open yet."""
    windows = operation.windows
    if isinstance(windows, RangeWindows):
        return RangeStep(operation, windows, freeze)
    if isinstance(windows, SessionWindows):
        return SessionStep(operation, windows, freeze)
    return CountStep(operation, windows, freeze)


@dataclass(slots=True)
class _Panes:
    """The panes of one key: accumulators by number, and the number of its earliest open window."""

    key: Key
    parts: dict[int, Any]
    earliest: int


class RangeStep(WindowStep):
    """Range windows, kept as panes (window-5); the identity of a cell is (pane, key's identity)."""

    kind = "panes"

    def __init__(self, operation: Windowed, windows: RangeWindows, freeze: Freeze) -> None:
        super().__init__(operation, freeze)
        self._windows = windows
        self._pane = windows.pane
        self._keys: dict[Hashable, _Panes] = {}
        self._count = 0  # panes, of all keys
        self._calendar = Calendar(self._next_end)

    def take(self, arrival: Arrival) -> Firing | None:
        """See `WindowStep.take`."""
        windows = self._windows
        pane = arrival.time // self._pane
        partly = self._fired((arrival.time - windows.range) // windows.slide + 1)
        if self._fired(arrival.time // windows.slide):
            placed = windows.late is LateDataPolicy.PLACE_IN_OLDEST_WINDOW
            if not placed or self.watermark == FOREVER:
                return self._late(arrival, windows.late)
            pane, partly = self._first_open() * windows.slide // self._pane, False
        panes = self._keys.get(arrival.known)
        if panes is not None and pane in panes.parts:
            panes.parts[pane] = self._updated(arrival.message, panes.parts[pane])
        else:
            part = self._updated(arrival.message)
            earliest = max(self._first_with(pane), self._first_open())
            if panes is None:
                panes = self._keys[arrival.known] = _Panes(arrival.key, {}, earliest)
            panes.parts[pane] = part
            self._count += 1
            panes.earliest = min(panes.earliest, earliest)
            self._calendar.note(arrival.known)
        self.touch((pane, arrival.known))
        self.partly_late += partly
        return None

    def due(self, now: int) -> Iterator[Firing]:
        """See `WindowStep.due`."""
        windows = self._windows
        while (end := self._calendar.first()) is not None:
            if self.watermark < end + windows.delay:
                return
            for known in self._calendar.take(end, self._encoded):
                panes = self._keys[known]
                number = panes.earliest
                parts = self._parts(panes, number)
                self._forget_fired(known, panes)
                yield Firing(panes.key, end - windows.range, end, end - 1, parts)

    def next_due(self) -> int | None:
        """See `WindowStep.next_due`."""
        end = self._calendar.first()
        return None if end is None else end + self._windows.delay

    def open(self) -> Iterator[Firing]:
        """See `WindowStep.open`."""
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

    def count(self) -> int:
        """See `WindowStep.count`."""
        return self._count

    def identities(self) -> list[Any]:
        """See `WindowStep.identities`."""
        return [(pane, known) for known, panes in self._keys.items() for pane in panes.parts]

    def named(self, known: Any) -> bytes:
        """See `WindowStep.named`."""
        return PANE.pack(known[0]) + name_of(known[1])

    def go_on(self) -> None:
        """See `WindowStep.go_on`: between two records, what is due has fired."""
        for known, panes in self._keys.items():
            panes.earliest = max(self._first_with(min(panes.parts)), self._first_open())
            self._calendar.note(known)

    def _form(self, known: Any) -> Any:
        panes = self._keys.get(known[1])
        part = _ABSENT if panes is None else panes.parts.get(known[0], _ABSENT)
        return None if part is _ABSENT else packed(part)

    def _make(self, name: bytes, form: Any) -> None:
        known = identity_of(name[PANE.size :])
        panes = self._keys.get(known)
        if panes is None:
            panes = self._keys[known] = _Panes(key_of_name(name, self.kind), {}, 0)
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

    def _forget_fired(self, known: Hashable, panes: _Panes) -> None:
        """Forget the panes that only the key's earliest window still held, which has fired."""
        panes.earliest += 1
        start = panes.earliest * self._windows.slide
        for pane in [one for one in panes.parts if one * self._pane < start]:
            del panes.parts[pane]
            self._count -= 1
            self.touch((pane, known))
        if panes.parts:
            panes.earliest = max(panes.earliest, self._first_with(min(panes.parts)))
            self._calendar.note(known)
        else:
            del self._keys[known]  # window-10

    def _next_end(self, known: Hashable) -> int | None:
        panes = self._keys.get(known)
        if panes is None:
            return None
        return panes.earliest * self._windows.slide + self._windows.range

    def _encoded(self, known: Hashable) -> bytes:
        return encode_key(self._keys[known].key)


@dataclass(slots=True)
class _Session:
    """An open session: the least and the greatest event time, and the accumulator."""

    first: int
    last: int
    part: Any


@dataclass(slots=True)
class _Sessions:
    """The open sessions of one key, in order of time."""

    key: Key
    sessions: list[_Session]


class SessionStep(WindowStep):
    """Session windows (window-7)."""

    def __init__(self, operation: Windowed, windows: SessionWindows, freeze: Freeze) -> None:
        super().__init__(operation, freeze)
        self._windows = windows
        self._keys: dict[Hashable, _Sessions] = {}
        self._calendar = Calendar(self._next_end)

    def take(self, arrival: Arrival) -> Firing | None:
        """See `WindowStep.take`."""
        time, gap = arrival.time, self._windows.gap
        known = self._keys.get(arrival.known)
        meeting = [] if known is None else [one for one in known.sessions if self._meets(one, time)]
        if not meeting and time + gap + self._windows.delay <= self.watermark:
            return self._late(arrival, self._windows.late)
        merged = _Session(time, time, self._updated(arrival.message))
        if meeting:
            # In order of the first event time; on a tie the older one comes first.
            merged = self._merged(sorted([*meeting, merged], key=lambda one: one.first))
        if known is None:
            known = self._keys[arrival.known] = _Sessions(arrival.key, [])
        known.sessions = [one for one in known.sessions if one not in meeting]
        known.sessions.append(merged)
        known.sessions.sort(key=lambda one: one.first)
        self._calendar.note(arrival.known)
        self.touch(arrival.known)
        return None

    def due(self, now: int) -> Iterator[Firing]:
        """See `WindowStep.due`."""
        while (end := self._calendar.first()) is not None:
            if self.watermark < end + self._windows.delay:
                return
            for identity in self._calendar.take(end, self._encoded):
                known = self._keys[identity]
                session = known.sessions.pop(0)
                self.touch(identity)
                if known.sessions:
                    self._calendar.note(identity)
                else:
                    del self._keys[identity]  # window-10
                yield self._firing(known.key, session)

    def next_due(self) -> int | None:
        """See `WindowStep.next_due`."""
        end = self._calendar.first()
        return None if end is None else end + self._windows.delay

    def open(self) -> Iterator[Firing]:
        """See `WindowStep.open`."""
        for known in self._keys.values():
            for session in known.sessions:
                yield self._firing(known.key, session)

    def count(self) -> int:
        """See `WindowStep.count`."""
        return len(self._keys)

    def identities(self) -> list[Any]:
        """See `WindowStep.identities`."""
        return list(self._keys)

    def go_on(self) -> None:
        """See `WindowStep.go_on`."""
        for known in self._keys:
            self._calendar.note(known)

    def _form(self, known: Any) -> Any:
        kept = self._keys.get(known)
        return kept and [(one.first, one.last, packed(one.part)) for one in kept.sessions]

    def _make(self, name: bytes, form: Any) -> None:
        sessions = [_Session(first, last, self._part(part)) for first, last, part in form]
        self._keys[identity_of(name)] = _Sessions(key_of_name(name), sessions)

    def _meets(self, session: _Session, time: int) -> bool:
        """Whether the interval of a message overlaps a session; touching is not overlapping."""
        gap = self._windows.gap
        return session.first < time + gap and time < session.last + gap

    def _merged(self, parts: list[_Session]) -> _Session:
        combined = self.combined(tuple([one.part for one in parts]))
        first = min([one.first for one in parts])
        last = max([one.last for one in parts])
        return _Session(first, last, self._freeze(combined))

    def _end(self, session: _Session) -> int:
        return session.last + self._windows.gap

    def _firing(self, key: Key, session: _Session) -> Firing:
        end = self._end(session)
        return Firing(key, session.first, end, end - 1, (session.part,))

    def _next_end(self, identity: Hashable) -> int | None:
        known = self._keys.get(identity)
        return None if known is None else self._end(known.sessions[0])

    def _encoded(self, identity: Hashable) -> bytes:
        return encode_key(self._keys[identity].key)


@dataclass(slots=True)
class _Count:
    """An open count window of one key."""

    key: Key
    number: int
    least: int
    greatest: int
    last: int
    opened: int
    part: Any


class CountStep(WindowStep):
    """Count windows (window-8)."""

    def __init__(self, operation: Windowed, windows: CountWindows, freeze: Freeze) -> None:
        super().__init__(operation, freeze)
        self._windows = windows
        self._keys: dict[Hashable, _Count] = {}
        self._calendar = Calendar(self._timeout_of)

    def take(self, arrival: Arrival) -> Firing | None:
        """See `WindowStep.take`."""
        time = arrival.time
        window = self._keys.get(arrival.known)
        if window is None:
            part = self._updated(arrival.message)
            window = _Count(arrival.key, 1, time, time, time, arrival.now, part)
            self._keys[arrival.known] = window
            self._calendar.note(arrival.known)
        else:
            window.part = self._updated(arrival.message, window.part)
            window.number += 1
            window.least, window.greatest = min(window.least, time), max(window.greatest, time)
            window.last = time
        self.touch(arrival.known)
        if window.number < self._windows.count:
            return None
        del self._keys[arrival.known]
        return _counted(window)

    def due(self, now: int) -> Iterator[Firing]:
        """See `WindowStep.due`: by arrival time, those that are due in order of their ends."""
        found: list[Hashable] = []
        while (time := self._calendar.first()) is not None and time <= now:
            found += self._calendar.take(time)
        for known in sorted(found, key=self._order):
            self.touch(known)
            yield _counted(self._keys.pop(known))

    def next_due(self) -> int | None:
        """See `WindowStep.next_due`: watermarks do not fire count windows."""
        return None

    def next_timeout(self) -> int | None:
        """See `WindowStep.next_timeout`."""
        return self._calendar.first()

    def open(self) -> Iterator[Firing]:
        """See `WindowStep.open`."""
        for window in self._keys.values():
            yield _counted(window)

    def count(self) -> int:
        """See `WindowStep.count`."""
        return len(self._keys)

    def identities(self) -> list[Any]:
        """See `WindowStep.identities`."""
        return list(self._keys)

    def go_on(self) -> None:
        """See `WindowStep.go_on`."""
        for known in self._keys:
            self._calendar.note(known)

    def _form(self, known: Any) -> Any:
        one = self._keys.get(known)
        if one is None:
            return None
        return one.number, one.least, one.greatest, one.last, one.opened, packed(one.part)

    def _make(self, name: bytes, form: Any) -> None:
        number, least, greatest, last, opened, part = form
        self._keys[identity_of(name)] = _Count(
            key_of_name(name), number, least, greatest, last, opened, self._part(part)
        )

    def _order(self, known: Hashable) -> tuple[int, bytes]:
        window = self._keys[known]
        return window.greatest, encode_key(window.key)

    def _timeout_of(self, known: Hashable) -> int | None:
        window, timeout = self._keys.get(known), self._windows.timeout
        return None if window is None or timeout is None else window.opened + timeout


_ABSENT = object()


def _counted(window: _Count) -> Firing:
    return Firing(window.key, window.least, window.greatest + 1, window.last, (window.part,))
