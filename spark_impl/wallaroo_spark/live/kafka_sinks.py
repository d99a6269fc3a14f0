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
from typing import Any

from wallaroo.json_fields import a_number, by_sink
from wallaroo.kafka import KafkaSinkConfig
from wallaroo.overriding import override
from wallaroo.topology import Application, SinkId
from wallaroo.transport.interfaces import OutputSink
from wallaroo.transport.kafka.destination import Destination, destination_of, persisting
from wallaroo.transport.kafka.producing import Committed, forgotten, older
from wallaroo.transport.stamps import Stamp
from wallaroo_spark.live.checkpoint import Checkpoint
from wallaroo_spark.live.stamped import read_part, write_part
from wallaroo_spark.wire.job import Sent
from wallaroo_spark.worker.leaving import Departure, note_of, place_of, producer_of, read_note

_AT_ONCE = 8  # partitions that are taken over at the same time
_LOOK = 0.5  # seconds between looks for troubles


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
        noted = read_topics(checkpoint.sinks)
        id_ = checkpoint.born.checkpoint if kept else None
        destinations: dict[int, Destination] = {}
        for number, node in enumerate(application.nodes):
            sink = application.sinks.get(getattr(node, "id", ("", -1)))
            if sink is node and isinstance(sink.config, KafkaSinkConfig):
                partitions = noted.get(sink.id)
                ask = partial(destination_of, application, sink.id, id_, partitions)
                destinations[number] = there = persisting(ask)
                self._nodes[number] = sink.id
                self.sinks[sink.id] = LeavingSink(there)
        self.departure = Departure(checkpoint.born.run, destinations)
        self.topics = {number: there.partitions for number, there in destinations.items()}
        if checkpoint.unfinished:
            for there in destinations.values():
                if (before := noted.get(there.sink, there.partitions)) != there.partitions:
                    raise checkpoint.unfinished_because(
                        f"its outputs for {there.name} may have left already, to {before} "
                        f"partitions where partitions= says {there.partitions} now"
                    )
        left = frozenset(noted) if checkpoint.unfinished and not accept_repeats else frozenset()
        self._take_over(destinations.values(), end, left)
        topics = {**noted, **{one.sink: one.partitions for one in destinations.values()}}
        if topics != noted:
            write_topics(checkpoint.sinks, topics, checkpoint.born)

    def sent(self, sent: Mapping[tuple[int, int], Sent]) -> Mapping[SinkId, Sent]:
        """Return by sink what has left in a micro-batch."""
        by_sink: dict[SinkId, Sent] = {}
        for (node, _), more in sent.items():
            id_ = self._nodes[node]
            before = by_sink.get(id_, Sent())
            by_sink[id_] = Sent(before.outputs + more.outputs, before.size + more.size)
        return by_sink

    def _take_over(
        self, destinations: Iterable[Destination], end: int, left: frozenset[SinkId]
    ) -> None:
        """Take all partitions over.

        Args:
            destinations: where outputs go.
            end: number of the log's next record.
            left: sinks of which outputs may have left that are made again. All others are made for
                the first time, so where there is no position none is needed (kafka-16).
        """

        def take(there: Destination, partition: int) -> None:
            producer, place = producer_of(there, partition), place_of(there, partition)
            position = producer.take_over(place)
            if position is None:
                if there.sink in left:
                    said = "the last micro-batch of the checkpoint is not committed"
                    raise forgotten(there, said)
                position = Committed(0)
            _, count = read_note(position.note)
            if count and position.number >= end:
                raise older(there, position.number, end)
            note = note_of(self.departure.run, count)
            producer.deliver_once([], position._replace(note=note))

        wanted = [
            (there, partition)
            for there in destinations
            if there.id is not None
            for partition in range(there.partitions)
        ]
        call_at_once([partial(persisting, partial(take, *one)) for one in wanted])


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


def read_topics(path: Path) -> Mapping[SinkId, int]:
    """Return how many partitions each sink's topic had at its first start (kafka-13).

    Raises:
        CheckpointError: the file is damaged, or cannot be read.
    """
    return read_part(path, lambda form: by_sink(a_number, form["topics"])) or {}


def write_topics(path: Path, topics: Mapping[SinkId, int], stamp: Stamp) -> None:
    """Write the file; it is on disk when this returns.

    Raises:
        CheckpointError: it cannot be written.
    """
    form = [[*sink, count] for sink, count in sorted(topics.items())]
    write_part(path, stamp, {"topics": form})
