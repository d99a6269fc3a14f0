"""Brings the counts of a live run on Spark to its figures, in the driver.

Spark processes the input in micro-batches, so a batch's outputs are all delivered at one time. The
latency of a read is counted from its arrival until the batch that it belongs to is delivered.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from typing import Any

from wallaroo.metrics.following import Followed, Visits
from wallaroo.metrics.registry import Registry
from wallaroo.topology import SinkId
from wallaroo.transport.input_log import LoggedRun
from wallaroo.transport.skipping import MESSAGES
from wallaroo_spark.wire.job import Address, Report
from wallaroo_spark.worker.plan import plan

_TOGETHER = 0.001  # seconds: reads that arrive within this count as one
_MOST = 50_000  # reads whose arrival is known one by one
_FOLLOW = 10.0  # seconds between followed records: following slows a whole micro-batch down


class Watch:
    """Follows reads through the query.

    Args:
        metrics: the figures.
    """

    def __init__(self, metrics: Registry) -> None:
        self._metrics = metrics
        self._groups = plan(metrics.application).groups
        self._lock = threading.Lock()
        # For each: the sequence after its last record, when it arrived, records by source.
        self._reads: deque[tuple[int, float, Counter[str]]] = deque()
        self._followed: Followed | None = None
        self._follow_due = 0.0

    def came(self, source: str, records: int, end: int) -> None:
        """Note that records are logged, the last with sequence `end - 1`; `""`: of no source."""
        now = self._metrics.monotonic()
        with self._lock:
            if source:
                self._metrics.sources[source].backlog += records
            if self._reads:
                _, arrived, counts = self._reads[-1]
                if now - arrived < _TOGETHER or len(self._reads) >= _MOST:
                    counts[source] += records
                    self._reads[-1] = (end, arrived, counts)
                    return
            self._reads.append((end, now, Counter({source: records})))

    def choose(self, runs: Sequence[LoggedRun]) -> int | None:
        """Return the first record of a batch that is planned, if it is time to follow one."""
        now = self._metrics.monotonic()
        if self._metrics.on_followed is None or now < self._follow_due:
            return None
        first = next((run for run in runs if run.kind in MESSAGES), None)
        if first is None:
            return None
        self._follow_due = now + _FOLLOW
        self._followed = Followed(first.source, first.first)
        return first.first

    def made(self, outputs: Mapping[SinkId, int]) -> None:
        """Note that sinks have been given so many outputs of a batch, which waits for them now."""
        now = self._metrics.monotonic()
        with self._metrics.lock:
            for sink, number in outputs.items():
                if number:
                    self._metrics.sinks[sink].oldest = now

    def delivered(self, report: Report, outputs: Mapping[SinkId, int], processed: int) -> None:
        """Note that a batch is delivered.

        Args:
            report: what workers reported about it.
            outputs: the number of outputs by sink.
            processed: the sequence after its last record.
        """
        for harvest in report.figures:
            self._metrics.add(harvest)
        for host, (records, seconds) in report.worked.items():
            self._metrics.worked(host, records, seconds)
        self._count(report.taken)
        now = self._metrics.monotonic()
        done = []
        with self._lock:
            while self._reads and self._reads[0][0] <= processed:
                done.append(self._reads.popleft())
                for source in done[-1][2]:
                    if source:
                        self._metrics.sources[source].backlog -= done[-1][2][source]
        followed = self._followed
        if followed is not None and followed.sequence < processed:
            self._followed = None
            arrived = next((read[1] for read in done if read[0] > followed.sequence), now)
            self._tell(followed, report.visits, arrived - now)
        with self._metrics.lock:
            for _, arrived, counts in done:
                took = int(1e9 * (now - arrived))
                for source, records in counts.items():
                    if source:
                        self._metrics.sources[source].latency.add(took, records)
                for sink, number in outputs.items():
                    if number:
                        self._metrics.sinks[sink].latency.add(took, counts.total())
                self._metrics.processed += counts.total()

    def _count(self, taken: Mapping[Address, int]) -> None:
        """Count the messages that shards got; one that is held by itself gets no visits else."""
        with self._metrics.lock:
            for address, messages in taken.items():
                group = self._groups[address.group]
                if group.fused:
                    continue
                for name in group.partitions:
                    self._metrics.partitions[name].spread.add(address.number, messages)
                for index in group.windows:
                    self._metrics.windows[index].keys.spread.add(address.number, messages)

    def _tell(self, followed: Followed, visits: Visits, arrived: float) -> None:
        """Report a followed record, because all its outputs have been delivered.

        Args:
            followed: the record.
            visits: what was called for it, in any order.
            arrived: when it arrived, in seconds from now.
        """
        now = time.time_ns()
        followed.arrived, followed.ended = now + int(1e9 * arrived), now
        followed.delivered = dict.fromkeys(self._metrics.sinks, now)
        # By node, because clocks of machines differ: a message comes after those it was made from.
        visits.kept.sort(key=lambda visit: (visit.node, visit.began))
        followed.visits = visits
        if self._metrics.on_followed is not None:
            self._metrics.on_followed(followed)

    def progressed(self, progress: Any, executors: list[dict[str, Any]]) -> None:
        """Note what Spark reports about the last micro-batch, and about its executors."""
        self._metrics.executors = executors
        durations = dict(progress["durationMs"]) if progress is not None else {}
        self._metrics.phases = {name: value / 1000 for name, value in sorted(durations.items())}

    def running(self) -> None:
        """Note that the query has begun."""
        self._metrics.state = "running"
