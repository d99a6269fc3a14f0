"""Session windows in the compiled path (window-7)."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from wallaroo.operations import Windowed
from wallaroo.overriding import override
from wallaroo.windows import SessionWindows
from wallaroo_reference.calendar import Calendar
from wallaroo_reference.compiled.clocks import FOREVER, Times
from wallaroo_reference.compiled.windows import Firing, KeptWindows, encoded, judge, key_of, own
from wallaroo_reference.kept import identity_of


class _Session:
    """An open session: its least and greatest event time, and its accumulator."""

    __slots__ = ("first", "last", "part")

    def __init__(self, first: int, last: int, part: Any) -> None:
        self.first = first
        self.last = last
        self.part = part


class Sessions(KeptWindows):
    """Session windows, by the identities of their keys, each key's in order of time."""

    def __init__(self, operation: Windowed, ways: Mapping[str, int], times: Times) -> None:
        super().__init__(operation, ways, times)
        windows = operation.windows
        assert isinstance(windows, SessionWindows)
        self._gap, self._delay, self._policy = windows.gap, windows.delay, windows.late
        self._open: dict[Hashable, list[_Session]] = {}
        self._calendar = Calendar(self._first_end)

    @override
    def take(self, message: Any, key: Any, time: int) -> Firing | None:
        known = judge(key)
        self.refresh()
        self.touch(known)
        gap = self._gap
        sessions = self._open.get(known, [])
        meeting = [one for one in sessions if one.first < time + gap and time < one.last + gap]
        if not meeting and time + gap + self._delay <= self.watermark:
            return self.late(message, key, time, self._policy)
        part = self.updated(message)
        if len(meeting) == 1:
            (one,) = meeting
            in_order = (one.part, part) if one.first <= time else (part, one.part)
            one.part = self.combined(in_order)
            one.first, one.last = min(one.first, time), max(one.last, time)
            return None  # it ends no earlier than it did
        new = _Session(time, time, part)
        if meeting:
            # `sorted` is stable: on a tie, the older session comes first.
            bridged = sorted([*meeting, new], key=lambda one: one.first)
            # If the second combine raises, no session shows what the first one did (window-9).
            parts = [own(one.part) for one in bridged[:-1]]
            new.part = self.combined([*parts, bridged[-1].part])
            new.first = bridged[0].first
            new.last = max([one.last for one in bridged])
        rest = [one for one in sessions if one not in meeting]
        self._open[known] = sorted([*rest, new], key=lambda one: one.first)
        self._calendar.note(known)
        due = self._open[known][0].last + gap + self._delay
        if due < self.next_due:
            self.next_due = due
            self._times.settle()
        return None

    @override
    def due(self) -> Iterator[Firing]:
        while (end := self._calendar.first()) is not None and end + self._delay <= self.watermark:
            for known in self._calendar.take(end, encoded):
                sessions = self._open[known]
                session = sessions.pop(0)
                self.touch(known)
                if sessions:
                    self._calendar.note(known)
                else:
                    del self._open[known]  # window-10
                yield self._window(known, session)
        self.settle()

    def settle(self) -> None:
        """See `KeptWindows.settle`: a session that goes on ends later than was noted."""
        end = self._calendar.first()
        self.next_due = FOREVER if end is None else end + self._delay

    @override
    def open(self) -> Iterator[Firing]:
        for known, sessions in self._open.items():
            for session in sessions:
                yield self._window(known, session)

    @override
    def count(self) -> int:
        return len(self._open)

    @override
    def identities(self) -> list[Any]:
        return list(self._open)

    @override
    def go_on(self) -> None:
        for known in self._open:
            self._calendar.note(known)
        self.settle()

    def _form(self, known: Any) -> Any:
        sessions, dumps = self._open.get(known), self._packer.dumps
        return sessions and [(one.first, one.last, dumps(one.part)) for one in sessions]

    def _make(self, name: bytes, form: Any) -> None:
        loads = self._packer.loads
        self._open[identity_of(name)] = [
            _Session(first, last, loads(part)) for first, last, part in form
        ]

    @property
    @override
    def held(self) -> int:
        return sum(map(len, self._open.values()))

    def _window(self, known: Hashable, session: _Session) -> Firing:
        end = session.last + self._gap
        return key_of(known), end - 1, session.first, end, (session.part,), 0, False

    def _first_end(self, known: Hashable) -> int | None:
        sessions = self._open.get(known)
        return sessions[0].last + self._gap if sessions else None
