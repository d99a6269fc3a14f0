"""Histograms in batches, and the same over time, in memory that does not depend on the duration."""

from __future__ import annotations

from typing import Any

import numpy as np
from hdrh.histogram import HdrHistogram

from wallaroo_loadgen.common.schedule import Floats, Int64s

HIGHEST = 3_600_000_000  # µs: an hour; a longer time counts as an hour
_DIGITS = 3
_EXACT_BITS = 11  # 3 digits: 2,048 different values from one power of two to the next

BUCKETS = 192
"""Latency classes of a plot over time: 20 to a power of ten, from 1 µs to an hour."""

HISTOGRAMS = ("latency", "lateness", "own_lateness")

PERCENTILES = (50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99)


def histogram() -> HdrHistogram:
    """Return an empty histogram of microseconds, exact to three digits."""
    return HdrHistogram(1, HIGHEST, _DIGITS)


def record(hist: HdrHistogram, micros: Int64s) -> None:
    """Add many values at once, in µs.

    Values the histogram cannot tell apart are first made equal, so that a batch costs as many
    calls as it has different ones: some thousand at most, however many messages it has.
    """
    if not len(micros):
        return
    values = np.clip(micros, 0, HIGHEST)
    shift = np.maximum(np.frexp(values.astype(np.float64))[1] - _EXACT_BITS, 0)
    distinct, counts = np.unique((values >> shift) << shift, return_counts=True)
    for value, count in zip(distinct.tolist(), counts.tolist(), strict=True):
        hist.record_value(value, count)


def encode(hist: HdrHistogram) -> str:
    """Return a histogram in HdrHistogram's own compressed text form."""
    text: str = hist.encode().decode("ascii")
    return text


def decode(text: str) -> HdrHistogram:
    """Return the histogram that `encode` gave."""
    return HdrHistogram.decode(text.encode("ascii"))


def recorded(hist: HdrHistogram) -> tuple[Int64s, Int64s, Int64s]:
    """Return for each class of a histogram its least and greatest value, and its count.

    It reads arrays: this takes a few milliseconds, the histogram's own iterators take a second.
    """
    counts = np.ctypeslib.as_array(hist.counts).astype(np.int64)
    used = np.flatnonzero(counts)
    low = np.array([hist.get_value_from_index(index) for index in used.tolist()], dtype=np.int64)
    return low, low + _width(low) - 1, counts[used]


def _width(values: Int64s) -> Int64s:
    """Return how many values a class holds, for the least of each."""
    widths: Int64s = np.left_shift(
        1, np.maximum(np.frexp(values.astype(np.float64))[1] - _EXACT_BITS, 0)
    )
    return widths


def summary(hist: HdrHistogram) -> dict[str, Any]:
    """Return count, mean, extremes and `PERCENTILES`, in µs; `None` where nothing was recorded."""
    count = int(hist.get_total_count())
    names = [f"p{percentile:g}" for percentile in PERCENTILES]
    if not count:
        return {"count": 0, **dict.fromkeys([*names, "mean", "min", "max"])}
    low, high, counts = recorded(hist)
    ranks = [hist.get_target_count_at_percentile(percentile) for percentile in PERCENTILES]
    reached = high[np.searchsorted(np.cumsum(counts), ranks)]
    middles = low + (high - low + 1) // 2
    return {
        "count": count,
        **dict(zip(names, reached.tolist(), strict=True)),
        "mean": float((middles * counts).sum() / count),
        "min": int(hist.get_min_value()),
        "max": int(hist.get_max_value()),
    }


def bucket(micros: Int64s) -> Int64s:
    """Return the class of each value for a plot over time."""
    logs = np.log10(np.maximum(micros, 1))
    return np.minimum((logs * 20).astype(np.int64), BUCKETS - 1)


def bucket_edges() -> Floats:
    """Return the lower edges of the classes, in µs."""
    edges: Floats = 10 ** (np.arange(BUCKETS) / 20)
    return edges


class Timeline:
    """Counts per column of time, and per column and latency class.

    Columns of latency and lateness are by intended time, all others by the time of the event;
    events after the last column count in it.
    """

    SERIES = ("sent", "owed", "received")
    MAPS = ("latency", "lateness")

    def __init__(self, bin_ns: int, bins: int) -> None:
        self.bin_ns = bin_ns
        self.bins = bins
        self.series = {name: np.zeros(bins, dtype=np.int64) for name in self.SERIES}
        self.maps = {name: np.zeros((bins, BUCKETS), dtype=np.int64) for name in self.MAPS}

    def column(self, times: Int64s) -> Int64s:
        """Return the columns of these times (ns from the run's start)."""
        return np.clip(times // self.bin_ns, 0, self.bins - 1)

    def count(self, name: str, times: Int64s, weights: Int64s | None = None) -> None:
        """Add 1, or `weights`, to a series at these times."""
        np.add.at(self.series[name], self.column(times), 1 if weights is None else weights)

    def spread(self, name: str, times: Int64s, micros: Int64s) -> None:
        """Add one value in µs at each of these times to a map."""
        cells = self.column(times) * BUCKETS + bucket(micros)
        indices, counts = np.unique(cells, return_counts=True)
        self.maps[name].reshape(-1)[indices] += counts

    def quantile(self, name: str, part: float) -> Floats:
        """Return for each column the upper edge, in µs, of the class of a map's quantile.

        It is NaN where a column has no values.
        """
        reached = np.cumsum(self.maps[name], axis=1)
        totals = reached[:, -1]
        edges = np.append(bucket_edges(), np.inf)[1:]
        classes = (reached >= part * totals[:, None]).argmax(axis=1)
        return np.where(totals > 0, edges[classes], np.nan)

    def flush(self) -> dict[str, Any]:
        """Return what was added since the last call, sparse, and forget it."""
        both = {**self.series, **self.maps}
        new = {name: _sparse(values) for name, values in both.items() if values.any()}
        for values in both.values():
            values[:] = 0
        return new

    def merge(self, new: dict[str, Any]) -> None:
        """Add what another timeline's `flush` gave."""
        for name, (cells, counts) in new.items():
            values = self.series[name] if name in self.series else self.maps[name]
            values.reshape(-1)[cells] += np.array(counts, dtype=np.int64)

    def to_json(self) -> dict[str, Any]:
        """Return it whole, for a report; the maps stay sparse."""
        series = {name: values.tolist() for name, values in self.series.items()}
        maps = {name: _sparse(values) for name, values in self.maps.items()}
        return {"bin_ns": self.bin_ns, "bins": self.bins, **series, **maps}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Timeline:
        """Return the timeline that `to_json` gave."""
        timeline = cls(data["bin_ns"], data["bins"])
        for name in cls.SERIES:
            timeline.series[name][:] = data[name]
        timeline.merge({name: data[name] for name in cls.MAPS})
        return timeline


def _sparse(values: Int64s) -> list[list[int]]:
    """Return the places of the values that are not 0, and these values."""
    flat = values.reshape(-1)
    cells = np.flatnonzero(flat)
    return [cells.tolist(), flat[cells].tolist()]


class Tally:
    """Histograms and a timeline that one process fills, and another adds up.

    Attributes:
        histograms: of `HISTOGRAMS`, in µs.
    """

    def __init__(self, bin_ns: int, bins: int) -> None:
        self.histograms = {name: histogram() for name in HISTOGRAMS}
        self.timeline = Timeline(bin_ns, bins)

    def flush(self) -> dict[str, Any]:
        """Return what was added since the last call, and forget it."""
        new = {}
        for name, hist in self.histograms.items():
            if hist.get_total_count():
                new[name] = encode(hist)
                hist.reset()
        return {"histograms": new, "timeline": self.timeline.flush()}

    def merge(self, new: dict[str, Any]) -> None:
        """Add what another's `flush` gave."""
        self.timeline.merge(new["timeline"])
        for name, text in new["histograms"].items():
            self.histograms[name].decode_and_add(text.encode("ascii"))
