"""A Kafka source: the thread that reads or plans its runs for an engine.

The position comes from the log and the checkpoint alone (kafka-3). What the brokers hold is
compared with it before anything takes effect (`wallaroo.transport.kafka.beginning`).
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

from wallaroo.errors import WallarooError
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.kafka_records import KafkaRun
from wallaroo.metrics.figures import SourceFigures
from wallaroo.overriding import override
from wallaroo.records import Assigned, End
from wallaroo.text import escaped
from wallaroo.transport.interfaces import Receiver, Source
from wallaroo.transport.kafka.beginning import begin, offsets_of
from wallaroo.transport.kafka.cluster import (
    BrokerError,
    BrokersAwayError,
    Cluster,
    client,
)
from wallaroo.transport.kafka.lag import Lag
from wallaroo.transport.kafka.planner import RunPlanner
from wallaroo.transport.kafka.reader import RunReader
from wallaroo.transport.logged import LoggedSource, TopicPosition
from wallaroo.transport.threads import Post

_MOST = 4  # deliveries that wait for the engine
_LOOK = 0.05  # seconds between looks whether to go on
_COMMIT = 1.0  # seconds between commits to a group, for tools that show lag
_NEW_PARTITIONS = 10.0  # seconds between looks for partitions that were added (kafka-6)


class KafkaSource(Source):
    """Reads or plans runs in a thread, and hands them to an engine in the loop's thread.

    Args:
        cluster: the brokers.
        name: the source's name.
        config: what is read.
        receiver: the engine's part.
        post: calls a function in the loop's thread.
        measured: find out how far behind the ends of its partitions it is.
        room: runs are planned only, and read elsewhere: waits a moment for room, and returns how
            many offsets may be planned now. `None`: they are read here.

    Attributes:
        there: which offsets the brokers had at the start; what a log names besides is left out.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        config: KafkaSourceConfig,
        receiver: Receiver,
        post: Post,
        *,
        measured: bool = False,
        room: Callable[[], int] | None = None,
    ) -> None:
        self._cluster = cluster
        self._room_to_plan = room
        self._name = name
        self._config = config
        self._group = config.group or f"wallaroo-{name}"
        self._before: TopicPosition | None = None  # where an earlier run stood
        self._position: TopicPosition | None = None  # where it begins; `None`: it has ended
        self.there: Mapping[int, range] = {}
        self._ended: set[int] = set()
        self._receiver = receiver
        self._post = post
        self._measured = measured
        self._count = 0
        self._bytes = 0
        self._lag: Lag | None = None
        self._closed = threading.Event()
        self._may_read = threading.Event()
        self._may_read.set()
        self._room = threading.Semaphore(_MOST)
        self._thread = threading.Thread(
            target=self._run, name=f"wallaroo-kafka-{name}", daemon=True
        )

    @property
    @override
    def received(self) -> Mapping[str, int]:
        return {self._name: self._count}

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

    def copy_figures(self, figures: SourceFigures) -> None:
        """Copy what the edges do not count; in any thread."""
        figures.bytes = self._bytes
        if self._lag is not None:
            figures.places = self._lag.places

    # -- before the run --------------------------------------------------------------------------

    def begin(self, before: LoggedSource, again: Mapping[int, int], *, accept_gaps: bool) -> None:
        """Find out where to begin; see the function of this name.

        Args:
            before: where an earlier run stood.
            again: see the function.
            accept_gaps: see the function.
        """
        self._before, self._ended = before.position, set(before.partitions)
        self._position, self.there = begin(
            self._cluster, self._name, self._config, self._before, again, accept_gaps=accept_gaps
        )

    def add_read(self, records: int, size: int) -> None:
        """Count records that were read elsewhere, and their bytes."""
        self._count += records
        self._bytes += size

    def reader(self, going_on: Callable[[], bool]) -> RunReader:
        """Return a reader of the topic, which reads nothing yet."""
        config = self._config
        return RunReader(
            self._cluster,
            config.topic,
            self._group,
            committed_only=config.committed_only,
            going_on=going_on,
        )

    def go_on(self, now: int) -> list[Assigned]:
        """Begin to read, and return what a log must say of it first (kafka-1, kafka-6).

        Args:
            now: the arrival time, in nanoseconds since 1970.
        """
        begun, before = self._position, self._before
        assert begun is not None
        offsets, ends = begun.offsets, begun.ends or {}
        moved, at, starts = offsets, now, offsets
        if before is not None and (before.ends or not ends):
            at, starts = before.at, before.starts or offsets
            moved = {n: first for n, first in offsets.items() if before.offsets.get(n) != first}
        self._position = replace(begun, at=at, starts=starts)
        if not moved:
            return []
        places = tuple([(number, first, ends.get(number)) for number, first in moved.items()])
        return [Assigned(self._name, places, now, begun.topic)]

    # -- in the thread ---------------------------------------------------------------------------

    def _run(self) -> None:
        if not self._waited(self._may_read.wait) or self._position is None:
            return
        position = self._position
        try:
            with contextlib.closing(self._runs()) as reader:
                reader.add(position.offsets)
                if self._measured:
                    self._lag = Lag(self._ask_ends, position.ends)
                self._read(reader, position)
        except WallarooError as error:
            if not self._closed.is_set():
                self._post(self._receiver.input_failed, str(error))
        except client().KafkaException as error:
            if not self._closed.is_set():
                where = f"topic {escaped(self._config.topic)}"
                wrong = self._cluster.error(error.args[0], where)
                self._post(self._receiver.input_failed, str(wrong))

    def _runs(self) -> RunReader | RunPlanner:
        def going_on() -> bool:
            return not self._closed.is_set()

        if self._room_to_plan is None:
            return self.reader(going_on)
        config = self._config
        return RunPlanner(
            self._cluster,
            config.topic,
            self._group,
            committed_only=config.committed_only,
            going_on=going_on,
            room=self._room_to_plan,
        )

    def _read(self, reader: RunReader | RunPlanner, position: TopicPosition) -> None:
        if position.ends is not None:
            self._read_to(reader, position.ends, position.starts or {}, position.at)
            return
        looked = committed = time.monotonic()
        while self._waited(self._may_read.wait, reader):
            runs = reader.some()
            if runs and not self._hand_over(runs, None, reader):
                return
            if self._config.group is not None and time.monotonic() - committed > _COMMIT:
                reader.commit()
                committed = time.monotonic()
            odd = isinstance(reader, RunPlanner) and reader.ends_before
            if odd or time.monotonic() - looked > _NEW_PARTITIONS:
                self._add_partitions(reader, position.topic)
                looked = time.monotonic()

    def _add_partitions(self, reader: RunReader | RunPlanner, before: str) -> None:
        """Read partitions that were added (kafka-6), if the topic is that of before."""
        config = self._config
        with contextlib.suppress(BrokersAwayError):
            topic = self._cluster.topic(config.topic)
            if topic.id != before:
                raise BrokerError(
                    f"{self._name}: topic {escaped(config.topic)} was made again while it was "
                    "read; its records are others (kafka-5)"
                )
            if config.partitions is not None:
                return
            added = [number for number in topic.partitions if number not in reader.positions]
            if added:
                first = offsets_of(self._cluster, config, added, "earliest")
                places = tuple([(number, offset, None) for number, offset in first.items()])
                record = Assigned(self._name, places, topic=topic.id)
                self._post(self._say, record)
                reader.add(first)

    def _read_to(
        self,
        reader: RunReader | RunPlanner,
        ends: Mapping[int, int],
        starts: Mapping[int, int],
        at: int,
    ) -> None:
        """Read to the ends; partitions end one by one, then the source (kafka-10)."""

        def end(partition: int) -> None:
            if reader.positions[partition] >= ends[partition] and partition not in self._ended:
                self._ended.add(partition)
                self._post(self._say, End(self._name, at, partition=partition))

        for partition in sorted(ends):
            end(partition)
        for run in reader.bounded(ends, starts):
            if not self._hand_over([run], at, reader):
                return
            end(run.partition)
        self._post(self._say, End(self._name, at))

    def _hand_over(
        self, runs: Sequence[KafkaRun], at: int | None, reader: RunReader | RunPlanner
    ) -> bool:
        """Hand runs to the engine, once it has room; return whether it took them."""
        has_room = partial(self._room.acquire, True)
        taken = self._waited(has_room, reader) and self._waited(self._may_read.wait, reader)
        if taken:
            self._post(self._deliver, runs, at)
        return taken

    def _waited(
        self, wait: Callable[[float], bool], reader: RunReader | RunPlanner | None = None
    ) -> bool:
        """Return whether what was waited for came before the source was closed.

        Args:
            wait: waits for so many seconds, and returns whether it has come.
            reader: who reads; `None`: nobody yet.
        """
        while not self._closed.is_set():
            if reader is not None and self._lag is not None:
                self._lag.look(reader.standing)
                if isinstance(reader, RunReader):
                    self._bytes = reader.bytes_in
            if wait(_LOOK):
                break
        return not self._closed.is_set()  # it may have been closed, and then resumed

    def _ask_ends(self, partitions: Collection[int]) -> Mapping[int, Future[Any]]:
        config = self._config
        return self._cluster.asked_offsets(
            config.topic, partitions, "latest", committed_only=config.committed_only
        )

    # -- in the loop's thread --------------------------------------------------------------------

    def _say(self, record: Assigned | End) -> None:
        """Hand over what comes behind runs, unless these may have been left out."""
        if not self._closed.is_set():
            self._receiver.receive_records([record])

    def _deliver(self, runs: Sequence[KafkaRun], at: int | None) -> None:
        self._room.release()
        for run in runs:
            if not self._closed.is_set():
                self._count += len(run.messages)
                self._receiver.receive_run(self._name, run, at)
