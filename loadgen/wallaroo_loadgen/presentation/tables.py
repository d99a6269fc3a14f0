"""Figures as rows of text, the same in a terminal, in a report and on the live page."""

from __future__ import annotations

from collections.abc import Sequence

from wallaroo_loadgen.common.measure import PERCENTILES
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.control.verdict import show

Rows = list[list[str]]
"""A table; its first row is the head."""

COLUMNS = ("min", *[f"p{percentile:g}" for percentile in PERCENTILES], "max")


def latency_rows(result: Result, columns: Sequence[str] = COLUMNS) -> Rows:
    """Return the percentiles of a run that has some."""
    rows = [
        ("latency", result.latency),
        ("lateness", result.lateness),
        ("own lateness", result.own_lateness),
    ]
    if result.own is not None and "latency" in result.own:
        rows.append(("application", result.own["latency"]))
    return [
        ["", *columns],
        *[[name, *[show(values[column]) for column in columns]] for name, values in rows],
    ]


def rate_rows(search: Search) -> Rows:
    """Return a search's runs by rate."""
    rows = [["rate", "p50", "p99", "p99.9", "verdict"]]
    for point, result in search.by_rate():
        times = [show(result.latency[name]) for name in rows[0][1:-1]]
        verdict = "sustained" if point["good"] else str(point["why"])
        rows.append([f"{point['rate']:,.0f}/s", *times, verdict])
    return rows


def traffic(result: Result) -> str:
    """Return what was sent and received, in a sentence."""
    counts, rates = result.counts, result.rates
    text = (
        f"sent {counts['sent']:,} of {counts['scheduled']:,} messages "
        f"({rates['sent']:,.0f}/s measured), received "
    )
    if counts["unanswered"]:
        return f"{text}{counts['unanswered']:,} outputs"
    received = f"{counts['received']:,} of {counts['expected']:,} outputs"
    return f"{text}{received} ({rates['received']:,.0f}/s)"
