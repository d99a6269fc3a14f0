"""True figures in the tables and charts of Locust's page: from our histograms, to the µs.

Locust keeps response times in a dictionary from rounded milliseconds to counts, and works out all
its percentiles from it. The keys need not be whole numbers: here they are the histogram's values in
ms, exact to three digits, so every table and chart shows the measured values. In a terminal
Locust's own rows round to ms; the report of the run below them does not.
"""

from __future__ import annotations

import time
from typing import Any

from hdrh.histogram import HdrHistogram
from locust import stats

from wallaroo_loadgen.common.measure import recorded
from wallaroo_loadgen.common.schedule import NS
from wallaroo_loadgen.control.conductor import Conductor
from wallaroo_loadgen.control.result import Result

SHOWN = (0.5, 0.99, 0.999)


class ExactEntry(stats.StatsEntry):
    """A row of Locust's statistics that does not round to milliseconds."""

    def to_dict(self, escape_string_values: bool = False) -> dict[str, Any]:
        """Return the row for the web UI."""
        row: dict[str, Any] = super().to_dict(escape_string_values)
        row["min_response_time"] = round(self.min_response_time or 0, 3)
        row["max_response_time"] = round(self.max_response_time, 3)
        row["avg_response_time"] = round(self.avg_response_time, 3)
        return row

    response_times: Any
    min_response_time: Any
    max_response_time: Any
    total_response_time: Any

    def get_response_time_percentile(self, percent: float) -> Any:
        """Return a percentile as HdrHistogram does, so that all figures agree."""
        rank = max(1, int(self.num_requests * percent + 0.5))
        for value in sorted(self.response_times):
            rank -= self.response_times[value]
            if rank <= 0:
                return value
        return 0.0


def use_true_percentiles() -> None:
    """Let Locust show the percentiles that matter."""
    stats.PERCENTILES_TO_CHART = list(SHOWN)
    stats.PERCENTILES_TO_STATISTICS = list(SHOWN)  # the page rounds its own median to 10 µs


def fill(target: stats.RequestStats, conductor: Conductor, result: Result | None) -> None:
    """Put a run's figures in the place of Locust's: outputs, and the senders' lateness below.

    Args:
        target: Locust's statistics.
        conductor: the run's.
        result: with the verdicts, once it is over; they show as failures.
    """
    if conductor.started_ns is None:
        return
    collector, config = conductor.collector, conductor.plan.config
    name = config.workload.rpartition("/")[2]
    start = conductor.started_ns / NS + config.warmup
    end = min(time.time(), start + config.duration)
    latency = _row(target, (name, "latency"))
    lateness = _row(target, ("sender", "lateness"))
    if not isinstance(target.total, ExactEntry):
        target.total = ExactEntry(target, "Aggregated", "", use_response_times_cache=True)
    for entry in (latency, target.total):
        _set(entry, collector.tally.histograms["latency"], start, end)
        _set_rate(entry, int(collector.received.get("distinct", 0)))
    _set(lateness, collector.tally.histograms["lateness"], start, end)
    _set_rate(lateness, sum(collector.sent))
    if result is not None:
        _set_failures(target, result, (latency, target.total))


def _row(target: stats.RequestStats, key: tuple[str, str]) -> ExactEntry:
    entry = target.entries.get(key)
    if not isinstance(entry, ExactEntry):
        entry = ExactEntry(target, *key, use_response_times_cache=True)
        target.entries[key] = entry
    return entry


def _set(entry: ExactEntry, hist: HdrHistogram, start: float, end: float) -> None:
    _, values, counts = recorded(hist)
    times = (values / 1000).tolist()
    entry.response_times = dict(zip(times, counts.tolist(), strict=True))
    entry.num_requests = int(counts.sum())
    entry.total_response_time = float((values * counts).sum()) / 1000
    entry.min_response_time = times[0] if times else None
    entry.max_response_time = times[-1] if times else 0
    entry.start_time = start
    entry.last_request_timestamp = max(start, end)


def _set_rate(entry: ExactEntry, total: int) -> None:
    """Note how many came since the last time, and keep the values that the charts show."""
    now = int(time.time())
    before = sum(entry.num_reqs_per_sec.values())
    entry.num_reqs_per_sec[now] += max(0, total - before)
    if now not in (entry.response_times_cache or ()):
        entry._cache_response_times(now)


def _set_failures(
    target: stats.RequestStats, result: Result, entries: tuple[ExactEntry, ...]
) -> None:
    counts = result.counts
    for entry in entries:
        entry.num_failures = counts["missing"] + counts["repeated"] + counts["unmatched"]
    for reason in result.invalid:
        error = stats.StatsError("run", "invalid", reason)
        error.occurred()
        target.errors[stats.StatsError.create_key("run", "invalid", reason)] = error
