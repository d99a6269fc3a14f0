"""The plots of a report and of Locust's extra tab, from results alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from numpy.typing import NDArray

from wallaroo_loadgen.common.measure import BUCKETS, Timeline, bucket_edges
from wallaroo_loadgen.common.schedule import NS, Floats, Int64s
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search

_COLOURS = ("#2563eb", "#ea580c", "#059669", "#9333ea", "#dc2626", "#0891b2", "#ca8a04", "#4b5563")
_GREY = "#6b7280"
_HEIGHT = 400
_TICKS = (0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999)
_SPECTRUM_POINTS = 20  # to each halving of the distance to 100 %


def _figure(title: str, x: str, y: str, **layout: Any) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(
        template="plotly_white",
        title={"text": title, "font": {"size": 16}},
        height=_HEIGHT,
        margin={"l": 70, "r": 90, "t": 45, "b": 90},
        legend={"orientation": "h", "y": -0.2, "yanchor": "top", "x": 0},
        font={"family": "system-ui, sans-serif", "size": 13},
        **layout,
    )
    figure.update_layout(xaxis_title=x, yaxis_title=y)
    return figure


def _log_ms(figure: go.Figure, values: Sequence[float]) -> None:
    """Give the y axis, in ms, a logarithmic scale with plain numbers at it."""
    used = [value for value in values if value > 0]
    low, high = (min(used), max(used)) if used else (0.1, 10.0)
    ticks = [10.0**power for power in range(-3, 7)]
    figure.update_yaxes(
        type="log",
        range=[np.log10(low / 1.5), np.log10(high * 1.5)],
        tickvals=ticks + [2 * tick for tick in ticks] + [5 * tick for tick in ticks],
        tickformat="~g",
    )


def spectrum(results: Sequence[Result], *, lateness: bool = False) -> go.Figure:
    """Latency at each percentile, with the distance to 100 % on a logarithmic axis."""
    figure = _figure("Percentile spectrum", "percentile", "latency from intended time, ms")
    seen: list[float] = []
    furthest = 10.0
    for index, result in enumerate(results):
        names = [("latency", result.label, "solid")]
        if lateness:
            names = [("latency", "latency", "solid"), ("lateness", "sender lateness", "dot")]
        for name, label, dash in names:
            if not result.histograms.get(name):
                continue
            hist = result.histogram(name)
            if not hist.get_total_count():
                continue
            distance, value, percentile = [], [], []
            for point in hist.get_percentile_iterator(_SPECTRUM_POINTS):
                reached = float(point.percentile_level_iterated_to)
                if reached >= 100:  # the distance to it is none: the axis has no place for it
                    break
                distance.append(1 / (1 - reached / 100))
                value.append(point.value_iterated_to / 1000)
                percentile.append(reached)
            seen += value
            furthest = max(furthest, distance[-1] if distance else 0)
            figure.add_scatter(
                x=distance,
                y=value,
                customdata=percentile,
                name=label,
                mode="lines",
                line={
                    "color": _GREY if dash == "dot" else _COLOURS[index % len(_COLOURS)],
                    "dash": dash,
                    "shape": "hv",
                },
                hovertemplate="p%{customdata:.4f}: %{y:.3f} ms<extra>%{fullData.name}</extra>",
            )
    ticks = [tick for tick in _TICKS if 1 / (1 - tick / 100) <= furthest * 1.5]
    figure.update_xaxes(
        type="log",
        tickvals=[1 / (1 - tick / 100) for tick in ticks],
        ticktext=[f"{tick:g} %" for tick in ticks],
    )
    _log_ms(figure, seen)
    return figure


def heat_map(result: Result) -> go.Figure:
    """Latency over time: how many outputs of each moment took how long."""
    figure = _figure("Latency over time", "intended time, s from the start", "latency, ms")
    timeline = Timeline.from_json(result.timeline)
    cells = timeline.maps["latency"]
    used = np.flatnonzero(cells.sum(axis=0))
    columns = np.flatnonzero(cells.sum(axis=1))
    if not len(used):
        return figure
    low, high = max(0, int(used[0]) - 1), min(BUCKETS, int(used[-1]) + 2)
    first, last = int(columns[0]), int(columns[-1]) + 1
    edges = bucket_edges() / 1000
    counts = cells[first:last, low:high].T.astype(np.float64)
    middles = edges[low:high] * 10 ** (1 / 40)
    shown = np.where(counts > 0, np.log10(np.maximum(counts, 1)), np.nan)
    times = (np.arange(first, last) + 0.5) * timeline.bin_ns / NS
    most = int(np.ceil(np.nanmax(shown))) if counts.max() > 1 else 1
    figure.add_heatmap(
        x=_plain(times),
        y=_plain(middles),
        z=[[None if np.isnan(cell) else float(cell) for cell in row] for row in shown],
        customdata=counts.tolist(),
        colorscale="YlGnBu",
        zmin=0,
        zmax=most,
        colorbar={
            "title": "outputs",
            "tickvals": list(range(most + 1)),
            "ticktext": [f"{10**power:,}" for power in range(most + 1)],
        },
        hovertemplate="%{x:.1f} s, %{y:.3g} ms: %{customdata} outputs<extra></extra>",
    )
    for percentile, colour in ((0.5, _COLOURS[1]), (0.99, _COLOURS[4])):
        figure.add_scatter(
            x=_plain(times),
            y=_plain(_quantile(cells[first:last], percentile)),
            name=f"p{percentile * 100:g}",
            mode="lines",
            line={"color": colour, "width": 1.5},
        )
    _over_time(figure, timeline)
    _log_ms(figure, [float(edges[low]), float(edges[high - 1])])
    return figure


def throughput(result: Result) -> go.Figure:
    """Messages sent, outputs received, and outputs owed that have not come yet, over time."""
    figure = _figure(
        "Sent, received, backlog",
        "time, s from the start",
        "a second",
        yaxis2={
            "title": "backlog, outputs",
            "overlaying": "y",
            "side": "right",
            "rangemode": "tozero",
            "showgrid": False,
            "tickmode": "auto",
        },
    )
    timeline = Timeline.from_json(result.timeline)
    width = timeline.bin_ns / NS
    columns = _used_columns(timeline)
    times = (np.arange(columns) + 0.5) * width
    backlog = result.backlog()[:columns]
    figure.add_scatter(
        x=_plain(times + width / 2),
        y=_plain(backlog),
        name="backlog",
        yaxis="y2",
        mode="lines",
        fill="tozeroy",
        line={"color": "#9ca3af", "width": 1},
        fillcolor="rgba(156,163,175,0.25)",
    )
    series = (("sent", "messages sent"), ("owed", "outputs owed"), ("received", "outputs received"))
    for index, (name, label) in enumerate(series):
        figure.add_scatter(
            x=_plain(times),
            y=_plain(timeline.series[name][:columns] / width),
            name=label,
            mode="lines",
            line={"color": _COLOURS[index], "dash": "dot" if name == "owed" else "solid"},
        )
    figure.update_layout(yaxis={"rangemode": "tozero"})
    _mark_measured(figure, result)
    _over_time(figure, timeline)
    return figure


def lateness(result: Result) -> go.Figure:
    """How late the sender itself was, over time."""
    figure = _figure("Sender lateness", "intended time, s from the start", "lateness, ms")
    timeline = Timeline.from_json(result.timeline)
    cells = timeline.maps["lateness"]
    columns = np.flatnonzero(cells.sum(axis=1))
    values: list[float] = []
    if len(columns):
        first, last = int(columns[0]), int(columns[-1]) + 1
        times = (np.arange(first, last) + 0.5) * timeline.bin_ns / NS
        for index, percentile in enumerate((0.5, 0.99, 1.0)):
            line = _quantile(cells[first:last], percentile)
            values += line[np.isfinite(line)].tolist()
            figure.add_scatter(
                x=_plain(times),
                y=_plain(line),
                name="max" if percentile == 1 else f"p{percentile * 100:g}",
                mode="lines",
                line={"color": _COLOURS[index]},
            )
    _over_time(figure, timeline)
    _log_ms(figure, values)
    return figure


def latency_against_rate(searches: Sequence[Search]) -> go.Figure:
    """Percentiles of latency at each rate that a search tried, and where it stopped."""
    figure = _figure("Latency against rate", "messages a second", "latency, ms")
    values: list[float] = []
    for index, found in enumerate(searches):
        colour = _COLOURS[index % len(_COLOURS)]
        measured = [
            (point, result)
            for point, result in zip(found.points, found.results, strict=True)
            if result.latency["count"]
        ]
        measured.sort(key=lambda pair: float(pair[0]["rate"]))
        for name, dash in (("p50", "dot"), ("p99", "solid")):
            heights = [max(result.latency[name], 1) / 1000 for _, result in measured]
            values += heights
            figure.add_scatter(
                x=[point["rate"] for point, _ in measured],
                y=heights,
                name=f"{found.label} {name}",
                mode="lines+markers",
                line={"color": colour, "dash": dash},
                marker={
                    "size": 9,
                    "symbol": ["circle" if point["good"] else "x" for point, _ in measured],
                },
                customdata=[point["why"] or "sustained" for point, _ in measured],
                hovertemplate="%{x:,.0f}/s: %{y:.3f} ms<br>%{customdata}"
                "<extra>%{fullData.name}</extra>",
            )
        if found.best is not None:
            figure.add_vline(x=found.best, line={"color": colour, "dash": "dash", "width": 1})
    figure.update_xaxes(type="log", tickformat="~s")
    _log_ms(figure, values)
    return figure


def _used_columns(timeline: Timeline) -> int:
    busy = sum((timeline.series[name] for name in Timeline.SERIES), np.zeros(timeline.bins))
    used = np.flatnonzero(busy)
    return int(used[-1]) + 1 if len(used) else 1


def _over_time(figure: go.Figure, timeline: Timeline) -> None:
    """Give all plots over time of a run the same axis, so that they can be read together."""
    figure.update_xaxes(range=[0, _used_columns(timeline) * timeline.bin_ns / NS])


def _mark_measured(figure: go.Figure, result: Result) -> None:
    start = result.config["warmup"]
    figure.add_vrect(
        x0=start,
        x1=start + result.config["duration"],
        fillcolor="#2563eb",
        opacity=0.05,
        line_width=0,
        annotation_text="measured",
        annotation_position="top left",
        annotation_font_color=_GREY,
    )


def _quantile(cells: Int64s, part: float) -> Floats:
    """Return for each column the upper edge, in ms, of the class in which a quantile lies."""
    totals = cells.sum(axis=1)
    reached = np.cumsum(cells, axis=1) >= part * totals[:, None]
    edges = np.append(bucket_edges(), np.inf)[1:] / 1000
    values: Floats = np.where(totals > 0, edges[reached.argmax(axis=1)], np.nan)
    return values


def _plain(values: NDArray[np.floating[Any]]) -> list[float | None]:
    """Return an array as a list that JSON can hold: plain numbers, and gaps as None."""
    return [float(value) if np.isfinite(value) else None for value in values]
