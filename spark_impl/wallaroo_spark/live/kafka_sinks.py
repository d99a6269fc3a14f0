"""The Kafka sinks of a live run, as the driver has them: taken over at the start, then counted.

Outputs leave from workers (`worker.leaving`). Before that, the driver asks the brokers for each
topic, writes into the checkpoint how many partitions it has (kafka-13), and takes every partition
over from earlier runs (kafka-15, kafka-16).
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from wallaroo.kafka import KafkaSinkConfig
from wallaroo.overriding import override
from wallaroo.topology import Application, SinkId
from wallaroo.transport.checkpoint import RESTORE, CheckpointError
from wallaroo.transport.interfaces import OutputSink
from wallaroo.transport.kafka.destination import Destination, destination_of, persisting
from wallaroo.transport.kafka.producing import Position, forgotten, older
from wallaroo.transport.stamps import Stamp
from wallaroo_spark.live.checkpoint import Checkpoint
from wallaroo_spark.live.stamped import read_stamped, write_stamped
from wallaroo_spark.wire.job import Sent
from wallaroo_spark.worker.leaving import Departure, note_of, place_of, producer_of, read_note

_AT_ONCE = 8  # partitions that are taken over at the same time
_LOOK = 0.5  # seconds between looks for troubles

Partition = tuple[str, int, int]
"""A partition of a sink's topic: the sink's pipeline and index, and the partition's number."""


class KafkaSinks:
    """The Kafka sinks of a run, taken over from earlier runs; it blocks until that is done.

    Args:
        application: the application.
        checkpoint: the run's.
        end: number of the log's next record.
        kept: whether the checkpoint outlives the run; if not, outputs are delivered at least once.
        accept_repeats: go on where brokers have forgotten a position (kafka-16).

    Attributes:
        sinks: by id.
        topics: see `wire.job.CaseSpec`.
        departure: where outputs leave to.

    Raises:
        BrokerError: something does not fit.
        CheckpointError: the checkpoint cannot be read or written.
        ExtraMissingError: confluent-kafka is not installed.
        WallarooParameterError: a file of options cannot be read.
    """

    def __init__(
        self,
        application: Application,
        checkpoint: Checkpoint,
        end: int,
        *,
        kept: bool,
        accept_repeats: bool,
    ) -> None:
        self.sinks: dict[SinkId, LeavingSink] = {}
        self._nodes: dict[int, SinkId] = {}
        self._file = checkpoint.sinks
        self._stamp = checkpoint.born
        self._noted = read_noted(self._file)
        id_ = checkpoint.born.checkpoint if kept else None
        destinations: dict[int, Destination] = {}
        for number, node in enumerate(application.nodes):
            sink = application.sinks.get(getattr(node, "id", ("", -1)))
            if sink is node and isinstance(sink.config, KafkaSinkConfig):
                partitions = self._noted.topics.get(sink.id)
                ask = partial(destination_of, application, sink.id, id_, partitions)
                destinations[number] = there = persisting(ask)
                self._nodes[number] = sink.id
                self.sinks[sink.id] = LeavingSink(there)
        self.departure = Departure(checkpoint.born.run, destinations)
        self.topics = {number: there.partitions for number, there in destinations.items()}
        topics = {there.sink: there.partitions for there in destinations.values()}
        topics = {**self._noted.topics, **topics}
        if topics != self._noted.topics:
            self._write(topics, self._noted.begun)
        self._take_over(destinations.values(), end, accept_repeats=accept_repeats)

    def sent(self, sent: Mapping[tuple[int, int], Sent]) -> Mapping[SinkId, Sent]:
        """Note what has left in a micro-batch; return it by sink. Call it before Spark commits.

        Raises:
            CheckpointError: the checkpoint cannot be written.
        """
        begun = {(*self._nodes[node], partition) for node, partition in sent}
        if not begun <= self._noted.begun:
            self._write(self._noted.topics, self._noted.begun | begun)
        by_sink: dict[SinkId, Sent] = {}
        for (node, _), more in sent.items():
            id_ = self._nodes[node]
            before = by_sink.get(id_, Sent())
            by_sink[id_] = Sent(before.outputs + more.outputs, before.size + more.size)
        return by_sink

    def _take_over(
        self, destinations: Iterable[Destination], end: int, *, accept_repeats: bool
    ) -> None:
        def take(there: Destination, partition: int) -> None:
            producer, place = producer_of(there, partition), place_of(there, partition)
            position = producer.take_over(place)
            if position is None:
                if (*there.sink, partition) in self._noted.begun and not accept_repeats:
                    raise forgotten(there.name, there.brokers, place.group, "outputs")
                position = Position(0)
            _, count = read_note(position.note)
            if count and position.number >= end:
                raise older(there.name, there.brokers, position.number, end)
            note = note_of(self.departure.run, count)
            producer.deliver_once([], position._replace(note=note))

        wanted = [
            (there, partition)
            for there in destinations
            if there.id is not None
            for partition in range(there.partitions)
        ]
        call_at_once([partial(persisting, partial(take, *one)) for one in wanted])

    def _write(self, topics: Mapping[SinkId, int], begun: frozenset[Partition]) -> None:
        self._noted = Noted(topics, begun)
        write_noted(self._file, self._noted, self._stamp)


def call_at_once(calls: Iterable[Callable[[], object]]) -> None:
    """Make calls, some at a time, in threads that do not keep the process from ending.

    Whoever interrupts this, or gets the first error, does not wait for calls that wait for brokers.
    """
    rest = deque(calls)
    results: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()

    def work() -> None:
        with contextlib.suppress(IndexError):  # none is left
            while True:
                call = rest.popleft()
                results.put(_error_of(call))

    try:
        number = len(rest)
        for _ in range(min(number, _AT_ONCE)):
            threading.Thread(target=work, name="wallaroo-take-over", daemon=True).start()
        for _ in range(number):
            if (error := results.get()) is not None:
                raise error
    finally:
        rest.clear()


def _error_of(call: Callable[[], object]) -> Exception | None:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
        return error
    return None


class LeavingSink(OutputSink):
    """Counts outputs that leave from workers, and says when the brokers cannot be reached.

    Args:
        there: where they go.
    """

    def __init__(self, there: Destination) -> None:
        self.written = self.pending = self.bytes_out = self.connects = 0
        self.full = False
        # It sends nothing: it is connected, and so is told of troubles (kafka-12).
        self._client = there.cluster().producer(None, interval=0.0)
        self._closed = threading.Event()

    @property
    @override
    def connected(self) -> bool:
        return not self._closed.is_set()

    @override
    def start(self) -> None:
        self.connects = 1
        threading.Thread(target=self._listen, name="wallaroo-brokers", daemon=True).start()

    @override
    def write(self, outputs: Sequence[Any]) -> None:
        raise AssertionError("these outputs leave from workers")

    def left(self, sent: Sent) -> None:
        """Count outputs that have left."""
        self.written += sent.outputs
        self.bytes_out += sent.size

    @override
    def look(self) -> None:
        pass

    @override
    async def drain(self) -> None:
        pass

    @override
    def close(self) -> None:
        self._closed.set()

    def _listen(self) -> None:
        while not self._closed.is_set():
            self._client.poll(_LOOK)


class Noted(NamedTuple):
    """What a checkpoint says of Kafka sinks.

    Args:
        topics: how many partitions each sink's topic had at its first start (kafka-13).
        begun: the partitions that have outputs.
    """

    topics: Mapping[SinkId, int] = {}
    begun: frozenset[Partition] = frozenset()


def read_noted(path: Path) -> Noted:
    """Return what a file says; nothing if there is none.

    Raises:
        CheckpointError: it is damaged, or cannot be read.
    """
    try:
        _, form = read_stamped(path)
        topics = {(str(name), int(index)): int(count) for name, index, count in form["topics"]}
        begun = [(str(name), int(index), int(number)) for name, index, number in form["begun"]]
        return Noted(topics, frozenset(begun))
    except FileNotFoundError:
        return Noted()
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged. {RESTORE}") from error


def write_noted(path: Path, noted: Noted, stamp: Stamp) -> None:
    """Write the file; it is on disk when this returns.

    Raises:
        CheckpointError: it cannot be written.
    """
    form = {
        "topics": [[*sink, count] for sink, count in sorted(noted.topics.items())],
        "begun": sorted(noted.begun),
    }
    try:
        write_stamped(path, stamp, form)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be written: {error.strerror}") from error
