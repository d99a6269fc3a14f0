"""From outputs and the times they came to latencies and exact counts."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from wallaroo_loadgen.common.measure import Timeline, encode, histogram, record
from wallaroo_loadgen.common.schedule import Int64s
from wallaroo_loadgen.dataplane.received import ReceivedNumbers
from wallaroo_loadgen.workloads.plan import Plan
from wallaroo_loadgen.workloads.protocol import IGNORED

_AT_ONCE = 100_000  # outputs; bounds the memory of one batch's arrays
_QUIET_SECONDS = 0.5  # after the last expected output: repetitions may come a little later


class Analysis:
    """Takes batches of outputs, reports what is new, and says when all have come.

    Args:
        plan: the run's.
        start: its start, monotonic ns.
    """

    def __init__(self, plan: Plan, start: int) -> None:
        self._plan = plan
        self._start = start
        self._seen = [ReceivedNumbers() for _ in plan.streams]
        self._most = [
            stream.expected(schedule.total)
            for stream, schedule in zip(plan.workload.streams, plan.streams, strict=True)
        ]
        self._latency = histogram()
        self._timeline = Timeline(plan.bin_ns, plan.bins)
        self._unmatched = 0
        self._ignored = 0
        self._early = 0
        self._example: str | None = None
        self._expected: int | None = None
        self._last_output = time.monotonic()
        self.finished = False

    def take(self, batch: Sequence[tuple[int, list[bytes]]]) -> None:
        """Take outputs with the monotonic time (ns) at which they were read."""
        outputs: list[bytes] = []
        times: list[int] = []
        counts: list[int] = []
        for at, some in batch:
            outputs += some
            times.append(at - self._start)
            counts.append(len(some))
        if outputs:
            self._last_output = time.monotonic()
            came = np.repeat(np.array(times, dtype=np.int64), counts)
            for first in range(0, len(outputs), _AT_ONCE):
                stop = first + _AT_ONCE
                self._match(outputs[first:stop], came[first:stop])
        if self._expected is not None:
            idle = time.monotonic() - self._last_output
            drain = self._plan.config.drain
            self.finished = idle > (min(_QUIET_SECONDS, drain) if self.complete else drain)

    def _match(self, outputs: list[bytes], came: Int64s) -> None:
        streams, numbers = self._plan.workload.match(outputs)
        matched = np.zeros(len(outputs), dtype=np.bool_)
        for stream in np.unique(streams[streams >= 0]).tolist():
            if stream >= len(self._seen):
                continue  # a mistake in the workload; the output counts as unmatched
            # A number above the last output's cannot come from this run.
            here = (streams == stream) & (numbers >= 0) & (numbers < self._most[stream])
            matched |= here
            self._record(stream, numbers[here], came[here])
        ignored = int(np.count_nonzero(streams == IGNORED))
        self._ignored += ignored
        unmatched = len(outputs) - int(np.count_nonzero(matched)) - ignored
        if unmatched:
            self._unmatched += unmatched
            if self._example is None:
                index = int(np.flatnonzero(~matched & (streams != IGNORED))[0])
                self._example = repr(outputs[index][:80])

    def _record(self, stream: int, numbers: Int64s, came: Int64s) -> None:
        schedule = self._plan.streams[stream]
        new = self._seen[stream].add(numbers)
        messages = self._plan.workload.streams[stream].cause(numbers[new])
        due = schedule.intended(messages)
        latency = came[new] - due
        self._early += int(np.count_nonzero(latency < 0))
        measured = (due >= schedule.measured_from) & (due < schedule.measured_to)
        micros = (np.maximum(latency, 0)[measured] + 500) // 1000
        record(self._latency, micros)
        self._timeline.spread("latency", due[measured], micros)
        self._timeline.count("received", came[new])

    def drain(self, sent: dict[int, int]) -> None:
        """Set how many messages of each stream were sent, and so how many outputs may come."""
        streams = self._plan.workload.streams
        self._expected = sum(
            streams[stream].expected(messages) for stream, messages in sent.items()
        )
        self._last_output = time.monotonic()

    @property
    def complete(self) -> bool:
        """Whether every output has come, now that it is known how many there are."""
        return self._expected is not None and self._distinct >= self._expected

    @property
    def _distinct(self) -> int:
        return sum(seen.distinct for seen in self._seen)

    def report(self) -> dict[str, Any]:
        """Return totals, and the new values of histogram and timeline since the last report."""
        latency = encode(self._latency) if self._latency.get_total_count() else None
        self._latency.reset()
        distinct = self._distinct
        repeated = sum(seen.repeated for seen in self._seen)
        return {
            "received": distinct + repeated + self._unmatched,
            "distinct": distinct,
            "repeated": repeated,
            "reordered": sum(seen.reordered for seen in self._seen),
            "unmatched": self._unmatched,
            "example": self._example,
            "ignored": self._ignored,
            "early": self._early,
            "latency": latency,
            "timeline": self._timeline.take(),
        }
