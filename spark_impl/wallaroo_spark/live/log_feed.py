"""The input log as a streaming query's feed: an offset is a sequence number.

A record is offered to Spark once it is durable. One thread syncs everything that was appended since
its last sync, so under load one sync serves many records. Records that Spark has committed are
dropped from the log.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

from wallaroo.overriding import override
from wallaroo.records import End, Record, Tick, Value
from wallaroo.transport.generators import decoded, encoded
from wallaroo.transport.input_log import InputLog, InputLogError, Kind, Run
from wallaroo.transport.skipping import SkippedPayload, skipped
from wallaroo_spark.live.resume import Resume, after
from wallaroo_spark.plans.feed import Feed
from wallaroo_spark.wire.job import CaseSpec, Frames, HeadBlock, joined, pack
from wallaroo_spark.wire.job import Kind as WireKind
from wallaroo_spark.wire.job import Run as WireRun

_WAIT = 0.2  # seconds that `latest` may wait for input; stopping a query can take as long
_SMALL = 64 * 1024  # bytes of payloads; fewer are not divided among tasks


class LogFeed(Feed):
    """Feeds a query from an input log, and appends received frames to the log.

    Args:
        log: the input log.
        case: the application.
        tasks: number of tasks among which the decoding of a large batch is divided.
        batch_bytes: most payload bytes of a batch.
        failed: called once, in any thread, with an error's text if the log fails.
        resume: what the checkpoint says about the end of the last run.
        timed: what the application does can depend on arrival times. If not, workers get no arrival
            times, and frames of one source stay together even if they were read separately.
        skip: numbers of records that are left out.
        choose: returns the sequence of one of a batch's records that is to be followed, or `None`.

    Attributes:
        case: the case under which all further input is sent.
        log: the input log.
        room_made: called, in any thread, after a commit has made room.
        planned: Spark has been given the records before this sequence.
        committed: Spark has committed the records before this sequence.
        committed_at: when it last committed some, in seconds since 1970; `None`: not in this run.
        sources: what the log says about the sources before `planned`.
    """

    def __init__(
        self,
        log: InputLog,
        case: CaseSpec,
        *,
        tasks: int,
        batch_bytes: int,
        failed: Callable[[str], None],
        resume: Resume,
        timed: bool,
        skip: Collection[int] = (),
        choose: Callable[[Sequence[Run]], int | None] = lambda _: None,
    ) -> None:
        self.log = log
        self.sources = resume.sources
        self._sources_until = resume.sequence  # `sources` knows the records before this sequence
        self._timed = timed
        self._skip = skip
        self.case = case
        self.room_made: Callable[[], None] = lambda: None
        self._choose = choose
        self.planned = self.committed = log.first_sequence
        self.committed_at: float | None = None
        self._tasks = tasks
        self._batch_bytes = batch_bytes
        self._failed = failed
        self._changed = threading.Condition()
        self._waiting: list[Callable[[], None]] = []  # called once everything is durable
        self._closed = False
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

    def append_records(self, records: Sequence[Value | Tick | End]) -> None:
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

    def _appended(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def when_durable(self, call: Callable[[], None]) -> None:
        """Call `call`, in any thread, once everything appended so far is durable."""
        with self._changed:
            self._waiting.append(call)
            self._changed.notify_all()

    def close(self) -> None:
        """Stop, and close the log."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._syncing.join()
        self.log.close()

    def records(self, sequences: Collection[int]) -> dict[int, Record]:
        """Return records that Spark has not committed yet; values as they are logged.

        The log is read once: to look for each record would take time by the square of their number.
        """
        first = min(sequences, default=0)
        read = self.log.read(first, 1 + max(sequences, default=-1))
        return {sequence: read[sequence - first] for sequence in sequences}

    # -- the feed ----------------------------------------------------------------------------

    @override
    def first(self) -> int:
        return self.log.first_sequence

    @override
    def latest(self, start: int) -> int:
        if start > self.log.next_sequence:
            self._failed(
                f"the checkpoint is half deleted: Spark has committed frames up to {start}, and "
                f"the input log {self.log.path} ends at {self.log.next_sequence}"
            )
            return start
        self._drop_committed(start)
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self.log.durable_sequence > start, _WAIT)
        if self._closed:
            return start
        return self.log.end_within(start, max_bytes=self._batch_bytes)

    @override
    def blocks(self, start: int, end: int) -> list[bytes]:
        try:
            runs = self.log.runs(start, end)
        except InputLogError as error:
            self._failed(str(error))
            raise
        self.planned = end
        if end > self._sources_until:
            self.sources, self._sources_until = after(self.sources, runs), end
        if self._skip:
            runs = list(skipped(runs, self._skip))
        if not self._timed:
            runs = [run._replace(at=0) for run in runs]
        case = self.case
        if (follow := self._choose(runs)) is not None:
            case = replace(case, follow=follow)
        parts = _divided(joined([more for run in runs for more in _wire_runs(run)]), self._tasks)
        return [
            pack(HeadBlock({0: case}, part, None if number else (start, end)))
            for number, part in enumerate(parts)
        ]

    def commit(self, end: int) -> None:
        """Do nothing: `latest` has already been called with the same offset."""

    def _drop_committed(self, end: int) -> None:
        """Drop what Spark has committed: everything before the batch that it plans."""
        if end > self.committed:
            self.committed = end
            self.committed_at = time.time()
            try:
                self.log.drop_before(end)
            except InputLogError as error:
                self._failed(str(error))
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


def _wire_runs(run: Run) -> Iterator[WireRun]:
    """Yield a log's run as workers get it."""
    whole = WireRun(0, run.source, run.first, run.payloads, run.at)
    if run.kind is Kind.FRAME and isinstance(marked := run.payloads[0], SkippedPayload):
        yield whole._replace(kind=WireKind.SKIPPED, items=[marked.why.encode()])
    elif run.kind is Kind.FRAME:
        yield whole
    elif run.kind is Kind.TICK:
        yield whole._replace(kind=WireKind.TICK)
    elif run.kind is Kind.END:
        ends = [pack(record) for record in run.records()]
        yield whole._replace(kind=WireKind.END, items=ends)
    else:
        for sequence, payload in enumerate(run.payloads, run.first):
            blob, hindered = decoded(payload)
            kind = WireKind.VALUES if hindered is None else WireKind.UNPORTABLE
            item = blob if hindered is None else hindered.encode()
            yield whole._replace(first=sequence, items=[item], kind=kind)


def _divided(frames: Frames, parts: int) -> list[Frames]:
    """Return frames in consecutive parts of about equal number; in one part if they are small."""
    if sum([sum(map(len, run.items)) for run in frames]) <= _SMALL:
        return [frames]
    size = -(-sum([len(run.items) for run in frames]) // parts)
    divided: list[Frames] = [[]]
    room = size
    for run in frames:
        start = 0
        while start < len(run.items):
            if not room:
                divided.append([])
                room = size
            some = run.items[start : start + room]
            divided[-1].append(run._replace(first=run.first + start, items=some))
            start += len(some)
            room -= len(some)
    return divided
