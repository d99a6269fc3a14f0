"""Windows for adapters: calls of aggregations in isolation, and what an engine has to fold.

An engine with windows of its own decides which windows a message belongs to, keeps what is
accumulated, and decides when a window fires and which message is late. The calls of an aggregation
are the same on each of them (window-4, window-9): `WindowCalls`. An accumulator is bytes between
calls.

Many engines ask for three functions: one adds a message to what a window holds, one joins what two
sessions hold, one says what a window gives. These are `Folding`. They combine panes and sessions as
the rules say (window-5, window-7), whichever windows the engine puts a message into.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias, TypeGuard

from wallaroo.aggregations import WindowBounds
from wallaroo.errors import UnsupportedTopology
from wallaroo.judging import DeadLetterError
from wallaroo.keys import decode_key
from wallaroo.operations import Windowed
from wallaroo.overriding import override
from wallaroo.records import Record, Tick
from wallaroo.topology import Application, Step
from wallaroo.trace import DeadLetter, Ended, Reason, Trace
from wallaroo.windows import CountWindows, LateDataPolicy, RangeWindows, SessionWindows
from wallaroo_conformance.adapting.calls import Calls, Message, Outcome

Folded: TypeAlias = Mapping[tuple[int, int], bytes]
"""What a window holds: accumulators. The key of a session's is its first and last event time, that
of a pane's its number, twice. It is empty if nothing came, or no `update` succeeded (window-9)."""


class WindowCalls(Calls):
    """The calls of one application's user code, aggregations among it.

    What a window gives belongs to the record that began last, and is numbered in the order in
    which windows fire (time-4). So an engine that lets later records begin before earlier ones are
    through gives other lineages.
    """

    def __init__(self, application: Application, engine: str = "__main__") -> None:
        super().__init__(application, engine)
        nodes = application.nodes
        windows = application.window_steps
        self._turns = {id(nodes[index]): at - len(windows) for at, index in enumerate(windows)}
        self._latest: tuple[int, str | None] = (0, None)  # record's sequence and source
        self._fired: Counter[int] = Counter()  # in that record's turns, by step
        self._late: Counter[tuple[str, str]] = Counter()

    @override
    def begin(self, sequence: int, record: Record) -> list[Outcome]:
        self._latest = sequence, None if isinstance(record, Tick) else record.source
        self._fired.clear()
        return super().begin(sequence, record)

    def update(
        self, step: Step, key: bytes, message: Message, accumulator: bytes | None = None
    ) -> bytes | DeadLetter | Ended:
        """Return an accumulator after one more message; without one, of a new window (window-4)."""
        aggregation = _windowed(step).aggregation
        try:
            if accumulator is None:
                given = self._called(aggregation.initial_accumulator, Reason.RAISED)
                mine = self._thaw(self._freeze(given))
            else:
                mine = self._thaw(accumulator)
            mine_too = self._thaw(message.frozen)
            result = self._called(aggregation.call, Reason.RAISED, mine_too, mine)
            return self._freeze(mine if result is None else result)
        except DeadLetterError as dead:
            return self._dead(step, message, dead, decode_key(key))

    def combine(
        self, step: Step, key: bytes, message: Message, parts: Sequence[bytes]
    ) -> bytes | DeadLetter | Ended:
        """Return the accumulator of sessions that a message makes one, in order (window-7)."""
        try:
            return self._freeze(self._combined(step, parts))
        except DeadLetterError as dead:
            return self._dead(step, message, dead, decode_key(key))

    def fire(
        self, step: Step, key: bytes, parts: Sequence[bytes], start: int, end: int
    ) -> list[Outcome]:
        """Return what a window gives: one message, or none (window-3, window-4).

        Args:
            step: the step.
            key: the window's key, as `key` gave it.
            parts: the accumulators of its panes, earliest first (window-5).
            start: in nanoseconds since 1970.
            end: in nanoseconds since 1970; not in the window.
        """
        sequence, source = self._latest
        turn = self._turns[id(step)]
        lineage = (sequence, turn, self._fired[turn])
        self._fired[turn] += 1
        aggregation = _windowed(step).aggregation
        message = Message(lineage, source or "", None, b"", decode_key(key), end - 1)
        try:
            arguments = [message.key, self._combined(step, parts)]
            if aggregation.wants_window:
                arguments.append(WindowBounds(start, end))
            return self._one(message, self._called(aggregation.output, Reason.RAISED, *arguments))
        except DeadLetterError as dead:
            letter = self._dead(step, message, dead, message.key)
            return [replace(letter, source=source) if isinstance(letter, DeadLetter) else letter]

    def late(self, step: Step, key: bytes, message: Message) -> list[Outcome]:
        """Return what becomes of a late message: a dead letter, or it is counted (window-6)."""
        windows = _windowed(step).windows
        assert not isinstance(windows, CountWindows), "nothing is late for a count window"
        if windows.late is LateDataPolicy.DROP:
            self._late[step.name, "dropped"] += 1
            return []
        assert windows.late is LateDataPolicy.DEAD_LETTER, "the engine has no other policies"
        dead = DeadLetterError(Reason.LATE, "the windows that it belongs to have fired")
        return [self._dead(step, message, dead, decode_key(key))]

    def partly_late(self, step: Step) -> None:
        """Count a message for which some windows have fired and others not (window-6)."""
        self._late[step.name, "partly"] += 1

    @override
    def trace(
        self,
        results: Iterable[Outcome],
        states: Mapping[tuple[str, bytes], bytes | None] = MappingProxyType({}),
        partitions: int | None = None,
    ) -> Trace:
        return replace(super().trace(results, states, partitions), late=dict(self._late))

    def _combined(self, step: Step, parts: Sequence[bytes]) -> Any:
        combine = _windowed(step).aggregation.combine
        whole = self._thaw(parts[0])
        for part in parts[1:]:
            assert combine is not None, "only aggregations that have it have several parts"
            result = self._called(combine, Reason.RAISED, whole, self._thaw(part))
            whole = whole if result is None else result
        return whole


def _windowed(step: Step) -> Windowed:
    assert isinstance(step.operation, Windowed), "a step without windows"
    return step.operation


def refuse_unfolded(application: Application, engine: str) -> None:
    """Refuse windows that `Folding` does not have (build-2).

    Raises:
        UnsupportedTopology: there are count windows, a policy for late messages other than
            ``dead-letter`` and ``drop``, or an idle source or several in front of a window: an
            adapter has one input, which cannot hold back for a source (time-3).
    """
    for index in application.window_steps:
        step = application.nodes[index]
        assert isinstance(step, Step)
        assert isinstance(step.operation, Windowed)
        windows = step.operation.windows
        if isinstance(windows, CountWindows):
            raise UnsupportedTopology("window-8", step.name, f"{engine} has no such count windows")
        if windows.late not in (LateDataPolicy.DEAD_LETTER, LateDataPolicy.DROP):
            reason = f"{engine} has no late policy {windows.late.value!r}"
            raise UnsupportedTopology("window-6", step.name, reason)
        if len(application.ways[index]) > 1:
            raise UnsupportedTopology("time-3", step.name, f"{engine} has one source here")
        for source in application.ways[index]:
            if application.sources[source].config.idle_after is not None:
                raise UnsupportedTopology("time-3", source, f"{engine} knows no idle sources")


class Folding:
    """The functions for one window step of one run.

    Args:
        calls: the application's calls.
        step: a step with range or session windows.
        note: takes the dead letters and ends.
    """

    def __init__(self, calls: WindowCalls, step: Step, note: Callable[[Outcome], object]) -> None:
        self._calls, self._step, self._note = calls, step, note
        assert isinstance(step.operation, Windowed)
        self._windows = step.operation.windows
        self._joining: tuple[bytes, Message] | None = None  # key and message added last
        self._added: tuple[Folded, Folded] = {}, {}  # its session before it and after it
        self._late: set[tuple[int, ...]] = set()
        self._failed: set[tuple[int, ...]] = set()

    def add(self, folded: Folded, key: bytes, message: Message) -> Folded:
        """Return what a window holds after one more message.

        A message may be added to several sliding windows; if its `update` fails, that is one dead
        letter.
        """
        if isinstance(self._windows, RangeWindows):
            pane = message.time // self._windows.pane
            part = self._calls.update(self._step, key, message, folded.get((pane, pane)))
            return {**folded, (pane, pane): part} if self._is_good(part, message) else folded
        part = self._calls.update(self._step, key, message)
        if not self._is_good(part, message):
            return folded
        self._joining = key, message
        joined = self._joined(folded, {(message.time, message.time): part})
        self._added = folded, folded if joined is None else joined
        return self._added[1]

    def join(self, folded: Folded, other: Folded) -> Folded:
        """Return what two sessions hold that the last message has made one.

        If `combine` raises, they stay two, without that message (window-9), and `give` gives both.
        """
        joined = self._joined(folded, other)
        if joined is not None:
            return joined
        before, after = self._added
        return {
            bounds: part
            for part_of in (folded, other)
            for bounds, part in (before if part_of == after else part_of).items()
        }

    def give(self, folded: Folded, key: bytes, start: int | None = None) -> list[Outcome]:
        """Return what a window gives.

        Args:
            folded: what it holds.
            key: its key.
            start: of a range window, in nanoseconds since 1970.
        """
        windows = self._windows
        if isinstance(windows, RangeWindows):
            assert start is not None, "range windows have a start"
            parts = [part for _, part in sorted(folded.items())]
            return self._fired(key, parts, start, start + windows.range) if parts else []
        assert isinstance(windows, SessionWindows)
        return [
            outcome
            for (first, last), part in sorted(folded.items())
            for outcome in self._fired(key, [part], first, last + windows.gap)
        ]

    def late(self, key: bytes, message: Message) -> list[Outcome]:
        """Return what becomes of a late message; nothing more if it is late for another window."""
        if message.lineage in self._late:
            return []
        self._late.add(message.lineage)
        return self._calls.late(self._step, key, message)

    def partly_late(self, message: Message) -> None:
        """Count a message that is late for some of its windows, and not for the others."""
        if message.lineage not in self._late:
            self._late.add(message.lineage)
            self._calls.partly_late(self._step)

    def _fired(self, key: bytes, parts: list[bytes], start: int, end: int) -> list[Outcome]:
        return self._calls.fire(self._step, key, parts, start, end)

    def _joined(self, folded: Folded, other: Folded) -> Folded | None:
        """Return two sessions as one, or `None` if `combine` has raised."""
        assert self._joining is not None, "sessions become one by a message"
        if not folded or not other:
            return folded or other
        # In order of the first event time; on a tie the older one comes first (window-7).
        ordered = sorted([*folded.items(), *other.items()], key=lambda item: item[0][0])
        key, message = self._joining
        part = self._calls.combine(self._step, key, message, [part for _, part in ordered])
        if not self._is_good(part, message):
            return None
        bounds = [bound for bound, _ in ordered]
        return {(bounds[0][0], max(last for _, last in bounds)): part}

    def _is_good(self, part: bytes | Outcome, message: Message) -> TypeGuard[bytes]:
        if isinstance(part, bytes):
            return True
        if message.lineage not in self._failed:
            self._failed.add(message.lineage)
            self._note(part)
        return False
