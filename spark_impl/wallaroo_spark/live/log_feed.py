"""The input log as a streaming query's feed: an offset is a sequence number.

A record is offered to Spark once it is durable. One thread syncs everything that was appended since
its last sync, so under load one sync serves many records. A log of offsets has no such thread: it
stands in Spark's offsets, and is synced when these are. Records that Spark has committed are
dropped from the log.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeAlias

from wallaroo.kafka_records import KafkaRecord
from wallaroo.overriding import override
from wallaroo.records import Consumed, Record, Value
from wallaroo.transport.identity import RESTORE
from wallaroo.transport.input_log import InputLog, InputLogError, LoggedRun, RecordKind
from wallaroo.transport.logged import after, encoded
from wallaroo.transport.skipping import skipped
from wallaroo_spark.live.arrivals import Arrivals
from wallaroo_spark.live.offset_log import Log, OffsetLog
from wallaroo_spark.live.resume import Resume, positions_in
from wallaroo_spark.live.to_tasks import frames_for_tasks
from wallaroo_spark.plans.feed import Feed
from wallaroo_spark.wire.job import CaseSpec, HeadBlock, Topic, WireKind, pack

_WAIT = 1.0  # seconds that `latest` may wait for input: Spark asks again at once
_ROOM = 0.2  # seconds that a source waits for room to plan offsets; so long its close may take

_RECORD = 32  # bytes of a micro-batch for each of its records: small ones cost memory as objects

# How many offsets a micro-batch holds at most: at first, however small records are, and how many
# times as many as the one before, since records may be larger than those.
_FIRST_OFFSETS = 1_000
_MOST_OFFSETS = 200_000
_GROWTH = 8

_OFFSETS = WireKind.OFFSETS

LookUp: TypeAlias = Callable[[str, int, Sequence[int]], Mapping[int, KafkaRecord]]


class LogFeed(Feed):
    """Feeds a query from an input log, and appends received frames to the log.

    Args:
        log: the input log.
        case: the application.
        tasks: number of tasks among which the decoding of a large batch is divided.
        batch_bytes: most payload bytes of a batch. A task fetches up to twice as many from topics.
        planned: Spark has been given the records before this sequence in earlier runs.
        failed: called once, in any thread, with an error's text if the log fails.
        resume: what the checkpoint says about the end of the last run.
        timed: what the application does can depend on arrival times. If not, workers get no arrival
            times, and frames of one source stay together even if they were read separately.
        skip: numbers of records that are left out.
        choose: returns the sequence of one of a batch's records that is to be followed, or `None`.
        topics: where tasks fetch the records of Kafka sources, by source.

    Attributes:
        case: the case under which all further input is sent.
        log: the input log.
        room_made: called, in any thread, after a commit has made room.
        there: which offsets of what an earlier run has logged can be fetched, by source and
            partition; the others are a gap (kafka-5).
        arrivals: when something came last from each partition of a topic.
        look_up: returns records of Kafka, by their offsets, given source, partition and offsets.
        planned: Spark has been given the records before this sequence.
        committed: Spark has committed the records before this sequence.
        committed_at: when it last committed some, in seconds since 1970; `None`: not in this run.
        sources: what the log says about the sources before `planned`.
    """

    def __init__(
        self,
        log: Log,
        case: CaseSpec,
        *,
        tasks: int,
        batch_bytes: int,
        planned: int = 0,
        failed: Callable[[str], None],
        resume: Resume,
        timed: bool,
        skip: Collection[int] = (),
        choose: Callable[[Sequence[LoggedRun]], int | None] = lambda _: None,
        topics: Mapping[str, Topic] = MappingProxyType({}),
    ) -> None:
        self._topics = topics
        self._offsets = _FIRST_OFFSETS  # most offsets that wait to be planned
        self._waiting_offsets = 0
        self.log = log
        self.sources = resume.sources
        self._sources_until = resume.sequence  # `sources` knows the records before this sequence
        self._before = self.sources, self._sources_until  # before the last micro-batch
        self.arrivals = Arrivals(positions_in(resume.sources))
        self._timed = timed
        self._skip = skip
        self.case = case
        self.room_made: Callable[[], None] = lambda: None
        self.look_up: LookUp = lambda *_: {}
        self.there: Mapping[str, Mapping[int, range]] = {}
        self._restored = log.next_sequence  # before this, it is an earlier run's
        self._choose = choose
        self.committed = log.first_sequence
        self.planned = max(planned, self.committed)
        self.committed_at: float | None = None
        self._tasks = tasks
        self._batch_bytes = batch_bytes
        self._failed = failed
        self._changed = threading.Condition()
        self._waiting: list[Callable[[], None]] = []  # called once everything is durable
        self._closed = self._hurried = False
        self._syncing: threading.Thread | None = None
        if isinstance(log, InputLog):
            self._syncing = threading.Thread(target=self._sync, name="wallaroo-sync", daemon=True)
            self._syncing.start()

    @property
    def full(self) -> bool:
        """Whether to stop reading until `room_made` is called."""
        return self.log.full

    @property
    def received(self) -> int:
        """Sequence of the next record."""
        return self.log.next_sequence

    def append(self, source: str, payloads: list[bytes], at: int = 0) -> None:
        """Append frames to the log; they are offered to Spark once they are durable.

        Args:
            source: their source.
            payloads: the frames.
            at: their arrival time.

        Raises:
            InputLogError: they cannot be written; none of them was taken.
        """
        self.log.append(source, payloads, at)
        self._appended()

    def append_records(self, records: Sequence[Record]) -> None:
        """Append other records in the same way.

        Raises:
            InputLogError: they cannot be written; none of them was taken.
        """
        self.log.append_records(
            [
                replace(record, value=encoded(record.value))
                if isinstance(record, Value)
                else record
                for record in records
            ]
        )
        self._appended()

    def append_offsets(self, source: str, partition: int, first: int, last: int, at: int) -> None:
        """Append a run of offsets in the same way; tasks fetch what stands there (kafka-1).

        Raises:
            InputLogError: it cannot be written; it was not taken.
        """
        self.log.append_offsets(source, partition, first, last, at)
        with self._changed:
            self._waiting_offsets += last + 1 - first
        self._appended()

    def room_for_offsets(self) -> int:
        """Return how many offsets may be appended now: a micro-batch holds no more than these.

        While there are none, it waits a moment.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._waiting_offsets < self._offsets, _ROOM)
        return self._offsets - self._waiting_offsets

    def fetched(self, records: int, size: int) -> None:
        """Note what tasks have fetched: the next micro-batches hold about `batch_bytes`."""
        if records:
            fitting = self._batch_bytes * records // max(1, size)
            self._offsets = max(1, min(fitting, _GROWTH * self._offsets, _MOST_OFFSETS))

    def cut(self, offsets: int) -> None:
        """Give Spark fewer offsets at once from now on, also of the last micro-batch again."""
        self._offsets = offsets
        self.sources, self._sources_until = self._before

    def _appended(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def when_durable(self, call: Callable[[], None]) -> None:
        """Call `call`, in any thread, once everything appended so far is durable."""
        if self._syncing is None:
            call()
            return
        with self._changed:
            self._waiting.append(call)
            self._changed.notify_all()

    def answer_at_once(self) -> None:
        """Let `latest` wait no longer, because the query is to stop."""
        with self._changed:
            self._hurried = True
            self._changed.notify_all()

    def close(self) -> None:
        """Stop, and close the log."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._syncing is not None:
            self._syncing.join()
        self.log.close()

    def records(self, sequences: Collection[int]) -> dict[int, Record]:
        """Return records that Spark has not committed yet; values as they are logged.

        The log is read once: to look for each record would take time by the square of their number.

        Raises:
            BrokerError: what the log only names is not in its topic any more.
        """
        records: dict[int, Record] = {}
        wanted = sorted(sequences)
        for run in self.log.runs(min(wanted, default=0), 1 + max(wanted, default=-1)):
            end = run.first + len(run.payloads)
            here = wanted[bisect_left(wanted, run.first) : bisect_left(wanted, end)]
            if here and run.kind is RecordKind.OFFSETS:
                records |= self._looked_up(run, here)
            elif here:
                read = run.records()
                records |= {sequence: read[sequence - run.first] for sequence in here}
        return records

    def _looked_up(self, run: LoggedRun, sequences: Sequence[int]) -> dict[int, Record]:
        partition, first = run.place
        offsets = [first + sequence - run.first for sequence in sequences]
        found = self.look_up(run.source, partition, offsets)
        return {
            sequence: Consumed(run.source, found[offset], run.at)
            for sequence, offset in zip(sequences, offsets, strict=True)
        }

    # -- the feed ----------------------------------------------------------------------------

    @override
    def first(self) -> int:
        return self.log.first_sequence

    @override
    def latest(self, start: int) -> int:
        if start > self.log.next_sequence:
            self._failed(
                f"the checkpoint is half deleted: Spark has committed frames up to {start}, and "
                f"the input log {self.log.path} ends at {self.log.next_sequence}. {RESTORE}"
            )
            return start
        self._drop_committed(start)
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or self._hurried or self.log.durable_sequence > start, _WAIT
            )
        if self._closed:
            return start
        most = max(1, self._batch_bytes // _RECORD)
        end = self.log.end_within(start, max_bytes=self._batch_bytes, max_records=most)
        return self._within(start, end) if self._topics else end

    def _within(self, start: int, end: int) -> int:
        """Return where a micro-batch ends that holds no more offsets than it may."""
        room = self._offsets
        for run in self.log.runs(start, end):
            if run.kind is RecordKind.OFFSETS:
                if len(run.payloads) > room:
                    return run.first + room
                room -= len(run.payloads)
        return end

    @override
    def kept(self, start: int, end: int) -> dict[str, Any]:
        if not self._topics:
            return {}
        planned = max(end, self.planned)
        more = self.log.kept(start, planned) if isinstance(self.log, OffsetLog) else {}
        return {"planned": planned, **more}

    @override
    def blocks(self, start: int, end: int) -> list[bytes]:
        try:
            runs = self.log.runs(start, end)
            if isinstance(self.log, OffsetLog):  # Spark has just written it
                self.log.sync()
        except InputLogError as error:
            self._failed(str(error))
            raise
        if end > self.planned:  # else Spark plans it once more
            planned = sum([len(run.payloads) for run in runs if run.kind is RecordKind.OFFSETS])
            with self._changed:  # what an earlier run has logged was not counted
                self._waiting_offsets = max(0, self._waiting_offsets - planned)
                self._changed.notify_all()
        self.planned = max(end, self.planned)
        if end > self._sources_until:
            self._before = self.sources, self._sources_until
            self.arrivals.note(runs)
            self.sources = after(self.sources, skipped(runs, self._skip))
            self._sources_until = end
        if not self._timed:
            runs = [run._replace(at=0) for run in runs]
        case = self.case
        if (follow := self._choose(runs)) is not None:
            case = replace(case, follow=follow)
        runs = [there for run in runs if (there := self._there(run)).payloads]
        parts = frames_for_tasks(runs, self._topics, self._skip, self._tasks)
        blocks = []
        for number, part in enumerate(parts):
            span = None if number else (start, end)
            to_fetch = {run.source for run in part if run.kind is _OFFSETS}
            topics = {source: self._topics[source] for source in to_fetch}
            most = 2 * self._batch_bytes
            blocks.append(pack(HeadBlock({0: case}, part, span, topics=topics, most=most)))
        return blocks

    def _there(self, run: LoggedRun) -> LoggedRun:
        """Return what brokers still have of what an earlier run has logged."""
        if run.kind is not RecordKind.OFFSETS or run.first >= self._restored:
            return run
        partition, first = run.place
        there = self.there.get(run.source, {}).get(partition)
        if there is None:
            return run
        before = run.first - first
        return run.part(before + there.start, before + there.stop)

    def _drop_committed(self, end: int) -> None:
        """Drop what Spark has committed: everything before the batch that it plans."""
        if end > self.committed:
            self.committed = end
            self.committed_at = time.time()
            try:
                self.log.drop_before(end)
            except InputLogError as error:
                self._failed(str(error))
            if self._syncing is not None:  # else it is never full
                self.room_made()

    def _sync(self) -> None:
        log = self.log
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: (
                        self._closed
                        or bool(self._waiting)
                        or log.durable_sequence < log.next_sequence
                    )
                )
                if self._closed and log.durable_sequence == log.next_sequence:
                    return
                waiting, self._waiting = self._waiting, []
            try:
                log.sync()
            except InputLogError as error:
                self._failed(str(error))
                return
            with self._changed:
                self._changed.notify_all()
            for call in waiting:
                call()
