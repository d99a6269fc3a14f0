"""Calls of aggregations, in isolation, with their results judged: for adapters.

An engine with windows of its own decides which windows a message belongs to, keeps what is
accumulated, and decides when a window fires and which message is late. The calls of an aggregation
are the same on each of them (window-4, window-9). An accumulator is bytes between calls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from wallaroo.aggregations import WindowBounds
from wallaroo.judging.calls import Calls, Message, Outcome
from wallaroo.judging.dead_letter import DeadLetterError
from wallaroo.keys import decode_key
from wallaroo.operations import Windowed
from wallaroo.overriding import override
from wallaroo.records import Record, Tick
from wallaroo.topology import Application, Step
from wallaroo.trace import DeadLetter, Ended, Entity, Reason, Trace
from wallaroo.windows import CountWindows, LateDataPolicy


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
                mine = self._called(aggregation.initial_accumulator, Reason.RAISED)
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
            return self._combined(step, parts)
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
            arguments = [message.key, self._thaw(self._combined(step, parts))]
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
    def trace(self, results: Iterable[Outcome], entities: Iterable[Entity]) -> Trace:
        return replace(super().trace(results, entities), late=dict(self._late))

    def _combined(self, step: Step, parts: Sequence[bytes]) -> bytes:
        combine = _windowed(step).aggregation.combine
        whole = parts[0]
        for part in parts[1:]:
            assert combine is not None, "only aggregations that have it have several parts"
            mine = self._thaw(whole)
            result = self._called(combine, Reason.RAISED, mine, self._thaw(part))
            whole = self._freeze(mine if result is None else result)
        return whole


def _windowed(step: Step) -> Windowed:
    assert isinstance(step.operation, Windowed), "a step without windows"
    return step.operation
