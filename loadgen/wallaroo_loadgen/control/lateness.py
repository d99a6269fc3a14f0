"""From a sender's record of its writes to lateness, away from the sender's clock."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from wallaroo_loadgen.common.measure import Timeline, encode, histogram, record
from wallaroo_loadgen.common.schedule import Int64s
from wallaroo_loadgen.workloads.plan import Plan


class SenderLateness:
    """Turns one sender process's reports into counts and histograms for the collector.

    Lateness is the time from a message's intended time until the kernel had taken its last byte.
    The sender's *own* lateness leaves out the time in which the target's back-pressure held it up:
    it counts from the intended time, or from when the socket took bytes again, if that was later.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._sent: dict[int, int] = {}
        self._held_back = 0
        self._lateness = histogram()
        self._own = histogram()
        self._timeline = Timeline(plan.bin_ns, plan.bins)

    def take(self, report: dict[str, Any]) -> dict[str, Any]:
        """Return a `writes` report with the lateness computed from the writes."""
        for stream, text in report["streams"].items():
            writes = np.frombuffer(base64.b64decode(text), dtype=np.int64).reshape(-1, 3)
            self._take(int(stream), writes)
        taken = {
            "kind": "writes",
            "sent": {str(stream): count for stream, count in self._sent.items()},
            "held_back": self._held_back,
            "lateness": encode(self._lateness) if self._lateness.get_total_count() else None,
            "own": encode(self._own) if self._own.get_total_count() else None,
            "timeline": self._timeline.take(),
            "closed": report["closed"],
            "busy": report["busy"],
        }
        self._lateness.reset()
        self._own.reset()
        return taken

    def _take(self, number: int, writes: Int64s) -> None:
        first = self._sent.get(number, 0)
        counts, free, done = writes[:, 0], writes[:, 1], writes[:, 2]
        through = first + np.cumsum(counts)
        self._sent[number] = last = int(through[-1]) if len(writes) else first
        if last == first:
            return
        schedule = self._plan.streams[number]
        due = schedule.intended(np.arange(first, last))
        since = np.repeat(free, counts)
        until = np.repeat(done, counts)
        measured = (due >= schedule.measured_from) & (due < schedule.measured_to)
        lateness = (until - due)[measured] // 1000
        record(self._lateness, lateness)
        record(self._own, (until - np.maximum(due, since))[measured] // 1000)
        self._held_back += int(np.count_nonzero((since > due)[measured]))
        self._timeline.spread("lateness", due[measured], lateness)
        self._timeline.count("sent", done, counts)
        self._count_expected(number, first, through, done)

    def _count_expected(self, number: int, first: int, through: Int64s, done: Int64s) -> None:
        """Count expected outputs, once for each column of time that the writes fall into."""
        stream = self._plan.workload.streams[number]
        columns = self._timeline.column(done)
        last_of_column = np.flatnonzero(np.append(np.diff(columns) != 0, True))
        before = stream.expected(first)
        for index in last_of_column.tolist():
            now = stream.expected(int(through[index]))
            self._timeline.count("owed", done[index : index + 1], np.array([now - before]))
            before = now
