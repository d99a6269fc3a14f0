"""The result of a run: plain data with a JSON form, and the metrics of it that have bounds."""

from __future__ import annotations

import functools
import os
import platform
import re
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram

from wallaroo_loadgen.common.measure import Timeline, decode, encode, summary
from wallaroo_loadgen.common.schedule import NS, Floats
from wallaroo_loadgen.control.conductor import Collector, Conductor

FORMAT = "wallaroo-load/1"

METRIC = r"p\d+(?:\.\d+)?|max|mean"
"""A regular expression for the names of metrics."""

_NAME = re.compile(METRIC)


@dataclass
class Result:
    """One run.

    Attributes:
        label: its name in reports.
        config: as `RunConfig.to_json`.
        started: ISO time, or None when it never started.
        counts: exact, as `Collector.counts`.
        latency, lateness, own_lateness: summaries in µs, as `measure.summary`.
        histograms: the same three whole, as HdrHistogram encodes them.
        timeline: as `Timeline.to_json`.
        rates: messages and outputs a second in the measured part: `offered`, `sent`, `received`.
        busy: part of a processor that each of our own processes used.
        priority: the priority that each of them was given: `real time`, `raised` or `as others`.
        example: an output that matched nothing.
        closed: for each connection that the target closed or reset, which of the two.
        ended: the target's last words, if we had started it and it ended by itself.
        failure: why there was no run, or only a part of one.
        partial: interrupted.
        stolen: the part of the machine's processor time that its hypervisor gave to others.
        slos, invalid, notes: the verdicts.
        counted: what counts as answered, as the workload says; empty: as its name says.
        own: the application's own figures, as `OwnFigures.end` returns them; `None`: not asked for.
    """

    label: str
    config: dict[str, Any]
    started: str | None
    counts: dict[str, int]
    latency: dict[str, Any]
    lateness: dict[str, Any]
    own_lateness: dict[str, Any]
    histograms: dict[str, str]
    timeline: dict[str, Any]
    rates: dict[str, float]
    busy: dict[str, float]
    priority: dict[str, str] = field(default_factory=dict)
    example: str | None = None
    closed: dict[str, str] = field(default_factory=dict)
    ended: str | None = None
    failure: str | None = None
    partial: bool = False
    stolen: float = 0.0
    slos: list[dict[str, Any]] = field(default_factory=list)
    invalid: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)
    own: dict[str, Any] | None = None
    counted: str = ""

    @classmethod
    def of(
        cls, conductor: Conductor, failure: str | None = None, ended: str | None = None
    ) -> Result:
        """Return the result of a run so far, without verdicts."""
        collector = conductor.collector
        config, tally = collector.plan.config, collector.tally
        started = None
        if conductor.started_ns is not None:
            moment = datetime.fromtimestamp(conductor.started_ns / NS, UTC)
            started = moment.isoformat(timespec="seconds")
        return cls(
            label=f"{config.workload} at {config.rate:,.0f}/s",
            config=config.to_json(),
            started=started,
            counts=collector.counts(),
            latency=summary(tally.histograms["latency"]),
            lateness=summary(tally.histograms["lateness"]),
            own_lateness=summary(tally.histograms["own_lateness"]),
            histograms={name: encode(hist) for name, hist in tally.histograms.items()},
            timeline=tally.timeline.to_json(),
            rates=_rates(collector),
            busy=dict(collector.busy),
            priority=dict(collector.priority),
            example=collector.received.get("example"),
            closed=dict(collector.closed),
            ended=ended,
            failure=failure,
            partial=conductor.stopped,
            stolen=conductor.stolen(),
            machine=machine(),
            counted=getattr(collector.plan.workload, "counted", ""),
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {"format": FORMAT, **asdict(self)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Result:
        """Return the result that `to_json` gave.

        Raises:
            ValueError: when it is something else.
        """
        if data.get("format") != FORMAT:
            raise ValueError(f"not a run's JSON (its format is {data.get('format')!r})")
        names = [own.name for own in fields(cls)]  # other versions have others too
        return cls(**{name: data[name] for name in names if name in data})

    def histogram(self, name: str) -> HdrHistogram:
        """Return one of `histograms`."""
        return decode(self.histograms[name])

    def backlog(self) -> Floats:
        """Return, at the end of each column of time, the outputs expected and not yet received."""
        timeline = Timeline.from_json(self.timeline)
        backlog: Floats = np.cumsum(timeline.series["owed"] - timeline.series["received"]).astype(
            np.float64
        )
        return backlog

    def backlog_growth(self) -> float:
        """Return how fast the backlog grew while measuring, as a part of the rate of outputs.

        The mean of the measured part's last third less that of its first third, so that the
        sawtooth of an engine that works in batches evens out.
        """
        first = self.config["warmup"] * NS / self.timeline["bin_ns"]
        last = first + self.config["duration"] * NS / self.timeline["bin_ns"]
        backlog = self.backlog()[round(first) : round(last)]
        third = len(backlog) // 3
        if third == 0 or not self.rates["owed"]:
            return 0.0
        seconds = (len(backlog) - third) * float(self.timeline["bin_ns"]) / NS
        growth = float(backlog[-third:].mean() - backlog[:third].mean()) / seconds
        return growth / float(self.rates["owed"])


@dataclass(frozen=True)
class Metric:
    """Latency at a percentile, at its maximum, or its mean.

    Attributes:
        name: `max`, `mean` or `pN`, where N is above 0 and at most 100.
        percentile: N; `None` for the other two.
    """

    name: str
    percentile: float | None

    @classmethod
    def parse(cls, text: str) -> Metric:
        """Read one, such as `p99.9`.

        Raises:
            ValueError: with what is expected.
        """
        match = _NAME.fullmatch(text)
        percentile = float(text[1:]) if match and text.startswith("p") else None
        if match is None or (percentile is not None and not 0 < percentile <= 100):
            raise ValueError(
                f"a metric is a percentile such as p99.9, or max or mean, not {text!r}"
            )
        return cls(text if percentile is None else f"p{percentile:.10g}", percentile)

    def of(self, result: Result) -> float | None:
        """Return its value in a run, in µs; `None` where nothing was measured."""
        if not result.latency["count"]:
            return None
        if self.percentile is None or self.name in result.latency:
            return float(result.latency[self.name])
        return float(result.histogram("latency").get_value_at_percentile(self.percentile))


def _rates(collector: Collector) -> dict[str, float]:
    """Return rates over the measured part: scheduled, sent, expected and received a second."""
    plan, timeline = collector.plan, collector.tally.timeline
    first = round(plan.config.warmup * NS) // timeline.bin_ns
    last = round((plan.config.warmup + plan.config.duration) * NS) // timeline.bin_ns
    seconds = (last - first) * timeline.bin_ns / NS
    rates = {"offered": plan.schedule.offered}
    for name in Timeline.SERIES:
        rates[name] = float(timeline.series[name][first:last].sum() / seconds) if seconds else 0.0
    return rates


def machine() -> dict[str, Any]:
    """Return the facts about machine and software that a reader needs to judge figures."""
    facts: dict[str, Any] = {
        "host": socket.gethostname(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "processor": _processor(),
        "processors": os.cpu_count(),
        "load_average": [round(value, 2) for value in os.getloadavg()],
        "python": platform.python_version(),
    }
    return facts | _versions()


@functools.cache
def _versions() -> dict[str, str]:
    versions = {}
    for package in ("wallaroo-streams", "locust", "numpy", "hdrhistogram"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:  # a copy of the sources on the path
            versions[package] = "not installed"
    return versions


@functools.cache
def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else "unknown"
