"""The live page: a browser's view of a running load test, in Locust's tab and by `--live`."""

from __future__ import annotations

from typing import Any

from wallaroo_loadgen.common.measure import PERCENTILES
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.control.verdict import show
from wallaroo_loadgen.presentation import plots
from wallaroo_loadgen.presentation.page import render

_COLUMNS = ("min", *[f"p{percentile:g}" for percentile in PERCENTILES], "max")


def page(nonce: str | None = None) -> str:
    """Return the page. It asks for `./figures`, which are `view`'s as JSON, every second."""
    return render("live.html", nonce=nonce)


def view(result: Result | None, found: Search | None = None) -> dict[str, Any]:
    """Return the data that the page shows.

    Args:
        result: the run's figures so far, or None before the first.
        found: the search that the run belongs to.
    """
    figures = [] if result is None else plots.of_run(result)
    tables = []
    if found is not None and found.points:
        figures.insert(0, plots.latency_against_rate([found]))
        tables.append(_rates(found))
    if result is None or not result.latency["count"]:
        words = "Waiting for the first outputs …"
    else:
        tables.append(_latencies(result))
        counts = result.counts
        words = (
            f"{result.label}: sent {counts['sent']:,} of {counts['scheduled']:,}, "
            f"received {counts['received']:,} outputs"
        )
    return {
        "heading": "Load test" if result is None else f"Load test: {result.label}",
        "words": words,
        "tables": tables,
        "figures": [figure.to_json() for figure in figures],
    }


def _latencies(result: Result) -> list[list[str]]:
    rows = (("latency", result.latency), ("sender lateness", result.lateness))
    return [
        ["", *_COLUMNS],
        *[[name, *[show(values[column]) for column in _COLUMNS]] for name, values in rows],
    ]


def _rates(found: Search) -> list[list[str]]:
    rows = [
        [
            f"{point['rate']:,.0f}/s",
            show(result.latency["p50"]),
            show(result.latency["p99"]),
            "sustained" if point["good"] else str(point["why"]),
        ]
        for point, result in zip(found.points, found.results, strict=True)
    ]
    return [["rate", "p50", "p99", ""], *rows]
