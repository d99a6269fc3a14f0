"""Bounded cases as a stream with chosen batches: micro-batch k holds the k-th batch of every case.

To start a query takes seconds, so a session keeps one query, which runs one job after the other. It
is a generic chain of operators; the blocks tell the operators what to do. At the end of a job the
entities are listed and removed, so the next job finds none. Every case of every job has its own
number, so entities of different cases can never be mixed up.
"""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wallaroo.overriding import override
from wallaroo_spark.bounded.traces import Records
from wallaroo_spark.jvm.pyspark_private import for_each_batch
from wallaroo_spark.jvm.session import Session
from wallaroo_spark.plans.feed import Feed, FeedServer
from wallaroo_spark.plans.reports import first_end
from wallaroo_spark.plans.stream import streaming_rows
from wallaroo_spark.wire.job import CaseSpec, Frames, HeadBlock, Report, pack
from wallaroo_spark.wire.lineages import Order
from wallaroo_spark.wire.outbox import Finished
from wallaroo_spark.wire.rows import collected
from wallaroo_spark.worker.modules import Shipment

_WAIT = 0.2  # seconds the query waits for a job before it asks again

_numbers = itertools.count(1)


@dataclass(frozen=True)
class StreamCase:
    """A case of a job: what workers need, its input, and its batches, at least one."""

    spec: CaseSpec
    records: Records
    batches: Sequence[tuple[int, int]]

    def until(self, end: Order) -> StreamCase:
        """Return the same case without the calls and the input after `end`.

        It has at most two batches: the last, and one of all before it. So states still go from one
        micro-batch to the next, and a case that ended late does not make the whole job twice as
        long.
        """
        stop = end[0][0] + 1
        batches = [(first, min(last, stop)) for first, last in self.batches if first < stop]
        if len(batches) > 1:
            batches = [(0, batches[-1][0]), batches[-1]]
        return StreamCase(replace(self.spec, limit=end), self.records, batches)


class StreamJob:
    """Cases that are processed batch by batch: one micro-batch after the other.

    When a run ends early, other shards may have processed later messages already, and their
    entities show it. So the case is started again, with a new number and without the calls after
    its end, while the other cases continue.

    Args:
        cases: at least one.
        shards: number of tasks among which a micro-batch is divided.

    Attributes:
        numbers: the number under which each case is reported.
        report: everything that was reported so far.
    """

    def __init__(self, cases: Sequence[StreamCase], shards: int) -> None:
        self.numbers = [next(_numbers) for _ in cases]
        self.report = Report()
        self._shards = shards
        self._indices = {number: index for index, number in enumerate(self.numbers)}
        self._cases = dict(zip(self.numbers, cases, strict=True))
        self._made = dict.fromkeys(self.numbers, 0)  # batches made, of the unfinished cases

    def next_batch(self) -> list[HeadBlock] | None:
        """Return the next micro-batch's blocks, at least one; `None` after the last."""
        if not self._made:
            return None
        frames: Frames = []
        for number, batch in self._made.items():
            case = self._cases[number]
            frames += case.records.frames(number, *case.batches[batch])
            self._made[number] = batch + 1
        # The last micro-batch also asks for the entities, which saves another one.
        last = all(
            batch == len(self._cases[number].batches) for number, batch in self._made.items()
        )
        blocks = []
        for part in range(self._shards):
            dealt = frames[part :: self._shards]
            if dealt or not part:
                specs = {run[0]: self._spec(run[0]) for run in dealt}
                blocks.append(HeadBlock(specs, dealt, list_entities=last and not part))
        return blocks

    def _spec(self, number: int) -> CaseSpec:
        return self._cases[number].spec.in_batch(self._made[number] - 1)

    def take(self, report: Report) -> None:
        """Add the report of a micro-batch."""
        self.report.add(report)
        for number in list(self._made):
            case = self._cases[number]
            end = first_end(report.finished.get(number, Finished()))
            if end is not None and case.spec.limit is None:
                self._begin_anew(number, case.until(end.order))
            elif self._made[number] == len(case.batches):
                del self._made[number]

    def _begin_anew(self, number: int, case: StreamCase) -> None:
        del self._made[number]
        fresh = next(_numbers)
        index = self._indices[fresh] = self._indices.pop(number)
        self.numbers[index] = fresh
        self._cases[fresh] = case
        self._made[fresh] = 0


class StreamQuery:
    """The query that runs the jobs of one session, one at a time.

    Args:
        session: the session.
        levels: number of stateful operators.
        shards: number of tasks of each.
        shipment: how workers find the applications' modules.
    """

    def __init__(self, session: Session, levels: int, shards: int, shipment: Shipment) -> None:
        self.session = session
        self.levels = levels
        self.shipment = shipment
        self._shards = shards
        self._feed = _Feed()
        self._server = FeedServer(self._feed, session.directory)
        self._reports: list[Report] = []
        rows = streaming_rows(
            session.spark, self._server.address, levels=levels, shards=shards, shipment=shipment
        )
        self._query: Any = (
            for_each_batch(rows.writeStream, self._collect)
            .option("checkpointLocation", tempfile.mkdtemp(dir=session.directory))
            .start()
        )
        session.at_close(self.close)

    @property
    def usable(self) -> bool:
        """Whether another job can be run."""
        return self.session.alive and bool(self._query.isActive)

    def run(self, job: StreamJob) -> None:
        """Run a job to its end."""
        while (blocks := job.next_batch()) is not None:
            self._reports.clear()
            end = self._feed.add(blocks)
            while not self._feed.wait_until(end):
                if not self.usable:
                    self._query.awaitTermination()  # raises what ended it
                    raise RuntimeError("Spark ended the query")
            job.take(Report.merged(self._reports))

    def close(self) -> None:
        """Stop the query."""
        self._feed.close()
        if self.session.alive:
            with contextlib.suppress(Exception):
                self._query.stop()
        self._server.close()

    def _collect(self, batches: Iterable[Any]) -> None:
        report = Report.merged(collected(batches))
        self._reports.append(report)
        if report.span is not None:
            self._feed.done(report.span[1])


@dataclass
class _Feed(Feed):
    """The micro-batches of all jobs, in order; offset k is before micro-batch k."""

    batches: dict[int, list[bytes]] = field(default_factory=dict)
    end: int = 0
    finished: int = 0
    closed: bool = False
    changed: threading.Condition = field(default_factory=threading.Condition)

    def add(self, blocks: Sequence[HeadBlock]) -> int:
        """Add a micro-batch and return the offset after it."""
        with self.changed:
            first, *others = blocks
            first = first._replace(span=(self.end, self.end + 1))
            self.batches[self.end] = [pack(block) for block in (first, *others)]
            self.end += 1
            self.changed.notify_all()
            return self.end

    def done(self, offset: int) -> None:
        """Note that the micro-batches before `offset` are done."""
        with self.changed:
            self.finished = offset
            self.changed.notify_all()

    def wait_until(self, offset: int) -> bool:
        """Wait a moment for the micro-batches before `offset`; return whether they are done."""
        with self.changed:
            return self.changed.wait_for(lambda: self.finished >= offset, _WAIT)

    def close(self) -> None:
        """Offer no more input."""
        with self.changed:
            self.closed = True
            self.changed.notify_all()

    @override
    def first(self) -> int:
        return 0

    @override
    def latest(self, start: int) -> int:
        with self.changed:
            for number in [number for number in self.batches if number < start]:
                del self.batches[number]
            self.changed.wait_for(lambda: self.closed or self.end > start, _WAIT)
            return start if self.closed else min(start + 1, self.end)

    @override
    def blocks(self, start: int, end: int) -> list[bytes]:
        return [block for number in range(start, end) for block in self.batches[number]]
