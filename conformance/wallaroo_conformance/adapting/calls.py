"""Calls of user code, in isolation, with their results judged: for adapters.

An adapter runs applications on somebody else's engine. That engine moves messages, keeps states by
key, and calls functions; what a function must do with a message is the same on each of them. It is
what the definition says (`wallaroo_conformance.definition`), one call at a time. Messages and
states are bytes between calls (pickled, or by the application's codec), so no call sees what
another one changes (route-1, state-4, -6, -7), and any engine can carry them.

Windows, and states that expire, are the engine's own; `refuse_time` refuses applications that have
them. `windows` is for engines that fold what comes into a window.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeAlias

from wallaroo.engine import Case
from wallaroo.errors import UnsupportedTopology
from wallaroo.keys import decode_key
from wallaroo.operations import Stateful, Windowed
from wallaroo.overriding import override
from wallaroo.records import Frame, Record, Tick
from wallaroo.topology import Application, Sink, Source, Step
from wallaroo.trace import DeadLetter, Ended, Lineage, Reason, Trace
from wallaroo.windows import CountWindows, LateDataPolicy
from wallaroo_conformance.definition.judging import DeadMessageError
from wallaroo_conformance.definition.running import EndedError, Message, Run
from wallaroo_conformance.definition.time import Entry
from wallaroo_conformance.definition.windows import Key, Window

__all__ = ["Calls", "Message", "Outcome", "Output", "refuse_expiry", "refuse_time"]


@dataclass(frozen=True, slots=True)
class Output:
    """What a sink writes for a message."""

    lineage: Lineage
    sink: tuple[str, int]
    output: bytes


Outcome: TypeAlias = Message | Output | DeadLetter | Ended
"""What a call gave: `Message`s go on; the others are results. After an `Ended`, whose lineage
says where the run ended, nothing that comes later may have an effect (dead-3)."""


class _OneStep(Run):
    """A run that goes no further than one step: what is sent on is gathered."""

    def __init__(self, application: Application) -> None:
        super().__init__(Case(application, ()))
        self.log.append(Entry(Tick(0), 0))
        self.sent: list[Any] = []

    @override
    def send(self, index: int, message: Message) -> None:
        self.sent.append(message)

    def outcomes(self, action: Callable[[], object]) -> list[Any]:
        """Return what is sent on, and the dead letters and the end that an action makes."""
        self.sent, self.dead_letters = [], []
        try:
            action()
        except EndedError as ended:
            self.sent.append(ended.args[0])
        return [*self.sent, *self.dead_letters]


class Calls:
    """The calls of one application's user code.

    What a window gives belongs to the record that began last, and is numbered in the order in
    which windows fire (time-4). So an engine that lets later records begin before earlier ones are
    through gives other lineages.

    Args:
        application: the application.
    """

    def __init__(self, application: Application) -> None:
        self._run = _OneStep(application)
        nodes, windows = application.nodes, application.window_steps
        self._indices = {id(node): index for index, node in enumerate(nodes)}
        self._turns = {id(nodes[index]): at - len(windows) for at, index in enumerate(windows)}
        self._sequence = 0  # of the record that began last
        self._fired: Counter[int] = Counter()  # in that record's turns, by step

    def begin(self, sequence: int, record: Record) -> list[Outcome]:
        """Return what comes of a record at its source: one message, or none (decode-1, graph-4).

        Arrival times are event times only if records begin in their order (time-1, time-2).
        """
        run, self._sequence = self._run, sequence
        self._fired.clear()
        run.log = [Entry(record, max([record.at, *[entry.at for entry in run.log]]))]
        if isinstance(record, Tick):
            return []
        source = run.application.sources[record.source]

        def begun() -> list[Any]:
            message = run.received(sequence, run.log[-1], source)
            return [] if message is None else [message]

        payload = record.payload if isinstance(record, Frame) else None
        nothing = Message((sequence,), b"", 0, record.source, payload)
        return self._given(source, nothing, None, begun)

    def pass_on(self, node: Step | Sink, message: Message) -> list[Outcome]:
        """Return what a sink, or a step without state, makes of a message."""
        if isinstance(node, Sink):
            written = self._given(node, message, None, partial(self._run.encoded, node, message))
            return [
                Output(message.lineage, node.id, one) if isinstance(one, bytes) else one
                for one in written
            ]
        index = self._indices[id(node)]
        return self._run.outcomes(partial(self._run.arrive, index, node, message))

    def key(self, step: Step, message: Message) -> bytes | DeadLetter | Ended:
        """Return the key that a step with state or windows finds for a message.

        It is encoded (`wallaroo.keys.encode_key`): bytes that are equal exactly when keys are the
        same, whatever types an engine takes for keys.
        """
        run = self._run
        [found] = run.outcomes(lambda: run.sent.extend(run.key_at(step, message)))
        return found.encoded if isinstance(found, Key) else found

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
        run, operation, found = self._run, step.operation, _key(key)
        assert isinstance(operation, Stateful)
        place, keyed = (operation.partition, found), replace(message, key=found)
        run.entities = {} if state is None else {place: (state, 0)}

        def visited() -> None:
            given = run.attempt(step, keyed, found, partial(run.visit, operation, found, keyed))
            run.go_on(self._indices[id(step)], keyed, given)

        outcomes = run.outcomes(visited)
        return outcomes, run.entities[place][0] if place in run.entities else None

    # -- windows -----------------------------------------------------------------------------------

    def update(
        self, step: Step, key: bytes, message: Message, accumulator: bytes | None = None
    ) -> bytes | DeadLetter | Ended:
        """Return an accumulator after one more message; without one, of a new window (window-4)."""
        updated = partial(self._run.aggregating(step).updated, accumulator, message.value)
        return self._one(step, key, message, updated)

    def combine(
        self, step: Step, key: bytes, message: Message, parts: Sequence[bytes]
    ) -> bytes | DeadLetter | Ended:
        """Return the accumulator of sessions that a message makes one, in order (window-7)."""
        combined = partial(self._run.aggregating(step).combined, parts)
        return self._one(step, key, message, lambda: self._run.copies.of(combined()))

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
        turn, window = self._turns[id(step)], Window(_key(key), start, end, parts, end - 1)
        lineage = (self._sequence, turn, self._fired[turn])
        self._fired[turn] += 1
        source = getattr(self._run.log[-1].record, "source", None)
        message = Message(lineage, b"", window.time, source, None, window.key)
        result = partial(self._run.aggregating(step).result, window)
        return [
            replace(message, value=one) if isinstance(one, bytes) else one
            for one in self._given(step, message, window.key, result)
        ]

    def late(self, step: Step, key: bytes, message: Message) -> list[Outcome]:
        """Return what becomes of a late message: a dead letter, or it is counted (window-6)."""
        assert isinstance(step.operation, Windowed)
        windows = step.operation.windows
        assert not isinstance(windows, CountWindows), "nothing is late for a count window"
        if windows.late is LateDataPolicy.DROP:
            self._run.late[step.name, "dropped"] += 1
            return []
        assert windows.late is LateDataPolicy.DEAD_LETTER, "the engine has no other policies"

        def refused() -> list[Any]:
            raise DeadMessageError(Reason.LATE, "the windows that it belongs to have fired")

        return self._given(step, message, _key(key), refused)

    def partly_late(self, step: Step) -> None:
        """Count a message for which some windows have fired and others not (window-6)."""
        self._run.late[step.name, "partly"] += 1

    def _one(
        self, step: Step, key: bytes, message: Message, call: Callable[[], bytes]
    ) -> bytes | DeadLetter | Ended:
        found: bytes | DeadLetter | Ended
        [found] = self._given(step, message, _key(key), lambda: [call()])
        return found

    # -- what came of all ----------------------------------------------------------------------

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
        run = Run(Case(self._run.application, (), partitions=partitions))
        ends: list[Ended] = []
        for result in results:
            if isinstance(result, Output):
                run.outputs[result.sink].append(result.output)
            elif isinstance(result, DeadLetter):
                run.dead_letters.append(result)
            elif isinstance(result, Ended):
                ends.append(result)
        for (partition, key), state in states.items():
            if state is not None:
                run.entities[partition, _key(key)] = state, 0
        run.late = self._run.late
        return run.trace(min(ends, key=lambda end: end.lineage, default=None))

    def _given(
        self,
        node: Source | Step | Sink,
        message: Message,
        key: Key | None,
        action: Callable[[], list[Any]],
    ) -> list[Any]:
        """Return what a call of user code gives, or the dead letter or end that it makes."""
        run = self._run
        return run.outcomes(lambda: run.sent.extend(run.attempt(node, message, key, action)))


def _key(encoded: bytes) -> Key:
    return Key(decode_key(encoded), encoded)


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
