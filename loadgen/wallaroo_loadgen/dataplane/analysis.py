"""From outputs and the times they came to latencies and exact counts.

Counts of loss, repetition and order are exact, in bounded memory (`ReceivedNumbers`).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from wallaroo_loadgen.common.measure import Tally, record
from wallaroo_loadgen.common.schedule import Int64s
from wallaroo_loadgen.workloads.plan import Plan
from wallaroo_loadgen.workloads.protocol import IGNORED

_AT_ONCE = 100_000  # outputs; bounds the memory of one batch's arrays
_QUIET_SECONDS = 0.5  # after the last expected output: repetitions may come a little later
_SMALLEST = 4096  # flags of received outputs


class Analysis:
    """Counts batches of outputs, reports what is new, and says when all have come.

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
        self._tally = Tally(plan.bin_ns, plan.bins)
        self._unmatched = 0
        self._ignored = 0
        self._early = 0
        self._example: str | None = None
        self._expected: int | None = None
        self._last_output = time.monotonic()
        self.finished = False

    def receive(self, batch: Sequence[tuple[int, list[bytes]]]) -> None:
        """Add outputs with the monotonic time (ns) at which they were read."""
        outputs: list[bytes] = []
        times: list[int] = []
        counts: list[int] = []
        for at, some in batch:
            outputs += some
            times.append(at - self._start)
            counts.append(len(some))
        if outputs:
            self._last_output = time.monotonic()
            received_at = np.repeat(np.array(times, dtype=np.int64), counts)
            for first in range(0, len(outputs), _AT_ONCE):
                stop = first + _AT_ONCE
                self._match(outputs[first:stop], received_at[first:stop])
        if self._expected is not None:
            idle = time.monotonic() - self._last_output
            drain = self._plan.config.drain
            self.finished = idle > (min(_QUIET_SECONDS, drain) if self.complete else drain)

    def _match(self, outputs: list[bytes], received_at: Int64s) -> None:
        streams, numbers = self._plan.workload.match(outputs)
        matched = np.zeros(len(outputs), dtype=np.bool_)
        for stream in np.unique(streams[streams >= 0]).tolist():
            if stream >= len(self._seen):
                continue  # a mistake in the workload; the output counts as unmatched
            # A number above the last output's cannot come from this run.
            here = (streams == stream) & (numbers >= 0) & (numbers < self._most[stream])
            matched |= here
            self._record(stream, numbers[here], received_at[here])
        ignored = int(np.count_nonzero(streams == IGNORED))
        self._ignored += ignored
        unmatched = len(outputs) - int(np.count_nonzero(matched)) - ignored
        if unmatched:
            self._unmatched += unmatched
            if self._example is None:
                index = int(np.flatnonzero(~matched & (streams != IGNORED))[0])
                self._example = repr(outputs[index][:80])

    def _record(self, stream: int, numbers: Int64s, received_at: Int64s) -> None:
        schedule = self._plan.streams[stream]
        new = self._seen[stream].add(numbers)
        messages = self._plan.workload.streams[stream].cause(numbers[new])
        due = schedule.intended(messages)
        latency = received_at[new] - due
        self._early += int(np.count_nonzero(latency < 0))
        measured = (due >= schedule.measured_from) & (due < schedule.measured_to)
        micros = (np.maximum(latency, 0)[measured] + 500) // 1000
        record(self._tally.histograms["latency"], micros)
        self._tally.timeline.spread("latency", due[measured], micros)
        self._tally.timeline.count("received", received_at[new])

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
        """Return totals, and what is new in histogram and timeline since the last report."""
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
            "tally": self._tally.flush(),
        }


class ReceivedNumbers:
    """Which outputs of a stream have come: flags that follow them; all before the first have come.

    Args:
        limit: the most outputs between the earliest missing and the latest that came; when there
            are more, the earliest count as lost for good (and as repeated, should they come).
    """

    def __init__(self, limit: int = 1 << 22) -> None:
        self.distinct = 0
        self.repeated = 0
        self.reordered = 0
        self._limit = limit
        self._base = 0
        self._highest = -1
        self._flags = np.zeros(min(_SMALLEST, limit), dtype=np.bool_)

    def add(self, numbers: Int64s) -> Int64s:
        """Add the next outputs' numbers; return the places in `numbers` of those new."""
        if not len(numbers):
            return numbers
        before = np.maximum.accumulate(np.concatenate([[self._highest], numbers]))
        self.reordered += int(np.count_nonzero(numbers < before[:-1]))
        self._highest = int(before[-1])
        self._reach(self._highest)
        _, places = np.unique(numbers, return_index=True)
        places = np.sort(places)
        places = places[numbers[places] >= self._base]
        fresh: Int64s = places[~self._flags[numbers[places] - self._base]]
        self._flags[numbers[fresh] - self._base] = True
        self.distinct += len(fresh)
        self.repeated += len(numbers) - len(fresh)
        return fresh

    def _reach(self, number: int) -> None:
        """Let there be a flag for `number`."""
        if number - self._base < len(self._flags):
            return
        full = np.flatnonzero(~self._flags)
        self._move(int(full[0]) if len(full) else len(self._flags))
        needed = number - self._base + 1
        if needed > self._limit:
            self._move(needed - self._limit)
            needed = self._limit
        if needed > len(self._flags):
            size = min(self._limit, 1 << (needed - 1).bit_length())
            flags = np.zeros(size, dtype=np.bool_)
            flags[: len(self._flags)] = self._flags
            self._flags = flags

    def _move(self, by: int) -> None:
        """Let the flags start `by` later."""
        kept = self._flags[by:].copy()
        self._flags[:] = False
        self._flags[: len(kept)] = kept
        self._base += by
