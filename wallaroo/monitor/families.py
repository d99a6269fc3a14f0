"""The figures of a run by name: what Prometheus reads, and what OpenTelemetry is sent.

Each name is a line of `families.csv`, with what it is a figure of, where its value is in that one's
part of the snapshot, and what it means. The dashboard and the alert rules in the documents use no
others. Keys are not labels: there may be any number of them. Labels are escaped: people read them
on terminals.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wallaroo.metrics.registry import Registry
from wallaroo.metrics.sketches import Histogram
from wallaroo.metrics.snapshot import snapshot
from wallaroo.text import escaped

if TYPE_CHECKING:
    from prometheus_client.core import Metric

SECOND = 1_000_000_000
"""Nanoseconds."""

EDGES = [digit * 10**power for power in range(3, 11) for digit in (1, 2, 5)]
"""Nanoseconds where the buckets of a histogram end: 1 µs to 50 s."""

_ABSENT = {"waiting_for": 0.0}  # values of figures that are `None`; others are left out
_PARTS = {  # where in a snapshot the things are, and their labels with the fields these are in
    "run": ("", {}),
    "source": ("sources", {"source": "name"}),
    "sink": ("sinks", {"sink": "name"}),
    "node": (
        "sources steps sinks",
        {"kind": "kind", "pipeline": "pipeline", "name": "name", "position": "position"},
    ),
    "partition": ("partitions", {"partition": "name"}),
    "executor": ("executors", {"executor": "executor", "host": "host"}),
    "host": ("hosts", {"host": "host"}),
}


class Family(NamedTuple):
    """The figures of one name.

    Args:
        name: of a counter without the end `_total`, which it gets where it is read.
        kind: ``info``, ``gauge``, ``counter`` or ``histogram``.
        of: what they are figures of: the run, each source, …
        value: where the value is in the snapshot's part about it, as ``windows.open``.
        further: the label of the values' names, where there are several.
        meaning: for people.
    """

    name: str
    kind: str
    of: str
    value: str
    further: str
    meaning: str

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of all its labels."""
        if self.kind == "info":
            return ("application", "engine")
        return (*_PARTS[self.of][1], *([self.further] if self.further else []))


def _read() -> dict[str, Family]:
    with Path(__file__).with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        return {line["name"]: Family(**line) for line in csv.DictReader(file)}


NAMES: Mapping[str, Family] = _read()
"""The families by their names."""


def values(registry: Registry) -> dict[str, list[tuple[list[str], Any]]]:
    """Return for each name its values: the labels of each, and a number or a `Histogram`.

    Histograms are in nanoseconds.
    """
    figures = snapshot(registry)
    found: dict[str, list[tuple[list[str], Any]]] = {name: [] for name in NAMES}
    for family in NAMES.values():
        where, labels = _PARTS[family.of]
        things = [one for part in where.split() for one in figures[part]] if where else [figures]
        for thing in things:
            named = [thing[field] for field in labels.values()]
            several: list[tuple[list[Any], Any]]
            if family.kind == "info":
                several = [([thing[label] for label in family.labels], 1)]
            elif family.kind == "histogram":
                several = [(named, _histogram(registry, thing, family.value))]
            elif family.further:
                by_name = _value(thing, family.value) or {}
                several = [([*named, name], value) for name, value in by_name.items()]
            else:
                several = [(named, _value(thing, family.value))]
            found[family.name] += [
                ([escaped(str(label)) for label in given], value)
                for given, value in several
                if value is not None
            ]
    return found


def _value(thing: Any, path: str) -> Any:
    for field in path.split("."):
        if isinstance(thing, list):
            thing = thing[0] if thing else None
        if thing is None:
            return None
        thing = thing.get(field)
    if isinstance(thing, bool):
        return int(thing)
    return _ABSENT.get(path) if thing is None else thing


def _histogram(registry: Registry, thing: Any, name: str) -> Histogram | None:
    """Return the durations of a source, a sink or a node; `None`: it has none."""
    with registry.lock:
        if name == "time":
            time = registry.nodes[thing["node"]].time
            return time.copy() if time.count else None
        if thing["kind"] == "source":
            return registry.sources[thing["name"]].latency.whole()
        return registry.sinks[thing["pipeline"], thing["index"]].latency.whole()


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
