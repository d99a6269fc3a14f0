"""The figures of a run in Prometheus' text formats, by prometheus_client."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from wallaroo.metrics.registry import Registry
from wallaroo.monitor.families import EDGES, NAMES, SECOND, values

if TYPE_CHECKING:
    from prometheus_client.core import Metric

NEEDS = "this needs prometheus_client, not installed; try: pip install 'wallaroo-streams[metrics]'"


def exposition(registry: Registry, accept: str) -> tuple[bytes, str]:
    """Return the figures as text, and its content type, as the `Accept` header asks for them.

    Raises:
        ModuleNotFoundError: prometheus_client is not installed.
    """
    from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
    from prometheus_client.exposition import choose_encoder
    from prometheus_client.registry import Collector

    class Figures(Collector):
        def collect(self) -> Iterator[Metric]:
            return _metrics(registry)

    collectors = CollectorRegistry(auto_describe=False)
    collectors.register(Figures())
    ProcessCollector(registry=collectors)
    GCCollector(registry=collectors)
    encode, content_type = choose_encoder(accept)
    return encode(collectors), content_type


def _metrics(registry: Registry) -> Iterator[Metric]:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        InfoMetricFamily,
    )

    by_name = values(registry)
    for name, family in NAMES.items():
        kind, labels, text = family.kind, family.labels, family.meaning
        found = by_name[name]
        if kind == "info":
            info = InfoMetricFamily(name, text)
            info.add_metric([], dict(zip(labels, found[0][0], strict=True)))
            yield info
        elif kind == "histogram":
            histogram = HistogramMetricFamily(name, text, labels=labels)
            for given, value in found:
                counts = zip(EDGES, value.at_most(EDGES), strict=True)
                named = [(f"{edge / SECOND:g}", count) for edge, count in counts]
                histogram.add_metric(given, [*named, ("+Inf", value.count)], value.total / SECOND)
            yield histogram
        else:
            make: Any = CounterMetricFamily if kind == "counter" else GaugeMetricFamily
            metric = make(name, text, labels=labels)
            for given, value in found:
                metric.add_metric(given, value)
            yield metric
