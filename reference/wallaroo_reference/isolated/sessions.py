"""Session windows, rule by rule: which a message joins, and which are due (window-7)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from wallaroo.keys import Key
from wallaroo.overriding import override
from wallaroo.windows import SessionWindows
from wallaroo_reference.cells import identity_of, key_of_name
from wallaroo_reference.isolated.copies import packed
from wallaroo_reference.isolated.windows import Arrival, Firing, Held, WindowStep


@dataclass(slots=True)
class _Session:
    """An open session: the least and the greatest event time, and the accumulator."""

    first: int
    last: int
    part: Any


@dataclass(slots=True)
class _Sessions(Held):
    """The open sessions of one key, in order of time."""

    sessions: list[_Session]


class SessionStep(WindowStep[SessionWindows, _Sessions]):
    """Session windows (window-7)."""

    @override
    def take(self, arrival: Arrival) -> Firing | None:
        time, gap = arrival.time, self._windows.gap
        entry = self._keys.get(arrival.identity)
        sessions = [] if entry is None else entry.sessions
        meeting = [session for session in sessions if self._meets(session, time)]
        if not meeting and time + gap + self._windows.delay <= self.watermark:
            last = time + gap + self._windows.delay
            return self._late(arrival, self._windows.late, last)
        merged = _Session(time, time, self._updated(arrival.message))
        if meeting:
            # In order of the first event time; on a tie the older one comes first.
            merged = self._merged(sorted([*meeting, merged], key=lambda session: session.first))
        if entry is None:
            entry = self._keys[arrival.identity] = _Sessions(arrival.key, [])
        entry.sessions = [session for session in entry.sessions if session not in meeting]
        entry.sessions.append(merged)
        entry.sessions.sort(key=lambda session: session.first)
        self._timers.note(arrival.identity)
        self.touch(arrival.identity)
        return None

    @override
    def due(self, now: int) -> Iterator[Firing]:
        while (end := self._timers.first()) is not None:
            if self.watermark < end + self._windows.delay:
                return
            for identity in self._timers.take(end, self._encoded):
                entry = self._keys[identity]
                session = entry.sessions.pop(0)
                self.touch(identity)
                if entry.sessions:
                    self._timers.note(identity)
                else:
                    del self._keys[identity]  # window-10
                yield self._firing(entry.key, session)

    @override
    def next_due(self) -> int | None:
        end = self._timers.first()
        return None if end is None else end + self._windows.delay

    @override
    def open(self) -> Iterator[Firing]:
        for entry in self._keys.values():
            for session in entry.sessions:
                yield self._firing(entry.key, session)

    def _form(self, identity: Any) -> Any:
        entry = self._keys.get(identity)
        return entry and [
            (session.first, session.last, packed(session.part)) for session in entry.sessions
        ]

    def _make(self, name: bytes, form: Any) -> None:
        sessions = [_Session(first, last, self._part(part)) for first, last, part in form]
        self._keys[identity_of(name)] = _Sessions(key_of_name(name), sessions)

    def _meets(self, session: _Session, time: int) -> bool:
        """Whether the interval of a message overlaps a session; touching is not overlapping."""
        gap = self._windows.gap
        return session.first < time + gap and time < session.last + gap

    def _merged(self, parts: list[_Session]) -> _Session:
        combined = self.combined(tuple([session.part for session in parts]))
        first = min([session.first for session in parts])
        last = max([session.last for session in parts])
        return _Session(first, last, self._freeze(combined))

    def _end(self, session: _Session) -> int:
        return session.last + self._windows.gap

    def _firing(self, key: Key, session: _Session) -> Firing:
        end = self._end(session)
        return Firing(key, session.first, end, end - 1, (session.part,))

    @override
    def _waits_for(self, identity: Hashable) -> int | None:
        entry = self._keys.get(identity)
        return None if entry is None else self._end(entry.sessions[0])
