"""Session windows, rule by rule: which a message joins, and which are due (window-7)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

from wallaroo.keys import Key, encode_key
from wallaroo.operations import Windowed
from wallaroo.overriding import override
from wallaroo.windows import SessionWindows
from wallaroo_reference.cells import identity_of, key_of_name
from wallaroo_reference.isolated.copies import packed
from wallaroo_reference.isolated.windows import Arrival, Firing, Freeze, WindowStep
from wallaroo_reference.timers import Timers


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
        self._timers = Timers(self._next_end)

    @override
    def take(self, arrival: Arrival) -> Firing | None:
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
        self._timers.note(arrival.known)
        self.touch(arrival.known)
        return None

    @override
    def due(self, now: int) -> Iterator[Firing]:
        while (end := self._timers.first()) is not None:
            if self.watermark < end + self._windows.delay:
                return
            for identity in self._timers.take(end, self._encoded):
                known = self._keys[identity]
                session = known.sessions.pop(0)
                self.touch(identity)
                if known.sessions:
                    self._timers.note(identity)
                else:
                    del self._keys[identity]  # window-10
                yield self._firing(known.key, session)

    @override
    def next_due(self) -> int | None:
        end = self._timers.first()
        return None if end is None else end + self._windows.delay

    @override
    def open(self) -> Iterator[Firing]:
        for known in self._keys.values():
            for session in known.sessions:
                yield self._firing(known.key, session)

    @override
    def count(self) -> int:
        return len(self._keys)

    @override
    def identities(self) -> list[Any]:
        return list(self._keys)

    @override
    def go_on(self) -> None:
        for known in self._keys:
            self._timers.note(known)

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
