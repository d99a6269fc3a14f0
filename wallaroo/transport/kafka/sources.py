"""The Kafka sources of a run: what they find at the brokers, and where they go on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from wallaroo.kafka import KafkaSourceConfig
from wallaroo.kafka_records import KafkaRecord, KafkaRun
from wallaroo.metrics.registry import Registry
from wallaroo.records import Assigned
from wallaroo.text import escaped
from wallaroo.topology import Application
from wallaroo.transport.interfaces import Receiver
from wallaroo.transport.kafka.cluster import BrokerError, Cluster
from wallaroo.transport.kafka.destination import brokers_of, persisting
from wallaroo.transport.kafka.reader import RunReader
from wallaroo.transport.kafka.source import KafkaSource
from wallaroo.transport.logged import LoggedSource
from wallaroo.transport.threads import Post


class KafkaSources:
    """The Kafka sources of an application.

    Args:
        application: whose.
        logged: where they stood in the last run, by name; those that have not begun are missing.
        receiver: the engine's part.
        post: calls a function in the loop's thread.
        accept_gaps: go on where brokers have deleted what was not read yet (kafka-5).
        measured: see `KafkaSource`.
        going_on: whether to wait further for what a log names; it is asked often.
        room: see `KafkaSource`.
        again: of each source, see `wallaroo.transport.kafka.beginning.begin`.

    Attributes:
        application: whose.
        post: calls a function in the loop's thread.
        sources: by name.
        topics: the configuration of each source.

    Raises:
        ExtraMissingError: confluent-kafka is not installed.
        WallarooParameterError: a file of options cannot be read.
    """

    def __init__(
        self,
        application: Application,
        logged: Mapping[str, LoggedSource],
        receiver: Receiver,
        post: Post,
        *,
        accept_gaps: bool,
        measured: bool,
        going_on: Callable[[], bool],
        room: Callable[[], int] | None = None,
        again: Mapping[str, Mapping[int, int]] = MappingProxyType({}),
    ) -> None:
        self.sources: dict[str, KafkaSource] = {}
        self.topics: dict[str, KafkaSourceConfig] = {}
        self.application = application
        self.post = post
        self._logged = logged
        self._again = again
        self._accept_gaps = accept_gaps
        self._going_on = going_on
        self._readers: dict[str, RunReader] = {}  # of what a log names
        for name, source in application.sources.items():
            if isinstance(source.config, KafkaSourceConfig):
                config = source.config
                self.topics[name] = config
                cluster = Cluster(
                    brokers_of(config), config.kafka.read(), f"source {escaped(name)}"
                )
                self.sources[name] = KafkaSource(
                    cluster, name, config, receiver, post, measured=measured, room=room
                )

    def begin(self) -> None:
        """Compare what the brokers hold with where the sources stood; it blocks.

        Raises:
            BrokerError: something does not fit (kafka-5).
        """
        for name, source in self.sources.items():
            before, again = self._logged.get(name, LoggedSource()), self._again.get(name, {})
            persisting(partial(source.begin, before, again, accept_gaps=self._accept_gaps))

    def fetch(self, source: str, partition: int, first: int, last: int) -> KafkaRun:
        """Return a run that a log names, from the source's topic; it blocks.

        Raises:
            BrokerError: it is not there any more, or it is not waited for any longer.
        """
        reader = self._readers.get(source)
        if reader is None:
            reader = self._readers[source] = self.sources[source].reader(self._going_on)
        wanted = range(first, last + 1)
        if (there := self.sources[source].there.get(partition)) is not None:
            wanted = range(max(first, there.start), min(last + 1, there.stop))
        if not wanted:
            return KafkaRun(partition, first, last, [])
        if partition not in reader.positions:
            reader.add({partition: wanted.start})
        run = self._waited(source, reader.exactly(partition, wanted[0], wanted[-1]))
        return run._replace(first=first, last=last)

    def go_on(self, now: int) -> list[Assigned]:
        """Let the sources read, once what a log names is fetched; see `KafkaSource.go_on`.

        Args:
            now: the arrival time, in nanoseconds since 1970.
        """
        self.close()
        records = []
        for name, source in self.sources.items():
            if self._logged.get(name, LoggedSource()).ended:
                source.close()
            else:
                records += source.go_on(now)
        return records

    def look_up(
        self, source: str, partition: int, offsets: Sequence[int]
    ) -> dict[int, KafkaRecord]:
        """Return some records that were read before, by their offsets; it blocks.

        Args:
            source: whose.
            partition: where they stand.
            offsets: in order, at least one. What compaction has taken since has no value.

        Raises:
            BrokerError: they are not there any more, or are not waited for any longer.
        """
        reader = self._readers.get(source)
        if reader is None:
            reader = self._readers[source] = self.sources[source].reader(self._going_on)
        reader.go_to({partition: range(offsets[0], offsets[-1] + 1)})
        run = self._waited(source, reader.exactly(partition, offsets[0], offsets[-1]))
        reader.go_to({})
        values = {one.offset(): one.value() for one in run.messages}
        topic = self.topics[source].topic
        return {
            offset: KafkaRecord(values.get(offset), topic=topic, partition=partition, offset=offset)
            for offset in offsets
        }

    def _waited(self, source: str, run: KafkaRun | None) -> KafkaRun:
        if run is None:
            raise BrokerError(
                f"source {escaped(source)}: what was read before was not read again in time"
            )
        return run

    def copy_figures(self, metrics: Registry) -> None:
        """Copy what only sources of Kafka have; in any thread."""
        for name, source in self.sources.items():
            source.copy_figures(metrics.sources[name])

    def close(self) -> None:
        """Close what reads again; sources and sinks are closed by those who run them."""
        for reader in self._readers.values():
            with contextlib.suppress(RuntimeError):
                reader.close()
        self._readers.clear()
