"""The figures of a run as data of the OpenTelemetry SDK."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from wallaroo.metrics.histogram import Histogram as Durations
from wallaroo.metrics.registry import Registry
from wallaroo.monitor.families import EDGES, NAMES, SECOND, values

_UNITS = {"seconds": "s", "bytes": "By"}
_OF_THE_PROCESS = {  # names of OpenTelemetry's own conventions
    "cpu_seconds": ("process.cpu.time", "s", True, "Processor time."),
    "memory_bytes": ("process.memory.usage", "By", False, "Memory in use."),
    "threads": ("process.thread.count", "{thread}", False, "Threads."),
    "gc_runs": ("cpython.gc.collections", "{collection}", True, "Garbage collections."),
}

_SINCE_THE_START = AggregationTemporality.CUMULATIVE


def metrics_data(registry: Registry, process: dict[str, Any], resource: Resource) -> MetricsData:
    """Return the figures as of now.

    Args:
        registry: the run's.
        process: what `ProcessWatch` says.
        resource: the SDK's description of the process that they are about.
    """
    began, now = int(registry.began * SECOND), time.time_ns()
    by_name = values(registry)
    metrics = []
    for name, family in NAMES.items():
        points = [
            _point(dict(zip(family.labels, given, strict=True)), value, began, now)
            for given, value in by_name[name]
        ]
        if points:
            unit = _UNITS.get(name.rpartition("_")[2], "1")
            metrics.append(Metric(name, family.meaning, unit, _data(family.kind, points)))
    for key, (name, unit, grows, text) in _OF_THE_PROCESS.items():
        point = NumberDataPoint({}, began, now, process[key])
        kind = "counter" if grows else "gauge"
        metrics.append(Metric(name, text, unit, _data(kind, [point])))
    scope = InstrumentationScope("wallaroo")
    return MetricsData([ResourceMetrics(resource, [ScopeMetrics(scope, metrics, "")], "")])


def _data(kind: str, points: list[Any]) -> Sum | Gauge | Histogram:
    if kind == "histogram":
        return Histogram(points, _SINCE_THE_START)
    if kind == "counter":
        return Sum(points, _SINCE_THE_START, is_monotonic=True)
    return Gauge(points)


def _point(
    labels: dict[str, str], value: Any, began: int, now: int
) -> NumberDataPoint | HistogramDataPoint:
    if not isinstance(value, Durations):
        return NumberDataPoint(labels, began, now, value)
    # Estimates are not whole numbers, but whole numbers are asked for, and they must add up.
    below = [0, *map(round, value.at_most(EDGES)), round(value.count)]
    counts = [more - less for less, more in pairwise(below)]
    return HistogramDataPoint(
        labels,
        began,
        now,
        count=below[-1],
        sum=value.total / SECOND,
        bucket_counts=counts,
        explicit_bounds=[edge / SECOND for edge in EDGES],
        min=0.0 if not value.count else value.quantiles((0.0,))[0] / SECOND,  # type: ignore[operator]  # there are values
        max=value.greatest / SECOND,
    )
