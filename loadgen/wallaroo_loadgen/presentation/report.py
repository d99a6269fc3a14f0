"""The report: one HTML page that needs nothing else, with every plot and every fact of the runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wallaroo_loadgen.common.measure import PERCENTILES
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.control.verdict import INVALID, OK, TARGET_ENDED, WORDS, verdict
from wallaroo_loadgen.presentation import plots
from wallaroo_loadgen.presentation.page import render

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
        searches: the searches for the highest rate, each with its runs.
    """
    labels, colours = _labels(runs), _colours(runs, searches)
    together = [(runs[index], labels[index], colours[index]) for index in _together(runs, searches)]
    return render(
        "report.html",
        title=_title(runs, searches),
        runs=[
            {"label": labels[index], **_run(result, colours[index], index < _MOST_DETAILED)}
            for index, result in enumerate(runs)
        ],
        searches=[_search(found) for found in searches],
        rate_plot=plots.latency_against_rate(searches) if searches else None,
        together=plots.spectrum(together) if len(runs) > 1 else None,
        columns=["min", *[f"p{percentile:g}" for percentile in PERCENTILES], "max"],
        machine=runs[-1].machine if runs else {},
        reading=plots.READING,
    )


def _title(runs: Sequence[Result], searches: Sequence[Search]) -> str:
    names = [found.label for found in searches] or [result.label for result in runs]
    different = list(dict.fromkeys(names))
    return ", ".join(different[:3]) + (" …" if len(different) > 3 else "")


def _labels(runs: Sequence[Result]) -> list[str]:
    """Return the runs' labels, with a number where several have the same."""
    labels = [result.label for result in runs]
    return [
        f"{label}, run {labels[: index + 1].count(label)}" if labels.count(label) > 1 else label
        for index, label in enumerate(labels)
    ]


def _together(runs: Sequence[Result], searches: Sequence[Search]) -> list[int]:
    """Return the numbers of runs worth one plot: all if they are few, else a search's best ones."""
    if len(runs) <= _MOST_TOGETHER:
        return list(range(len(runs)))
    best = [
        index
        for index, result in enumerate(runs)
        for found in searches
        for point, run in zip(found.points, found.results, strict=True)
        if run is result and point["good"] and point["rate"] == found.best
    ]
    return best[:_MOST_TOGETHER] or list(range(len(runs)))[-_MOST_TOGETHER:]


def _colours(runs: Sequence[Result], searches: Sequence[Search]) -> list[str]:
    """Return the runs' colours on the page: a search's, if there are several, or their own."""
    owners = {id(run): number for number, found in enumerate(searches) for run in found.results}
    several = len(searches) > 1
    return [
        plots.run_colour(owners.get(id(result), index) if several else index)
        for index, result in enumerate(runs)
    ]


def _search(found: Search) -> dict[str, Any]:
    points = sorted(
        zip(found.points, found.results, strict=True), key=lambda pair: float(pair[0]["rate"])
    )
    return {
        "label": found.label,
        "best": found.best,
        "points": points,
        "sentence": found.sentence(),
    }


def _run(result: Result, colour: str, detailed: bool) -> dict[str, Any]:
    config = {name: value for name, value in result.config.items() if name != "values"}
    config["to"] = ", ".join([f"{host}:{port}" for host, port in result.config["to"]])
    config["listen"] = ":".join(map(str, result.config["listen"]))
    config |= {f"option {name}": value for name, value in result.config["values"].items()}
    return {
        "result": result,
        "verdict": _verdict(result),
        "config": config,
        "growth": result.backlog_growth() if result.started else 0.0,
        "figures": plots.of_run(result, colour) if detailed else [],
    }


def _verdict(result: Result) -> tuple[str, str]:
    """Return the verdict's style and words."""
    code = verdict(result)
    words = WORDS[code] + (", SLOs met" if code == OK and result.slos else "")
    return {OK: "good", INVALID: "bad", TARGET_ENDED: "bad"}.get(code, "poor"), words
