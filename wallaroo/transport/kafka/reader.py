"""Reads partitions of one topic, each in order of offsets, in pieces that are called runs.

A run is what stands between two offsets of one partition (kafka-1). A live source takes the runs
that there are; a restart takes those that the log names, once more; a bounded read takes equal
pieces of each partition in turn (kafka-10).
"""

from __future__ import annotations

import contextlib
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping
from itertools import accumulate, groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from wallaroo.kafka_records import KafkaRun
from wallaroo.text import escaped
from wallaroo.transport.kafka.cluster import BrokerError, BrokersAwayError, Cluster, client

if TYPE_CHECKING:
    from confluent_kafka import Consumer

Message: TypeAlias = Any
"""A record as the client gives it; its stubs allow `None` where a record always has something."""

_BATCH = 1_000  # messages that the client gives at once: quicker than fewer, and than many more
_GATHER = 0.005  # seconds in which more may come, once there is something: fewer, longer runs
_WAIT = 0.05  # seconds between looks whether to go on
_IN_TURN = 1_000  # offsets of a partition before the next one has its turn (kafka-10)
_AHEAD = 4 << 20  # bytes of a partition that are kept while another one's are wanted
_NO_END = 1 << 63
_COST = 100  # bytes to keep a message, besides its value


class RunReader:
    """Reads partitions of a topic, from given offsets on. It belongs to one thread. `close` it.

    Args:
        cluster: the brokers.
        topic: the topic's name.
        group: see `Cluster.consumer`.
        committed_only: see `Cluster.consumer`.
        going_on: whether to wait further for records; it is asked often.
        ahead: see `Cluster.consumer`.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        group: str,
        *,
        committed_only: bool,
        going_on: Callable[[], bool],
        ahead: int = 16_384,
    ) -> None:
        self._kafka = client()
        self._cluster = cluster
        self._topic = topic
        self._going_on = going_on
        self._consumer: Consumer = cluster.consumer(
            group, committed_only=committed_only, ahead=ahead
        )
        self._waiting: dict[int, list[Message]] = {}  # read, and not wanted yet
        self._size: dict[int, int] = {}  # bytes of them
        self._paused: set[int] = set()
        self._ends: dict[int, int] = {}  # of partitions of which no more is wanted
        self._reached: dict[int, int] = {}  # the offset up to which there is nothing more to read
        self.positions: dict[int, int] = {}
        self.bytes_in = 0  # of the values that were read

    def add(self, positions: Mapping[int, int]) -> None:
        """Read these partitions too, each from an offset on."""
        self.positions.update(positions)
        for partition in positions:
            self._waiting[partition] = []
            self._size[partition] = 0
            self._reached[partition] = -1
        self._consumer.incremental_assign(
            [self._kafka.TopicPartition(self._topic, *place) for place in positions.items()]
        )

    def go_to(self, places: Mapping[int, range]) -> None:
        """Read these offsets of these partitions, and no others."""
        for partition in list(self._paused):  # else it would be so when it is assigned again
            self._resume(partition)
        for before in (self.positions, self._waiting, self._size, self._reached):
            before.clear()
        self._consumer.unassign()
        self._ends = {partition: offsets.stop for partition, offsets in places.items()}
        self.add({partition: offsets.start for partition, offsets in places.items()})

    def some(self) -> list[KafkaRun]:
        """Return runs that are there now; none if nothing has come for a moment.

        Raises:
            BrokerError: a record cannot be read, now or ever.
        """
        if not any(self._waiting.values()):
            self._fetch()
        runs = [
            KafkaRun(partition, self.positions[partition], messages[-1].offset(), list(messages))
            for partition, messages in self._waiting.items()
            if messages
        ]
        for run in runs:
            self._waiting[run.partition].clear()
            self._size[run.partition] = 0
            self._moved(run.partition, run.last + 1)
        return runs

    def exactly(
        self, partition: int, first: int, last: int, *, most: float = math.inf
    ) -> KafkaRun | None:
        """Return one run, waiting for it; `None`: it is not waited for any more.

        Args:
            partition: whose.
            first: its first offset.
            last: its last one.
            most: bytes of values; it ends with the record that exceeds them.

        Raises:
            BrokerError: it cannot be read, now or ever.
        """
        messages: list[Message] = []
        waiting, offset = self._waiting[partition], self._kafka.Message.offset
        while True:
            end = bisect_right(waiting, last, key=offset)
            some = waiting[bisect_left(waiting, first, key=offset) : end]
            if (size := sum(map(len, some))) > most:
                del some[bisect_right([*accumulate(map(len, some))], most) + 1 :]
                last = some[-1].offset()
                end = bisect_right(waiting, last, key=offset)
            most -= size
            messages += some
            self._size[partition] -= sum(map(len, waiting[:end])) + _COST * end
            del waiting[:end]
            if (
                waiting
                or self._reached[partition] > last
                or (messages[-1:] and (messages[-1].offset() == last))
            ):
                self._moved(partition, last + 1)
                return KafkaRun(partition, first, last, messages)
            if not self._going_on():
                return None
            self._resume(partition)
            self._fetch()

    def bounded(self, ends: Mapping[int, int], starts: Mapping[int, int]) -> Iterator[KafkaRun]:
        """Yield the runs up to the ends, in the one order that offsets decide (kafka-10).

        Args:
            ends: for each partition the offset behind the last one.
            starts: the first one, of the run that began the read.

        Raises:
            BrokerError: a record cannot be read, now or ever.
        """
        for partition, first, last in in_turn(self.positions, ends, starts):
            run = self.exactly(partition, first, last)
            if run is None:
                return
            yield run

    @property
    def standing(self) -> dict[int, int]:
        """The next offset of each partition that may hold something."""
        return {
            partition: at if self._waiting[partition] else max(at, self._reached[partition])
            for partition, at in self.positions.items()
        }

    def commit(self) -> None:
        """Commit the positions in the group, for tools that show lag; nothing waits for it."""
        places = [self._kafka.TopicPartition(self._topic, *at) for at in self.standing.items()]
        with contextlib.suppress(self._kafka.KafkaException):
            self._consumer.commit(offsets=places, asynchronous=True)

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def _fetch(self) -> None:
        """Wait a moment for messages, and keep what comes by partition."""
        kafka = self._kafka
        messages: list[Message] = self._consumer.consume(1, _WAIT)
        if messages:  # the client waits for all that are asked for
            messages += self._consumer.consume(_BATCH - 1, _GATHER)
        errors = [
            (message, error) for message in messages if (error := message.error()) is not None
        ]
        if errors:
            messages = [message for message in messages if message.error() is None]
        for partition, of_it in groupby(messages, kafka.Message.partition):
            records = list(of_it)
            self._waiting[partition] += records
            size = sum(map(len, records))
            self.bytes_in += size
            self._size[partition] += size + _COST * len(records)
        for message, error in errors:
            if error.code() == kafka.KafkaError._PARTITION_EOF:
                self._reached[message.partition()] = message.offset()
            elif error.code() == kafka.KafkaError._AUTO_OFFSET_RESET:
                raise BrokerError(self._gone(message.partition()))
            else:
                where = f"topic {escaped(self._topic)}, partition {message.partition()}"
                wrong = self._cluster.error(error, where)
                if not isinstance(wrong, BrokersAwayError):
                    raise wrong
                self._cluster.trouble(error)  # the client goes on by itself (kafka-12)
        for partition, size in self._size.items():
            waiting = self._waiting[partition]
            all_there = waiting and waiting[-1].offset() + 1 >= self._ends.get(partition, _NO_END)
            if (size > _AHEAD or all_there) and partition not in self._paused:
                self._paused.add(partition)
                self._consumer.pause([self._kafka.TopicPartition(self._topic, partition)])

    def _moved(self, partition: int, position: int) -> None:
        self.positions[partition] = position
        if self._size[partition] < _AHEAD // 2:
            self._resume(partition)

    def _resume(self, partition: int) -> None:
        if partition in self._paused:
            self._paused.discard(partition)
            self._consumer.resume([self._kafka.TopicPartition(self._topic, partition)])

    def _gone(self, partition: int) -> str:
        there = self._cluster.offsets(self._topic, [partition], "earliest")
        return (
            f"{self._cluster.name}: topic {escaped(self._topic)}, partition {partition}: offset "
            f"{self.positions[partition]} is wanted, and the first that is there is "
            f"{there[partition]}: the brokers have deleted what was between; start again with "
            "--accept-gaps to go on with what is there (kafka-5)"
        )


def in_turn(
    positions: Mapping[int, int], ends: Mapping[int, int], starts: Mapping[int, int]
) -> Iterator[tuple[int, int, int]]:
    """Yield the runs of a bounded read: partition, first and last offset (kafka-10).

    Turns count from where the read began, so a restart goes on with the partition whose turn it is.

    Args:
        positions: for each partition the next offset; the caller moves it on behind each run.
        ends: for each partition the offset behind the last one.
        starts: for each partition the offset at which the read began.
    """

    def turn(partition: int) -> tuple[int, int]:
        return (positions[partition] - starts[partition]) // _IN_TURN, partition

    while open_now := [p for p in ends if positions[p] < ends[p]]:
        number, partition = min(map(turn, open_now))
        end = starts[partition] + (number + 1) * _IN_TURN
        yield partition, positions[partition], min(end, ends[partition]) - 1
