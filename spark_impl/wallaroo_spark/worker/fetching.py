"""Tasks read their records of Kafka themselves, by the offsets that the driver has planned.

A worker keeps a client of each topic from one task to the next. Between tasks it reads nothing: the
next offsets may go to another worker.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence

from wallaroo.errors import WallarooError
from wallaroo.kafka_records import KafkaRun
from wallaroo.text import escaped
from wallaroo.transport.kafka.cluster import Cluster
from wallaroo.transport.kafka.context import Context, context_of
from wallaroo.transport.kafka.reader import RunReader
from wallaroo_spark.wire.job import Fetched, Topic, WireKind, WireRun

_CLIENTS = 16  # topics that a process keeps a client of
_AHEAD = 1_024  # KiB: little more is read than a task wants


class TooMuchError(WallarooError):
    """What a task is to fetch is more than a worker can bear; the driver cuts the micro-batch."""


class Fetching:
    """Reads the offsets of a task's input.

    Args:
        topics: by source.
        frames: the input.
        most: bytes of values; one record may have more.

    Attributes:
        fetched: by source, so far.
        contexts: of records that have one, by their numbers, where traces go on.
    """

    def __init__(self, topics: Mapping[str, Topic], frames: Sequence[WireRun], most: int) -> None:
        self._topics = topics
        self._room = most
        self._taken = 0  # offsets
        self._wanted = sum([len(run.items) for run in frames if run.kind is WireKind.OFFSETS])
        self.contexts: dict[int, Context] = {}
        self.fetched = dict.fromkeys(topics, Fetched())
        self._readers = {source: _reader(source, topic) for source, topic in topics.items()}
        places: dict[str, dict[int, range]] = {source: {} for source in topics}
        for run in frames:
            if run.kind is WireKind.OFFSETS:
                (partition,), there = run.partitions, places[run.source]
                first = there.get(partition, run.items).start
                there[partition] = range(first, run.items.stop)
        for source, some in places.items():
            self._readers[source].go_to(some)

    @property
    def records(self) -> int:
        """How many it has fetched."""
        return sum([fetched.records for fetched in self.fetched.values()])

    def of(self, run: WireRun) -> Iterator[WireRun]:
        """Yield a run; if it is of offsets, the records that stand there.

        Raises:
            BrokerError: they cannot be read, now or ever.
            TooMuchError: there is more than the task may fetch.
        """
        if run.kind is not WireKind.OFFSETS:
            yield run
            return
        topic, (partition,) = self._topics[run.source], run.partitions
        reader = self._readers[run.source]
        read = reader.exactly(partition, run.items[0], run.items[-1], most=self._room)
        assert isinstance(read, KafkaRun), "it is waited for without an end"
        read_size = sum(map(len, read.messages))
        records, size, tombstones = self.fetched[run.source]
        nothing = len([one for one in read.messages if not len(one) and one.value() is None])
        self.fetched[run.source] = Fetched(
            records + len(read.messages), size + read_size, tombstones + nothing
        )
        self._room -= read_size
        self._taken += read.last + 1 - read.first
        if self._room < 0 and (self.records > 1 or read.last < run.items[-1]):
            fitting = self._taken - (self.records > 1)  # one record always fits
            raise TooMuchError(f"{fitting} of {self._wanted} offsets")
        first = run.first
        for message in read.messages if topic.traced else ():
            if (headers := message.headers()) and (context := context_of(headers)):
                self.contexts[first + message.offset() - read.first] = context
        for piece in read.pieces(topic.name, topic.whole):
            if isinstance(piece, int):
                first += piece
            else:
                yield run._replace(first=first, items=piece, kind=WireKind.RECORDS)
                first += len(piece)

    def close(self) -> None:
        """Read nothing more; the clients stay."""
        for reader in self._readers.values():
            reader.go_to({})


@functools.lru_cache(maxsize=_CLIENTS)
def _reader(source: str, topic: Topic) -> RunReader:
    cluster = Cluster(topic.brokers, dict(topic.options), f"source {escaped(source)}")
    return RunReader(
        cluster,
        topic.name,
        "wallaroo",  # names no group: nothing is committed
        committed_only=topic.committed_only,
        going_on=lambda: True,
        ahead=_AHEAD,
    )
