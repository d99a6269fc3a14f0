"""A Kafka source: where it begins, and the thread that reads its runs for an engine.

The position comes from the log and the checkpoint alone (kafka-3). What the brokers hold is
compared with it before anything takes effect (kafka-5).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from wallaroo.errors import WallarooError
from wallaroo.overriding import override
from wallaroo.text import escaped
from wallaroo.transport.interfaces import Source
from wallaroo.transport.kafka.cluster import BrokerError, Cluster, Topic
from wallaroo.transport.kafka.reader import Run, RunReader
from wallaroo.transport.threads import Post

_MOST = 4  # deliveries that wait for the engine
_LOOK = 0.05  # seconds between looks whether to go on
_NEW_PARTITIONS = 30.0  # seconds between looks for partitions that were added (kafka-6)


@dataclass(frozen=True)
class Position:
    """Where a Kafka source stands: what a log and a checkpoint say of it.

    Args:
        topic: the topic's id.
        offsets: for each partition that is read, the next offset.
        ends: for each partition of a bounded read, the offset behind its last; else empty.
    """

    topic: str
    offsets: Mapping[int, int]
    ends: Mapping[int, int] | None = None

    def after(self, partition: int, last: int) -> Position:
        """Return the position behind a run."""
        return replace(self, offsets={**self.offsets, partition: last + 1})


@dataclass(frozen=True)
class Reading:
    """What a Kafka source is to read.

    Args:
        source: its name.
        topic: the topic's name.
        partitions: those that are read; `None`: all.
        start: ``"earliest"``, ``"latest"``, a time in nanoseconds since 1970, or an offset for
            each partition (kafka-4).
        bounded: read to the end that there is at the start, then end the source (kafka-10).
        committed_only: see `Cluster.consumer`.
        group: see `Cluster.consumer`; `None`: no group gets positions.
    """

    source: str
    topic: str
    partitions: tuple[int, ...] | None = None
    start: str | int | Mapping[int, int] = "earliest"
    bounded: bool = False
    committed_only: bool = True
    group: str | None = None


class RunReceiver(Protocol):
    """An engine's part that gets runs; its methods are called in the loop's thread."""

    def receive_runs(self, source: str, runs: Sequence[Run]) -> None:
        """Process runs, in order; it must not raise."""

    def receive_partitions(self, source: str, added: Mapping[int, int]) -> None:
        """Partitions were added; they are read from these offsets on (kafka-6)."""

    def runs_ended(self, source: str, problem: str | None) -> None:
        """There are no more runs: the end is reached, or there is a problem that will not pass."""


def begin(
    cluster: Cluster, reading: Reading, before: Position | None, *, accept_gaps: bool = False
) -> Position:
    """Return where a source begins to read now; it blocks.

    Args:
        cluster: the brokers.
        reading: what is to be read.
        before: where an earlier run stood; `None`: there was none.
        accept_gaps: go on where records are missing between `before` and what is there.

    Raises:
        BrokerError: the brokers do not answer, or what they hold does not fit (kafka-5).
    """
    topic = cluster.topic(reading.topic)
    chosen = _chosen(cluster, reading, topic)
    if before is None:
        offsets = _resolved(cluster, reading, chosen)
        ends = None
        if reading.bounded:
            ends = _offsets(cluster, reading, chosen, "latest")
        return Position(topic.id, offsets, ends)
    where = f"{reading.source}: topic {escaped(reading.topic)}"
    accept = "run with --accept-gaps to go on with what is there"
    if topic.id != before.topic and not accept_gaps:
        raise BrokerError(
            f"{where}: the checkpoint read the topic with the id {before.topic}, and the topic of "
            f"this name has the id {topic.id} now: it was made again. To begin anew with it, take "
            "an empty checkpoint (kafka-5)"
        )
    first = _offsets(cluster, reading, chosen, "earliest")
    end = cluster.offsets(reading.topic, chosen, "latest", committed_only=False)
    offsets = {}
    for partition in chosen:
        wanted = before.offsets.get(partition, first[partition])
        there = f"has offsets {first[partition]} to {end[partition] - 1} now"
        if not first[partition] <= wanted <= end[partition] and not accept_gaps:
            raise BrokerError(
                f"{where}, partition {partition}: offset {wanted} is wanted, and the partition "
                f"{there}; {accept} (kafka-5)"
            )
        offsets[partition] = min(max(wanted, first[partition]), end[partition])
    return Position(topic.id, offsets, before.ends)


class KafkaSource(Source):
    """Reads runs in a thread, and hands them to an engine in the loop's thread.

    Args:
        cluster: the brokers.
        reading: what is read.
        position: where it begins.
        receiver: the engine's part.
        post: calls a function in the loop's thread.
    """

    def __init__(
        self,
        cluster: Cluster,
        reading: Reading,
        position: Position,
        receiver: RunReceiver,
        post: Post,
    ) -> None:
        self._cluster = cluster
        self._reading = reading
        self._position = position
        self._receiver = receiver
        self._post = post
        self._count = 0
        self._closed = threading.Event()
        self._may_read = threading.Event()
        self._may_read.set()
        self._room = threading.Semaphore(_MOST)
        self._thread = threading.Thread(
            target=self._run, name=f"wallaroo-kafka-{reading.source}", daemon=True
        )

    @property
    @override
    def received(self) -> Mapping[str, int]:
        return {self._reading.source: self._count}

    @override
    def start(self) -> None:
        self._thread.start()

    @override
    def pause(self) -> None:
        self._may_read.clear()

    @override
    def resume(self) -> None:
        self._may_read.set()

    @override
    async def stop(self) -> None:
        # Records are durable where they are: a restart goes on behind the last one that was taken.
        self.close()
        while self._thread.is_alive():
            await asyncio.sleep(_LOOK)

    @override
    def close(self) -> None:
        self._closed.set()

    # -- in the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        reading, problem = self._reading, None
        try:
            reader = RunReader(
                self._cluster,
                reading.topic,
                reading.group or f"wallaroo-{reading.source}",
                committed_only=reading.committed_only,
                going_on=lambda: not self._closed.is_set(),
            )
        except WallarooError as error:
            self._post(self._receiver.runs_ended, reading.source, str(error))
            return
        with contextlib.closing(reader):
            try:
                reader.add(self._position.offsets)
                self._read(reader)
            except WallarooError as error:
                problem = str(error)
        if not self._closed.is_set():
            self._post(self._receiver.runs_ended, reading.source, problem)

    def _read(self, reader: RunReader) -> None:
        if self._position.ends is not None:
            for run in reader.bounded(self._position.ends):
                if not self._hand_over([run]):
                    return
            return
        while not self._closed.is_set():
            if not self._may_read.wait(_LOOK):
                continue
            runs = reader.some()
            if runs and not self._hand_over(runs):
                return

    def _hand_over(self, runs: list[Run]) -> bool:
        """Hand runs to the engine, once it has room; return whether it took them."""
        while not self._room.acquire(timeout=_LOOK):
            if self._closed.is_set():
                return False
        while not self._may_read.wait(_LOOK):
            if self._closed.is_set():
                return False
        self._post(self._deliver, runs)
        return True

    # -- in the loop's thread --------------------------------------------------------------------

    def _deliver(self, runs: list[Run]) -> None:
        self._room.release()
        if not self._closed.is_set():
            self._count += sum([len(run.messages) for run in runs])
            self._receiver.receive_runs(self._reading.source, runs)


def _chosen(cluster: Cluster, reading: Reading, topic: Topic) -> list[int]:
    if reading.partitions is None:
        return list(topic.partitions)
    missing = sorted(set(reading.partitions) - set(topic.partitions))
    if missing:
        raise BrokerError(
            f"{reading.source}: topic {escaped(topic.name)} has no partition {missing[0]}: it has "
            f"{len(topic.partitions)}"
        )
    return sorted(reading.partitions)


def _resolved(cluster: Cluster, reading: Reading, chosen: list[int]) -> dict[int, int]:
    """Return where a new run begins (kafka-4)."""
    start = reading.start
    if isinstance(start, (str, int)):
        return _offsets(cluster, reading, chosen, start)
    first = _offsets(cluster, reading, chosen, "earliest")
    end = _offsets(cluster, reading, chosen, "latest")
    for partition, offset in start.items():
        if partition not in chosen or not first[partition] <= offset <= end[partition]:
            there = (
                f"has offsets {first[partition]} to {end[partition] - 1} now"
                if partition in chosen
                else "is not read"
            )
            raise BrokerError(
                f"{reading.source}: topic {escaped(reading.topic)}, partition {partition}: start= "
                f"says offset {offset}, and the partition {there} (kafka-5)"
            )
    return first | dict(start)


def _offsets(
    cluster: Cluster, reading: Reading, partitions: list[int], at: str | int
) -> dict[int, int]:
    only = reading.committed_only
    return cluster.offsets(reading.topic, partitions, at, committed_only=only)
