"""Runs a log, record by record, through an application (time-4, order-1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from wallaroo.canonical import structure_or_kind
from wallaroo.engine import Case
from wallaroo.kafka import KafkaSinkConfig
from wallaroo.operations import Branch, Collect, KeyBy, Merge, Stateful, Stateless, Windowed
from wallaroo.records import Consumed, End, Frame, Record, Unportable, Unused, Value
from wallaroo.topology import Node, Sink, Source, Step
from wallaroo.trace import (
    DeadLetter,
    Ended,
    Entity,
    Lineage,
    OpenWindow,
    Reason,
    Trace,
    sorted_entities,
    sorted_windows,
)
from wallaroo.windows import LateDataPolicy
from wallaroo_conformance.definition.judging import (
    Copies,
    Copy,
    DeadMessageError,
    ExitError,
    bytes_of,
    called,
    encoded_key,
    event_time,
    items_of,
    pair_of,
    partition_of_key,
    produced,
)
from wallaroo_conformance.definition.time import Entry, step_watermark
from wallaroo_conformance.definition.windows import (
    Aggregating,
    Count,
    Counts,
    Key,
    Ranges,
    Sessions,
    Window,
    due,
    held_by,
)

_SINGLE = Key((), encoded_key(()))


@dataclass(frozen=True)
class Message:
    """A message on its way.

    Args:
        lineage: its lineage (order-1).
        value: the message.
        time: its event time.
        source: of the record that it belongs to; `None`: that has none.
        payload: of the frame it came from; `None`: a window or a generator gave it.
        key: the key that stays with it (key-1); `None`: it has none.
    """

    lineage: Lineage
    value: Copy
    time: int
    source: str | None
    payload: bytes | None
    key: Key | None = None


class EndedError(Exception):
    """The run is over; the argument says why."""


class Definition:
    """What the rules say, as something that runs cases in `isolated` mode."""

    name = "definition"

    def run(self, case: Case) -> Trace:
        """Run a bounded case."""
        run = Run(case)
        try:
            for number, entry in _numbered(case.input_log):
                run.take(number, entry)
        except EndedError as error:
            return run.trace(error.args[0])
        return run.trace(None)


def _numbered(log: Sequence[Any]) -> Iterator[tuple[int, Entry]]:
    """Yield the records of a log with their sequence numbers (time-1).

    A pair (source, payload) is a frame that arrived at 0. Unused numbers are left out (kafka-1).
    """
    number, at = 0, 0
    for one in log:
        record: Record = Frame(*one) if isinstance(one, tuple) else one
        at = max(at, record.at)
        if isinstance(record, Unused):
            number += record.numbers
        else:
            yield number, Entry(record, at)
            number += 1


class Run:
    """A run, as far as it has come."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.application = case.application
        self.copies = Copies(self.application.codec)
        self.log: list[Entry] = []
        self.outputs: dict[Any, list[Any]] = {sink: [] for sink in case.application.sinks}
        self.dead_letters: list[DeadLetter] = []
        self.entities: dict[tuple[str, Key], tuple[Copy, int]] = {}
        """Each state entity, and the arrival time of the last record that came to it."""
        self.late: Counter[tuple[str, str]] = Counter()
        self.held = {
            index: held_by(node.operation.windows)
            for index, node in enumerate(self.application.nodes)
            if isinstance(node, Step) and isinstance(node.operation, Windowed)
        }

    def take(self, number: int, entry: Entry) -> None:
        """Process a record: what it makes due first, then its own message (time-4)."""
        self.log.append(entry)
        for place, (_, visited) in [*self.entities.items()]:  # key-4
            expire_after = self.application.partition[place[0]].expire_after
            if expire_after is not None and entry.at - visited >= expire_after:
                del self.entities[place]
        source = self.application.sources.get(getattr(entry.record, "source", ""))
        message, failed = None, None
        try:
            if source is not None:
                message = self.received(number, entry, source)
        except (DeadMessageError, ExitError) as error:
            failed = error
        entry.time = None if message is None else message.time
        for place_in_order, index in enumerate(self.held):
            held = self.held[index]
            held.watermark = max(held.watermark, step_watermark(self.application, index, self.log))
            for i, window in enumerate(due(held, entry.at)):
                self.fire(index, window, (number, place_in_order - len(self.held), i))
        if source is not None and failed is not None:
            nothing = Message((number,), b"", 0, source.pipeline, _payload(entry.record))
            self.attempt(source, nothing, None, partial(_raise, failed))
        if source is not None and message is not None:
            self.send(self.application.nodes.index(source), message)

    def received(self, number: int, entry: Entry, source: Source) -> Message | None:
        """Return the message of a record, if it has one (decode-1, kafka-7, time-2).

        Raises:
            DeadMessageError: it cannot go on.
            ExitError: the decoder, the event time or the generator ends the run.
        """
        record, config = entry.record, source.config
        given: Any = None
        if isinstance(record, End) and record.error_type is not None:
            if record.ends_run:
                raise ExitError(record.error_type)
            raise DeadMessageError(Reason.RAISED, record.error, record.error_type)
        if isinstance(record, Value):
            given = record.value
            if isinstance(given, Unportable):
                raise DeadMessageError(Reason.UNPORTABLE, given.error)
        elif isinstance(record, Frame | Consumed) and config.decoder is not None:
            whole = isinstance(record, Consumed) and getattr(config.decoder, "whole", False)
            payload = record.record if whole else _payload(record)  # type: ignore[union-attr]
            if payload is not None:
                given = called(config.decoder.call, payload, reason=Reason.DECODE)
        if given is None:
            return None
        value, time = self.copies.of(given), entry.at
        if config.event_time is not None:
            of_record = config.event_time.of_record and isinstance(record, Consumed)
            timed = record.record if of_record else self.copies.read(value)  # type: ignore[union-attr]
            time = event_time(called(config.event_time.call, timed))
            if config.max_ahead is not None and time - entry.at > config.max_ahead:
                raise DeadMessageError(Reason.BAD_TIME, "it is too far ahead")
        return Message((number,), value, time, source.pipeline, _payload(record))

    # -- messages ----------------------------------------------------------------------------------

    def send(self, index: int, message: Message) -> None:
        """Take what a node gives to its end, consumer by consumer, in the order of the calls."""
        for consumer, node in enumerate(self.application.nodes):
            for origin in () if isinstance(node, Source) else node.inputs:
                if origin == index:
                    self.arrive(consumer, node, message)

    def arrive(self, index: int, node: Node, message: Message) -> None:
        """A message comes to a step or a sink."""
        if isinstance(node, Sink):
            self.outputs[node.id] += self.attempt(
                node, message, None, lambda: self.encoded(node, message)
            )
            return
        assert isinstance(node, Step)
        operation = node.operation
        if isinstance(operation, Merge):
            self.send(index, message)
        elif isinstance(operation, Branch):
            self.send(index, replace(message, lineage=(*message.lineage, operation.number)))
        elif isinstance(operation, Collect):
            self.send(index, replace(message, key=_SINGLE))
        elif isinstance(operation, KeyBy):
            for key in self.attempt(node, message, None, lambda: [self.key(node, message)]):
                self.send(index, replace(message, key=key))
        elif isinstance(operation, Stateless):
            given = self.attempt(node, message, None, lambda: self.computed(operation, message))
            self.go_on(index, message, given)
        else:
            for key in self.key_at(node, message):
                keyed = replace(message, key=key)
                if isinstance(operation, Windowed):
                    self.into_window(index, node, key, keyed)
                else:
                    given = self.attempt(
                        node, keyed, key, partial(self.visit, operation, key, keyed)
                    )
                    self.go_on(index, keyed, given)

    def go_on(self, index: int, message: Message, given: list[tuple[Lineage, Copy]]) -> None:
        """Send what a call has given."""
        for added, value in given:
            self.send(index, replace(message, lineage=(*message.lineage, *added), value=value))

    def attempt(
        self, node: Node, message: Message, key: Key | None, action: Callable[[], list[Any]]
    ) -> list[Any]:
        """Return what an action gives; nothing if it makes a dead letter (dead-1 to dead-4)."""
        step = node.name if isinstance(node, Step) else None
        sink = node.index if isinstance(node, Sink) else None
        place = node.pipeline, step, message.lineage
        try:
            return action()
        except ExitError as error:
            raise EndedError(Ended("exit", *place, str(error), sink)) from error
        except DeadMessageError as error:
            reason, error_type, text = error.args
            letter = DeadLetter(
                message.lineage,
                message.source,
                node.pipeline,
                step,
                self.application.position(node),
                sink,
                None if key is None else key.value,
                reason,
                error_type,
                text,
                message.payload,
            )
            self.dead_letters.append(letter)
            if self.case.on_error == "stop":
                raise EndedError(Ended("on-error", *place, None, sink)) from error
            return []

    def encoded(self, sink: Sink, message: Message) -> list[Any]:
        """Return what a sink writes of a message (sink-1, kafka-13)."""
        call, value = sink.config.encoder.call, self.copies.read(message.value)
        output = called(call, value, reason=Reason.ENCODE)
        if output is None:
            return []
        if isinstance(sink.config, KafkaSinkConfig):
            return [produced(sink.config, output, message.time, message.lineage[0])]
        return [bytes_of(output)]

    def computed(self, operation: Stateless, message: Message) -> list[tuple[Lineage, Copy]]:
        """Return what a computation without state gives (compute-1)."""
        result = called(operation.computation.call, self.copies.read(message.value))
        return self.messages(result, operation.computation.multi)

    def messages(self, result: Any, multi: bool) -> list[tuple[Lineage, Copy]]:
        """Return the messages of a result, with what is added to the lineage; `None` is none."""
        numbered: list[tuple[Lineage, Any]] = [((), result)]
        if multi:
            numbered = [((i,), item) for i, item in enumerate(items_of(result))]
        return [(added, self.copies.of(item)) for added, item in numbered if item is not None]

    # -- keys and states ---------------------------------------------------------------------------

    def key_at(self, node: Step, message: Message) -> list[Key]:
        """Return the key with which a message meets a state or a window, if it has one."""
        operation: Any = node.operation
        if operation.route is None:
            return [message.key if operation.keyed and message.key else _SINGLE]
        return self.attempt(node, message, None, lambda: [self.key(node, message)])

    def key(self, node: Step, message: Message) -> Key:
        """Return the key that a step finds for a message (route-1, route-2)."""
        operation: Any = node.operation
        state = isinstance(operation, Stateful)
        u64 = state and self.application.partition[operation.partition].u64
        key = called(operation.route.call, self.copies.read(message.value))
        return Key(key, encoded_key(key, u64=u64))

    def visit(self, operation: Stateful, key: Key, message: Message) -> list[tuple[Lineage, Copy]]:
        """A message meets its entity (state-1 to state-7); return what goes on."""
        partition = self.application.partition[operation.partition]
        computation = operation.computation
        if partition.keys is not None and key.encoded not in map(encoded_key, partition.keys):
            raise DeadMessageError(Reason.UNKNOWN_KEY, "the key is not listed")
        place = partition.name, key
        if place in self.entities:
            before, _ = self.entities[place]
        else:
            before = self.copies.of(called(partition.builder.call))
        self.entities[place] = before, self.log[-1].at
        state = self.copies.read(before)
        result = called(computation.call, self.copies.read(message.value), state)
        output, changed = pair_of(result) if computation.pair else (result, True)
        given = self.messages(output, computation.multi)
        if changed:
            self.entities[place] = self.copies.of(state), self.log[-1].at
        return given

    # -- windows -----------------------------------------------------------------------------------

    def aggregating(self, node: Any) -> Aggregating:
        """Return what calls the aggregation of a window step."""
        return Aggregating(node.operation.aggregation, self.copies)

    def fire(self, index: int, window: Window, lineage: Lineage) -> None:
        """A window gives its result and is gone (window-3, window-9)."""
        node = self.application.nodes[index]
        source = getattr(self.log[-1].record, "source", None)
        message = Message(lineage, b"", window.time, source, None, window.key)
        self.held[index].close(window)
        result = partial(self.aggregating(node).result, window)
        for value in self.attempt(node, message, window.key, result):
            self.send(index, replace(message, value=value))

    def into_window(self, index: int, node: Step, key: Key, message: Message) -> None:
        """A message comes to a window step (window-5 to window-9)."""
        held, aggregating = self.held[index], self.aggregating(node)
        if isinstance(held, Counts):
            self.count(index, node, held, key, message)
            return
        if isinstance(held, Ranges):
            passed = [held.has_fired(start) for start in held.starts(message.time)]
        else:
            passed = [held.has_fired(message.time) and not held.met(key, message.time)]
        place: int | None = message.time
        if all(passed):
            if held.kind.late is LateDataPolicy.DROP:
                self.late[node.name, "dropped"] += 1
                return
            if held.kind.late is LateDataPolicy.FIRE_PER_MESSAGE:
                alone = partial(aggregating.alone, key, message.time, message.value)
                for value in self.attempt(node, message, key, alone):
                    self.send(index, replace(message, value=value, payload=None))
                return
            oldest = held.kind.late is LateDataPolicy.PLACE_IN_OLDEST_WINDOW
            place = held.oldest() if oldest and isinstance(held, Ranges) else None
        if place is None:
            failed = DeadMessageError(Reason.LATE, "its windows have fired")
            self.attempt(node, message, key, partial(_raise, failed))
        elif isinstance(held, Sessions):
            self.attempt(node, message, key, lambda: self.join(held, aggregating, key, message))
        else:
            before = held.panes.get((key, held.pane(place)))
            updated = partial(aggregating.updated, before, message.value)
            for accumulator in self.attempt(node, message, key, lambda: [updated()]):
                held.put(key, place, accumulator)
                self.late[node.name, "partly"] += any(passed) and not all(passed)

    def join(
        self, held: Sessions, aggregating: Aggregating, key: Key, message: Message
    ) -> list[Any]:
        """A message opens a session, which becomes one with those it overlaps (window-7)."""
        new = aggregating.updated(None, message.value)
        own = held.session(key, message.time, message.time + held.kind.gap, new)
        met = held.met(key, message.time)
        parts = sorted([*met, own], key=lambda one: one.start)  # on a tie, the older one first
        if met:
            new = self.copies.of(aggregating.combined([one.accumulators[0] for one in parts]))
        first, end = min(one.start for one in parts), max(one.end for one in parts)
        apart = [one for one in held.open if one not in met]
        held.open = [*apart, held.session(key, first, end, new)]
        return []

    def count(self, index: int, node: Step, held: Counts, key: Key, message: Message) -> None:
        """A message comes to the open window of its key, and may fill it (window-8)."""
        begun = held.open.get(key) or Count(b"", self.log[-1].at, [])
        before = begun.accumulator if begun.times else None
        updated = partial(self.aggregating(node).updated, before, message.value)
        for accumulator in self.attempt(node, message, key, lambda: [updated()]):
            held.open[key] = Count(accumulator, begun.begun, [*begun.times, message.time])
            if len(held.open[key].times) == held.kind.count:
                self.fire(index, held.window(key), message.lineage)

    def trace(self, ended: Ended | None) -> Trace:
        """Return what the run has done."""
        entities = []
        for (name, key), (state, _) in self.entities.items():
            number = partition_of_key(key.encoded, self.case.partitions or 1)
            load = partial(self.copies.read, state)
            entities.append(Entity(name, key.value, number, structure_or_kind(load()), load))
        windows = []
        for index, held in self.held.items():
            node = self.application.nodes[index]
            windows += [self.listed(node, window) for window in held.windows()]
        return Trace(
            {sink: tuple(outputs) for sink, outputs in self.outputs.items()},
            tuple(sorted(self.dead_letters, key=lambda letter: letter.order)),
            sorted_entities(entities),
            ended,
            windows=sorted_windows(windows),
            late={which: number for which, number in self.late.items() if number},
        )

    def listed(self, node: Any, window: Window) -> OpenWindow:
        """Return how a trace lists an open window (window-11)."""
        whole = None
        try:
            whole = self.aggregating(node).combined(window.accumulators)
            accumulator = structure_or_kind(whole)
        except (DeadMessageError, ExitError) as error:
            accumulator = {"combine raised": type(error.__cause__).__name__}
        return OpenWindow(node.name, window.key.value, window.start, window.end, accumulator, whole)


def _payload(record: Record) -> bytes | None:
    if isinstance(record, Consumed):
        return record.record.value
    return record.payload if isinstance(record, Frame) else None


def _raise(error: Exception) -> list[Any]:
    raise error
