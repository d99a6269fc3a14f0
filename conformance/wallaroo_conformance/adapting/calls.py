"""Calls of user code, in isolation, with their results judged: for adapters.

An adapter runs applications on somebody else's engine. That engine moves messages, keeps states by
key, and calls functions; what a function must do with a message is the same on each of them, and is
here. Messages and states are bytes between calls (pickled, or by the application's codec), so no
call sees what another one changes (route-1, state-4, -6, -7), and any engine can carry them.

Windows, and states that expire, are the engine's own; `refuse_time` refuses applications that have
them. `windows` is for engines that fold what comes into a window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from wallaroo.aggregations import WindowBounds
from wallaroo.canonical import structure_or_kind
from wallaroo.copying import copies_by
from wallaroo.errors import UnsupportedTopology
from wallaroo.judging import (
    BadResultError,
    DeadLetterError,
    items_of,
    judged_key,
    pair_of,
    raised_by_user_code,
    unknown_key,
    written_of,
)
from wallaroo.keys import SINGLE_KEY, Key, decode_key, encode_key, identity, partition_number
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Stateful, Stateless, Windowed
from wallaroo.records import End, Frame, Record, Tick, Value
from wallaroo.times import BadTimeError, event_time_from
from wallaroo.topology import Application, Node, Sink, Source, Step
from wallaroo.trace import DeadLetter, Ended, Entity, Lineage, Reason, Trace, sorted_entities
from wallaroo.windows import CountWindows, LateDataPolicy


@dataclass(frozen=True, slots=True)
class Message:
    """A message between two calls.

    Args:
        lineage: its lineage (order-1).
        source: the source that received its frame.
        payload: the frame's payload; `None` for what a generator gave.
        frozen: the message itself, as bytes.
        key: its key, `wallaroo.keys.SINGLE_KEY` unless a `key_by` found one (key-1).
        time: its event time, in nanoseconds since 1970 (time-2).
    """

    lineage: Lineage
    source: str
    payload: bytes | None
    frozen: bytes
    key: Key = SINGLE_KEY
    time: int = 0


@dataclass(frozen=True, slots=True)
class Output:
    """What a sink writes for a message."""

    lineage: Lineage
    sink: tuple[str, int]
    output: bytes


Outcome: TypeAlias = Message | Output | DeadLetter | Ended
"""What a call gave: `Message`s go on; the others are results. After an `Ended`, whose lineage
says where the run ended, nothing that comes later may have an effect (dead-3)."""


class Calls:
    """The calls of one application's user code.

    What a window gives belongs to the record that began last, and is numbered in the order in
    which windows fire (time-4). So an engine that lets later records begin before earlier ones are
    through gives other lineages.

    Args:
        application: the application.
        engine: the adapter's package or module, whose frames are not the user's in tracebacks.
    """

    def __init__(self, application: Application, engine: str = "__main__") -> None:
        self._application = application
        self._engine = engine
        self._copies = replace(copies_by(application.codec), atoms=frozenset())  # all are bytes
        self._now = 0  # the arrival time of the latest record
        nodes, windows = application.nodes, application.window_steps
        self._turns = {id(nodes[index]): at - len(windows) for at, index in enumerate(windows)}
        self._latest: tuple[int, str | None] = (0, None)  # record's sequence and source
        self._fired: Counter[int] = Counter()  # in that record's turns, by step
        self._late: Counter[tuple[str, str]] = Counter()
        self._listed = {
            partition.name: None if partition.keys is None else set(map(identity, partition.keys))
            for partition in application.partitions
        }

    def begin(self, sequence: int, record: Record) -> list[Outcome]:
        """Return what comes of a record at its source: one message, or none (decode-1, graph-4).

        Arrival times are event times only if records begin in their order (time-1, time-2).
        """
        self._latest = sequence, None if isinstance(record, Tick) else record.source
        self._fired.clear()
        self._now = max(self._now, record.at)
        if isinstance(record, Tick):
            return []
        source = self._application.sources[record.source]
        payload = record.payload if isinstance(record, Frame) else None
        message = Message((sequence,), record.source, payload, b"", time=self._now)

        def call() -> list[Outcome]:
            if isinstance(record, Value):
                return self._timed(source, self._one(message, record.value))
            if isinstance(record, Frame):
                decoder = source.config.decoder
                assert decoder is not None, "a generator has no frames"
                decoded = self._called(decoder.call, Reason.DECODE, payload)
                return self._timed(source, self._one(message, decoded))
            if isinstance(record, End) and record.error_type is not None:
                reason = None if record.ends_run else Reason.RAISED
                raise DeadLetterError(reason, record.error, record.error_type)
            return []

        return self._outcome(source, message, call)

    def pass_on(self, node: Step | Sink, message: Message) -> list[Outcome]:
        """Return what a sink, or a step without state, makes of a message."""
        if isinstance(node, Sink):
            return self._outcome(node, message, lambda: self._written(node, message))
        operation = node.operation
        if isinstance(operation, Stateless):
            return self._outcome(node, message, lambda: self._computed(operation, message))
        if isinstance(operation, KeyBy):
            key = self.key(node, message)
            if isinstance(key, (DeadLetter, Ended)):
                return [key]
            return [replace(message, key=decode_key(key))]
        if isinstance(operation, Branch):  # graph-2
            return [replace(message, lineage=(*message.lineage, operation.number))]
        if isinstance(operation, Collect):  # key-2
            return [replace(message, key=SINGLE_KEY)]
        assert isinstance(operation, Merge), "a step with state: see `key` and `visit`"
        return [message]

    def key(self, step: Step, message: Message) -> bytes | DeadLetter | Ended:
        """Return the key that a step with state or windows, or `key_by`, finds for a message.

        It is encoded (`wallaroo.keys.encode_key`): bytes that are equal exactly when keys are the
        same, whatever types an engine takes for keys.
        """
        operation = step.operation
        assert isinstance(operation, (Stateful, Windowed, KeyBy))
        valid: Key | None = None
        try:
            if operation.route is not None:
                valid = self._called(
                    operation.route.call, Reason.RAISED, self._thaw(message.frozen)
                )
            elif not isinstance(operation, KeyBy):
                valid = message.key if operation.keyed else SINGLE_KEY
            candidate, valid = valid, None
            if not isinstance(operation, Stateful):
                judged_key(candidate)
                return encode_key(candidate)
            partition = self._application.partition[operation.partition]
            entity = judged_key(candidate, u64=partition.u64)
            valid = candidate
            assert valid is not None
            listed = self._listed[partition.name]
            if listed is not None and entity not in listed:
                raise unknown_key(valid, partition, lambda key: identity(key) in listed)
            return encode_key(valid)
        except DeadLetterError as dead:
            return self._dead(step, message, dead, valid)

    def visit(
        self, step: Step, key: bytes, message: Message, state: bytes | None
    ) -> tuple[list[Outcome], bytes | None]:
        """Return what a state computation makes of a message, and the state after it.

        Args:
            step: the step.
            key: the message's key, as `key` gave it.
            message: the message.
            state: the entity's state as the last visit left it; `None`: there is none yet. It
                stays `None` if its builder fails (state-1).
        """
        operation = step.operation
        assert isinstance(operation, Stateful)
        found = decode_key(key)
        partition = self._application.partition[operation.partition]
        try:
            if state is None:
                built = self._called(partition.builder.call, Reason.RAISED)
                state = self._freeze(built)
            mine = self._thaw(state)
            result = self._called(
                operation.computation.call, Reason.RAISED, self._thaw(message.frozen), mine
            )
            given, changed = pair_of(result) if operation.computation.pair else (result, True)
            multi = operation.computation.multi
            outcome = self._items(message, given) if multi else self._one(message, given)
            return outcome, self._freeze(mine) if changed else state
        except DeadLetterError as dead:
            return [self._dead(step, message, dead, found)], state

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

    def trace(
        self,
        results: Iterable[Outcome],
        states: Mapping[tuple[str, bytes], bytes | None] = MappingProxyType({}),
        partitions: int | None = None,
    ) -> Trace:
        """Return a trace: outputs in the order given, dead letters in their own (dead-1).

        Args:
            results: the outputs, dead letters and early ends of a run; of several ends the first
                in order of lineage counts.
            states: by (state partition's name, key): the final states, as `visit` left them.
            partitions: the case's number of partitions.
        """
        outputs: dict[tuple[str, int], list[bytes]] = {sink: [] for sink in self._application.sinks}
        letters: list[DeadLetter] = []
        ends: list[Ended] = []
        for result in results:
            if isinstance(result, Output):
                outputs[result.sink].append(result.output)
            elif isinstance(result, DeadLetter):
                letters.append(result)
            elif isinstance(result, Ended):
                ends.append(result)
        entities = []
        for (partition, encoded), state in states.items():
            if state is not None:
                key = decode_key(encoded)
                number, form = partition_number(key, partitions or 1), self._thaw(state)
                entities.append(Entity(partition, key, number, structure_or_kind(form)))
        return Trace(
            {sink: tuple(written) for sink, written in outputs.items()},
            tuple(sorted(letters, key=lambda letter: letter.order)),
            sorted_entities(entities),
            min(ends, key=lambda end: end.lineage, default=None),
            late=dict(self._late),
        )

    # -- one call ----------------------------------------------------------------------------

    def _called(self, call: Callable[..., Any], reason: Reason, *arguments: Any) -> Any:
        try:
            return call(*arguments)
        except BaseException as error:
            raise raised_by_user_code(error, reason, self._engine) from error

    def _timed(self, source: Source, messages: list[Outcome]) -> list[Outcome]:
        """Return a source's message, if there is one, with its event time (time-2)."""
        find = source.config.event_time
        if find is None:
            return messages
        timed: list[Outcome] = []
        for message in messages:
            assert isinstance(message, Message)
            given = self._called(find.call, Reason.RAISED, self._thaw(message.frozen))
            try:
                timed.append(replace(message, time=event_time_from(given)))
            except BadTimeError as error:
                raise DeadLetterError(Reason.BAD_TIME, str(error)) from None
        return timed

    def _computed(self, operation: Stateless, message: Message) -> list[Outcome]:
        result = self._called(operation.computation.call, Reason.RAISED, self._thaw(message.frozen))
        multi = operation.computation.multi
        return self._items(message, result) if multi else self._one(message, result)

    def _written(self, sink: Sink, message: Message) -> list[Outcome]:
        given = self._called(sink.config.encoder.call, Reason.ENCODE, self._thaw(message.frozen))
        return [] if given is None else [Output(message.lineage, sink.id, written_of(given))]

    def _one(self, origin: Message, result: Any) -> list[Outcome]:
        """Return the messages that go on from a result: none or one (compute-1)."""
        return [] if result is None else [replace(origin, frozen=self._freeze(result))]

    def _items(self, origin: Message, result: Any) -> list[Outcome]:
        """Return the messages that go on from a multi result; items left out keep their numbers."""
        try:
            items = items_of(result)
        except BadResultError:
            raise
        except BaseException as error:
            raise raised_by_user_code(error, Reason.RAISED, self._engine) from error
        return [
            replace(origin, lineage=(*origin.lineage, index), frozen=self._freeze(item))
            for index, item in enumerate(items)
            if item is not None
        ]

    def _combined(self, step: Step, parts: Sequence[bytes]) -> Any:
        combine = _windowed(step).aggregation.combine
        whole = self._thaw(parts[0])
        for part in parts[1:]:
            assert combine is not None, "only aggregations that have it have several parts"
            result = self._called(combine, Reason.RAISED, whole, self._thaw(part))
            whole = whole if result is None else result
        return whole

    def _freeze(self, value: Any) -> bytes:
        frozen: bytes = self._copied(self._copies.freeze_checked, value)[0][0]
        return frozen

    def _thaw(self, frozen: bytes) -> Any:
        return self._copied(self._copies.thaw, (frozen,))

    def _copied(self, call: Callable[[Any], Any], value: Any) -> Any:
        try:
            return call(value)
        except DeadLetterError:
            raise
        except BaseException as error:  # of a codec, or of what a class does when it is read
            raise raised_by_user_code(error, Reason.UNPORTABLE, self._engine) from error

    def _outcome(
        self, node: Node, message: Message, call: Callable[[], list[Outcome]]
    ) -> list[Outcome]:
        try:
            return call()
        except DeadLetterError as dead:
            return [self._dead(node, message, dead, None)]

    def _dead(
        self, node: Node, message: Message, dead: DeadLetterError, key: Key | None
    ) -> DeadLetter | Ended:
        step = node.name if isinstance(node, Step) else None
        sink = node.index if isinstance(node, Sink) else None
        if dead.reason is None:  # dead-3
            return Ended("exit", node.pipeline, step, message.lineage, dead.error_type, sink)
        return DeadLetter(
            *(message.lineage, message.source, node.pipeline, step),
            *(self._application.position(node), sink, key, dead.reason),
            *(dead.error_type, dead.error, message.payload),
            where=dead.failure.where,
            causes=dead.failure.causes,
        )


def _windowed(step: Step) -> Windowed:
    assert isinstance(step.operation, Windowed), "a step without windows"
    return step.operation


def refuse_time(application: Application, engine: str) -> None:
    """Refuse an application in which time decides, or event times are found (build-2).

    Raises:
        UnsupportedTopology: it has windows, event times, or states that expire.
    """
    for node in application.nodes:
        if isinstance(node, Step) and isinstance(node.operation, Windowed):
            raise UnsupportedTopology("window-1", node.name, f"{engine} has no windows here")
        if isinstance(node, Source) and node.config.event_time is not None:
            raise UnsupportedTopology("time-2", node.pipeline, f"{engine} has no event time here")
    refuse_expiry(application, engine)


def refuse_expiry(application: Application, engine: str) -> None:
    """Refuse an application in which time removes states (key-4, build-2).

    Raises:
        UnsupportedTopology: a state partition has `expire_after`.
    """
    for partition in application.partitions:
        if partition.expire_after is not None:
            raise UnsupportedTopology("key-4", partition.name, f"{engine} keeps states for good")
