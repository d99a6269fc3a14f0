"""Plots as data, made from results alone; `assets/plots.js` draws them with uPlot.

uPlot is bundled once, for these pages and for the live page of an application: 50 kB, where Plotly
has 4 MB. A colour stands for one thing on a page: `COLOURS` has those with a name, `run_colour` the
runs'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any

import numpy as np

from wallaroo_loadgen.common.measure import BUCKETS, Timeline, bucket_edges
from wallaroo_loadgen.common.schedule import NS
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search

Ticks = list[tuple[float, str]]

_DIGITS = 5  # significant ones: more than a screen has points

COLOURS = {
    "p50": "#2563eb",
    "p99": "#ea580c",
    "max": "#9333ea",
    "sender lateness": "#9ca3af",
    "messages sent": "#0d9488",
    "outputs expected": "#78350f",
    "outputs received": "#db2777",
    "backlog": "#ca8a04",
}
_RUNS = ("#111827", "#15803d", "#b91c1c", "#0369a1", "#a16207", "#6d28d9", "#be185d", "#65a30d")

DOTS, DASHES = (2, 4), (10, 4)
# Where lines of a plot lie on each other, the lower one is seen through the upper one.
_STROKES: dict[str, tuple[int, ...]] = {
    "p50": (),
    "p99": DASHES,
    "max": DOTS,
    "messages sent": (),
    "outputs received": DASHES,
    "outputs expected": DOTS,
}

_TICKS = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
_SPECTRUM_POINTS = 20  # to each halving of the distance to 100 %


@dataclass(frozen=True)
class Axis:
    """One axis.

    Attributes:
        label: what it shows, with the unit.
        low, high: where it begins and ends; fitted to the data where they are `None`.
        log: logarithmic.
        ticks: positions with their texts, if the plot does not choose them.
        inverse: positions are the inverse of the distance to 100 %, and are shown as percentiles.
    """

    label: str
    low: float | None = None
    high: float | None = None
    log: bool = False
    ticks: Ticks | None = None
    inverse: bool = False


@dataclass(frozen=True)
class Line:
    """A line.

    Attributes:
        name: its name, for the legend.
        colour: as CSS has it. On one page, a colour stands for one thing.
        x, y: as many of one as of the other; NaN in `y` is a gap. `x` rises.
        dash: lengths of stroke and gap in pixels; none for a line without gaps.
        steps: level from each point to the next one.
        filled: the area below it is coloured too.
        right: its values are those of the axis at the right.
        marks: for each point, whether it is a circle or a cross; no marks when empty.
    """

    name: str
    colour: str
    x: Sequence[float]
    y: Sequence[float]
    dash: Sequence[int] = ()
    steps: bool = False
    filled: bool = False
    right: bool = False
    marks: Sequence[bool] = ()


@dataclass(frozen=True)
class Heat:
    """Cells behind the lines: the darker, the more.

    Attributes:
        name: the thing that is counted, for the legend.
        x, y: edges of the cells, one more than there are columns and rows.
        cells: (column, row, count), those with a count only.
    """

    name: str
    x: Sequence[float]
    y: Sequence[float]
    cells: Sequence[tuple[int, int, int]]


@dataclass(frozen=True)
class Figure:
    """One plot.

    Attributes:
        title: its heading.
        x, y, right: its axes.
        lines, heat: what is drawn.
        span: from, to and name of a part of the x axis that is highlighted.
        at: positions on the x axis that are marked, each with its colour.
        together: plots of a page with the same name here show the same moment under the mouse.
    """

    title: str
    x: Axis
    y: Axis
    lines: Sequence[Line] = ()
    heat: Heat | None = None
    right: Axis | None = None
    span: tuple[float, float, str] | None = None
    at: Sequence[tuple[float, str]] = field(default=())
    together: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON values, with only as many digits as can be seen."""
        form: dict[str, Any] = _short(asdict(self))
        return form


def _short(value: Any) -> Any:
    """Return plain data that JSON can hold: few digits, and gaps as None."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if isfinite(value) else None
    if isinstance(value, dict):
        return {name: _short(item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_short(item) for item in value]
    return value


def run_colour(index: int) -> str:
    """Return the colour of a page's run, by its number."""
    return _RUNS[index % len(_RUNS)]


def of_run(result: Result, colour: str = _RUNS[0]) -> list[Figure]:
    """Return the plots of one run; none when nothing was measured."""
    if not result.latency["count"]:
        return []
    return [
        spectrum([(result, "latency", colour)], lateness=result),
        heat_map(result),
        throughput(result),
        lateness(result),
    ]


def spectrum(
    results: Sequence[tuple[Result, str, str]], *, lateness: Result | None = None
) -> Figure:
    """Latency at each percentile, with the distance to 100 % on a logarithmic axis.

    Args:
        results: each with its name in the legend and its colour.
        lateness: whose sender's lateness is drawn too.
    """
    lines = [
        Line(name, colour, *_percentiles(result, "latency"), steps=True)
        for result, name, colour in results
    ]
    if lateness is not None:
        name = "sender lateness"
        curve = _percentiles(lateness, "lateness")
        lines.append(Line(name, COLOURS[name], *curve, dash=DOTS, steps=True))
    lines = [line for line in lines if line.x]
    furthest = max([10.0, *[line.x[-1] for line in lines]])
    ticks: Ticks = [
        (1 / (1 - tick / 100), f"{tick:g} %")
        for tick in _TICKS
        if 1 / (1 - tick / 100) <= furthest * 1.5
    ]
    return Figure(
        "Percentile spectrum",
        Axis("percentile", 1.0, furthest * 1.2, log=True, ticks=ticks, inverse=True),
        Axis("latency from intended time, ms", log=True),
        lines,
    )


def _percentiles(result: Result, name: str) -> tuple[list[float], list[float]]:
    """Return the inverse distances to 100 % and the values there, in ms."""
    distance: list[float] = []
    value: list[float] = []
    if not result.histograms.get(name) or not result.histogram(name).get_total_count():
        return distance, value
    for point in result.histogram(name).get_percentile_iterator(_SPECTRUM_POINTS):
        reached = float(point.percentile_level_iterated_to)
        if reached >= 100:  # its distance to 100 % is 0: the axis has no place for it
            break
        distance.append(1 / (1 - reached / 100))
        value.append(point.value_iterated_to / 1000)
    return distance, value


def heat_map(result: Result) -> Figure:
    """Latency over time: how many outputs of each moment took how long."""
    timeline = Timeline.from_json(result.timeline)
    cells = timeline.maps["latency"]
    used = np.flatnonzero(cells.sum(axis=0))
    low, high = (int(used[0]), int(used[-1]) + 1) if len(used) else (0, 1)
    edges = np.append(bucket_edges(), 10 ** (BUCKETS / 20))[low : high + 1] / 1000
    filled = np.argwhere(cells[:, low:high])
    heat = Heat(
        "outputs",
        (np.arange(timeline.bins + 1) * timeline.bin_ns / NS).tolist(),
        edges.tolist(),
        [(int(i), int(j), int(cells[i, low + j])) for i, j in filled],
    )
    lines = _quantiles(timeline, "latency", ("p50", "p99"))
    return Figure(
        "Latency over time",
        _over_time(timeline, "intended time, s from the start"),
        Axis("latency, ms", float(edges[0]), float(edges[-1]), log=True),
        lines,
        heat,
        together=_moment(result),
    )


def throughput(result: Result) -> Figure:
    """Messages sent, outputs received, outputs expected, and the backlog, over time."""
    timeline = Timeline.from_json(result.timeline)
    width = timeline.bin_ns / NS
    columns = _used_columns(timeline)
    times = ((np.arange(columns) + 0.5) * width).tolist()
    backlog = result.backlog()[:columns].tolist()
    lines = [Line("backlog", COLOURS["backlog"], times, backlog, filled=True, right=True)]
    for name, counted in (
        ("messages sent", "sent"),
        ("outputs received", "received"),
        ("outputs expected", "owed"),
    ):
        rates = (timeline.series[counted][:columns] / width).tolist()
        lines.append(Line(name, COLOURS[name], times, rates, dash=_STROKES[name]))
    start = float(result.config["warmup"])
    return Figure(
        "Sent, received, backlog",
        _over_time(timeline, "time, s from the start"),
        Axis("a second", 0.0),
        lines,
        right=Axis("backlog, outputs", 0.0),
        span=(start, start + float(result.config["duration"]), "measured"),
        together=_moment(result),
    )


def lateness(result: Result) -> Figure:
    """How late the sender itself was, over time."""
    timeline = Timeline.from_json(result.timeline)
    lines = _quantiles(timeline, "lateness", ("p50", "p99", "max"))
    x = _over_time(timeline, "intended time, s from the start")
    y = Axis("lateness, ms", log=True)
    return Figure("Sender lateness", x, y, lines, together=_moment(result))


def latency_against_rate(search: Search) -> Figure:
    """Percentiles of latency at each rate that a search tried, and where it stopped."""
    measured = [(point, run) for point, run in search.by_rate() if run.latency["count"]]
    lines = [
        Line(
            f"{search.label} {name}",
            COLOURS[name],
            [float(point["rate"]) for point, _ in measured],
            [max(run.latency[name], 1) / 1000 for _, run in measured],
            dash=_STROKES[name],
            marks=[bool(point["good"]) for point, _ in measured],
        )
        for name in ("p50", "p99")
    ]
    at = [] if search.best is None else [(search.best, run_colour(0))]
    rates, latencies = Axis("messages a second", log=True), Axis("latency, ms", log=True)
    return Figure("Latency against rate", rates, latencies, lines, at=at)


def _quantiles(timeline: Timeline, map_name: str, names: Sequence[str]) -> list[Line]:
    """Return lines through the quantiles of a map, in ms."""
    times = ((np.arange(timeline.bins) + 0.5) * timeline.bin_ns / NS).tolist()
    parts = {"p50": 0.5, "p99": 0.99, "max": 1.0}
    lines = []
    for name in names:
        millis = (timeline.quantile(map_name, parts[name]) / 1000).tolist()
        lines.append(Line(name, COLOURS[name], times, millis, dash=_STROKES[name]))
    return lines


def _used_columns(timeline: Timeline) -> int:
    busy = sum((timeline.series[name] for name in Timeline.SERIES), np.zeros(timeline.bins))
    used = np.flatnonzero(busy)
    return int(used[-1]) + 1 if len(used) else 1


def _over_time(timeline: Timeline, label: str) -> Axis:
    """Return the axis that all plots over time of a run have, so that they are read together."""
    return Axis(label, 0.0, _used_columns(timeline) * timeline.bin_ns / NS)


def _moment(result: Result) -> str:
    """Return what the plots over time of one run have in common."""
    return f"{result.label} {result.config['run']}"
