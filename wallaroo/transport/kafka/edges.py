"""The Kafka sources and sinks of a run: what they find at the brokers, and what a checkpoint says.

`KafkaEdges` is made and prepared before a run listens anywhere: so what does not fit is refused
before anything takes effect (kafka-5, kafka-16).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from wallaroo.kafka import KafkaSinkConfig, KafkaSourceConfig
from wallaroo.kafka_records import KafkaRun
from wallaroo.metrics.registry import Registry
from wallaroo.records import Assigned
from wallaroo.text import escaped
from wallaroo.topology import Application, SinkId
from wallaroo.transport.interfaces import Receiver
from wallaroo.transport.kafka.cluster import BrokerError, Cluster
from wallaroo.transport.kafka.destination import brokers_of, destination_of, persisting
from wallaroo.transport.kafka.reader import RunReader
from wallaroo.transport.kafka.sink import KafkaSink, Transactions
from wallaroo.transport.kafka.source import KafkaSource, Position, Positions, Reading
from wallaroo.transport.threads import Post


@dataclass(frozen=True)
class Kept:
    """What a checkpoint says of Kafka.

    Args:
        id: what tells the checkpoint from every other; `None`: the run has none.
        positions: of each source that has begun.
        delivered: number of outputs of each sink before the position.
        partitions: of each sink's topic, at its first start (kafka-13).
    """

    id: str | None = None
    positions: Mapping[str, Position] = field(default_factory=dict)
    delivered: Mapping[SinkId, int] = field(default_factory=dict)
    partitions: Mapping[SinkId, int] = field(default_factory=dict)


class Ended(Protocol):
    """Says whether a source, or a partition of one, gives nothing any more."""

    @property
    def ended(self) -> bool:
        """Whether it gives nothing any more."""

    @property
    def partitions(self) -> Mapping[int, Ended]:
        """The same for the partitions of a Kafka source."""


class KafkaEdges:
    """The Kafka sources and sinks of an application.

    Args:
        application: whose.
        kept: what the checkpoint says.
        receiver: the engine's part.
        post: calls a function in the loop's thread.
        interval: seconds that a transaction stays open.
        accept_gaps: go on where brokers have deleted what was not read yet (kafka-5).
        accept_repeats: go on where brokers have forgotten a sink's position (kafka-16).
        measured: let the sources find out how far behind they are.
        going_on: whether to wait further for what a log names; it is asked often.

    Attributes:
        positions: where the sources stand.
        sources: by name.
        topics: of each source the topic's name, and whether its records are needed whole.
        sinks: by id, once `prepare` has made them.
        partitions: of each sink's topic.

    Raises:
        ExtraMissingError: confluent-kafka is not installed.
        WallarooParameterError: a file of options cannot be read.
    """

    def __init__(
        self,
        application: Application,
        kept: Kept,
        receiver: Receiver,
        post: Post,
        *,
        interval: float,
        accept_gaps: bool,
        accept_repeats: bool,
        measured: bool,
        going_on: Callable[[], bool],
    ) -> None:
        self.sources: dict[str, KafkaSource] = {}
        self.sinks: dict[SinkId, KafkaSink] = {}
        self.partitions: dict[SinkId, int] = {}
        self._application = application
        self.positions = Positions(kept.positions)
        self._kept = kept
        self.topics: dict[str, tuple[str, bool]] = {}
        self._post = post
        self._interval = interval
        self._accept_gaps = accept_gaps
        self._accept_repeats = accept_repeats
        self._going_on = going_on
        self._readers: dict[str, RunReader] = {}  # of what a log names
        for name, source in application.sources.items():
            if isinstance(source.config, KafkaSourceConfig):
                config = source.config
                self.topics[name] = config.topic, config.whole
                cluster = Cluster(
                    brokers_of(config), config.kafka.read(), f"source {escaped(name)}"
                )
                self.sources[name] = KafkaSource(
                    cluster, _reading(name, config), receiver, post, measured=measured
                )

    def prepare(self, on_room: Callable[[], None], failed: Callable[[str], None]) -> None:
        """Compare what the brokers hold with the checkpoint, and shut out earlier runs; it blocks.

        Args:
            on_room: called when a sink was full and has room again.
            failed: called with an error's text if a sink cannot deliver any more.

        Raises:
            BrokerError: something does not fit.
        """
        for name, source in self.sources.items():
            before = self._kept.positions.get(name)
            persisting(partial(source.begin, before, accept_gaps=self._accept_gaps))
        for id_, sink in self._application.sinks.items():
            if isinstance(sink.config, KafkaSinkConfig):
                self.sinks[id_] = persisting(partial(self._sink, id_, on_room, failed))

    def fetch(self, source: str, partition: int, first: int, last: int) -> KafkaRun:
        """Return a run that a log names, from the source's topic; it blocks.

        Raises:
            BrokerError: it is not there any more, or it is not waited for any longer.
        """
        reader = self._readers.get(source)
        if reader is None:
            reader = self._readers[source] = self.sources[source].reader(self._going_on)
        if partition not in reader.positions:
            reader.add({partition: first})
        run = reader.exactly(partition, first, last)
        if run is None:
            raise BrokerError(
                f"source {escaped(source)}: what an earlier run has read was not read again in time"
            )
        return run

    def go_on_behind(self, sequence: int, times: Mapping[str, Ended], now: int) -> list[Assigned]:
        """Let the sources go on, and return what a log has to say of it first (kafka-1, kafka-6).

        Args:
            sequence: number of the next record.
            times: says of each source whether it has ended, and which partitions have.
            now: the arrival time, in nanoseconds since 1970.
        """
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()
        positions = self.positions.before(sequence)
        records = []
        for name, source in self.sources.items():
            over = times.get(name)
            if over is None or not over.ended:
                parts = {} if over is None else over.partitions
                gone = [number for number, partition in parts.items() if partition.ended]
                records += source.go_on_behind(positions.get(name), gone, now)
            else:
                source.close()
        return records

    def copy_figures(self, metrics: Registry) -> None:
        """Copy what only Kafka's sources and sinks have; in any thread."""
        for name, source in self.sources.items():
            source.copy_figures(metrics.sources[name])
        for id_, sink in self.sinks.items():
            metrics.sinks[id_].committed = sink.committed

    def close(self) -> None:
        """Close what reads again; sources and sinks are closed by those who run them."""
        for reader in self._readers.values():
            with contextlib.suppress(RuntimeError):
                reader.close()
        self._readers.clear()

    def _sink(
        self, id_: SinkId, on_room: Callable[[], None], failed: Callable[[str], None]
    ) -> KafkaSink:
        kept, transactions = self._kept, None
        there = destination_of(self._application, id_, kept.id, kept.partitions.get(id_))
        self.partitions[id_] = there.partitions
        if there.id is not None:
            delivered = kept.delivered.get(id_, 0)
            transactions = Transactions(there.id, self._interval, delivered, self._accept_repeats)
        sink = KafkaSink(
            id_,
            there.cluster(),
            there.topic,
            there.partitions,
            transactions,
            post=self._post,
            on_room=on_room,
            failed=failed,
        )
        sink.prepare()
        return sink


def _reading(name: str, config: KafkaSourceConfig) -> Reading:
    start = config.start
    return Reading(
        name,
        config.topic,
        config.partitions,
        dict(start) if isinstance(start, tuple) else start,
        bounded=config.until == "end",
        committed_only=config.isolation_level == "read_committed",
        group=config.group,
    )
