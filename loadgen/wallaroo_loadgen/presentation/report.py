"""The report: one HTML page that needs nothing else, with every plot and every fact of the runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
from jinja2 import Environment, PackageLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from wallaroo_loadgen.common.measure import PERCENTILES
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.control.verdict import show
from wallaroo_loadgen.presentation import plots

_MOST_DETAILED = 24
"""Runs with plots of their own; more would make a page too large for browsers."""

_MOST_TOGETHER = 8  # runs in one percentile spectrum


def write_html(path: Path, runs: Sequence[Result], searches: Sequence[Search] = ()) -> None:
    """Write the page."""
    path.write_text(html(runs, searches), encoding="utf-8")


def html(runs: Sequence[Result], searches: Sequence[Search] = ()) -> str:
    """Return the page.

    Args:
        runs: in order; those of searches are among them.
        searches: what found the highest rate, each with its runs.
    """
    environment = Environment(
        loader=PackageLoader("wallaroo_loadgen.presentation"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["duration"] = show
    return environment.get_template("report.html").render(
        title=_title(runs, searches),
        runs=[_run(result, index) for index, result in enumerate(runs)],
        searches=[_search(found) for found in searches],
        rate_plot=_div(plots.latency_against_rate(searches)) if searches else None,
        together=_div(plots.spectrum(_together(runs, searches))) if len(runs) > 1 else None,
        columns=["min", *[f"p{percentile:g}" for percentile in PERCENTILES], "max"],
        machine=runs[-1].machine if runs else {},
        plotly=get_plotlyjs(),
    )


def _title(runs: Sequence[Result], searches: Sequence[Search]) -> str:
    names = [found.label for found in searches] or [result.label for result in runs]
    different = list(dict.fromkeys(names))
    return ", ".join(different[:3]) + (" …" if len(different) > 3 else "")


def _together(runs: Sequence[Result], searches: Sequence[Search]) -> list[Result]:
    """Return the runs worth one plot: all if they are few, else a search's best ones."""
    if len(runs) <= _MOST_TOGETHER:
        return list(runs)
    best = [
        result
        for found in searches
        for point, result in zip(found.points, found.results, strict=True)
        if point["rate"] == found.best and point["good"]
    ]
    return best or list(runs[-_MOST_TOGETHER:])


def _search(found: Search) -> dict[str, Any]:
    points = sorted(
        zip(found.points, found.results, strict=True), key=lambda pair: float(pair[0]["rate"])
    )
    return {"label": found.label, "best": found.best, "points": points}


def _run(result: Result, index: int) -> dict[str, Any]:
    figures = []
    if index < _MOST_DETAILED and result.latency["count"]:
        figures = [
            plots.spectrum([result], lateness=True),
            plots.heat_map(result),
            plots.throughput(result),
            plots.lateness(result),
        ]
    config = {name: value for name, value in result.config.items() if name != "values"}
    config["to"] = ", ".join([f"{host}:{port}" for host, port in result.config["to"]])
    config["listen"] = ":".join(map(str, result.config["listen"]))
    config |= {f"option {name}": value for name, value in result.config["values"].items()}
    return {
        "result": result,
        "verdict": _verdict(result),
        "config": config,
        "growth": result.backlog_growth() if result.started else 0.0,
        "figures": [_div(figure) for figure in figures],
    }


def _verdict(result: Result) -> tuple[str, str]:
    """Return the verdict's style and words."""
    if result.invalid:
        return "bad", "INVALID"
    if result.partial:
        return "poor", "PARTIAL"
    if any(not slo["met"] for slo in result.slos):
        return "poor", "SLO missed"
    return "good", "valid, SLOs met" if result.slos else "valid"


def _div(figure: go.Figure) -> str:
    text: str = figure.to_html(
        full_html=False,
        include_plotlyjs=False,
        config={"displayModeBar": False, "responsive": True},
    )
    return text
