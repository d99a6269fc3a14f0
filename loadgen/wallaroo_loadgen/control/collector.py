"""Adds up what all nodes of a run report: exact counts, merged histograms, one timeline."""

from __future__ import annotations

from typing import Any

from hdrh.histogram import HdrHistogram

from wallaroo_loadgen.common.measure import Timeline, add, histogram
from wallaroo_loadgen.workloads.plan import Plan


class Collector:
    """The whole run so far.

    Counters in a report are totals of its node, histograms and timelines are what is new.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.latency = histogram()
        self.lateness = histogram()
        self.own = histogram()
        self.timeline = Timeline(plan.bin_ns, plan.bins)
        self.sent = [0] * len(plan.streams)
        self.closed: dict[str, str] = {}
        self.busy: dict[str, float] = {}
        self.priority: dict[str, str] = {}
        self.received: dict[str, Any] = {}
        self._held_back: dict[str, int] = {}

    def take(self, node: str, report: dict[str, Any]) -> None:
        """Add a `writes` or `outputs` report."""
        self.busy[node] = report["busy"]
        self.timeline.merge(report["timeline"])
        pairs: tuple[tuple[HdrHistogram, str | None], ...]
        if report["kind"] == "writes":
            for stream, count in report["sent"].items():
                self.sent[int(stream)] = count
            self._held_back[node] = report["held_back"]
            self.closed.update(report["closed"])
            pairs = ((self.lateness, report["lateness"]), (self.own, report["own"]))
        else:
            self.received = report
            pairs = ((self.latency, report["latency"]),)
        for hist, text in pairs:
            if text is not None:
                add(hist, text)

    @property
    def held_back(self) -> int:
        """Measured messages that were due while the target's back-pressure held their sender."""
        return sum(self._held_back.values())

    def counts(self) -> dict[str, int]:
        """Return every count of the run."""
        streams = self.plan.workload.streams
        expected = sum(
            stream.expected(count) for stream, count in zip(streams, self.sent, strict=True)
        )
        names = ("received", "distinct", "repeated", "reordered", "unmatched", "early", "held_up")
        counts = {name: int(self.received.get(name, 0)) for name in names}
        return {
            "scheduled": sum(schedule.total for schedule in self.plan.streams),
            "sent": sum(self.sent),
            "expected": expected,
            "missing": expected - counts["distinct"],
            "held_back": self.held_back,
            "sinks_closed": int(self.received.get("sinks_closed", 0)),
            **counts,
        }
