"""Shows a comparison or a history: in a terminal, as JUnit XML, on a page with plots.

On a page a file has one colour in all plots of a comparison. In a history a metric has the colour
that it has in the report of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from rich.console import Console

from wallaroo.junit import JUnitCase, Outcome
from wallaroo_loadgen.common.measure import encode, histogram, recorded
from wallaroo_loadgen.common.schedule import Floats
from wallaroo_loadgen.comparison.baseline import Comparison, Runs, percent
from wallaroo_loadgen.comparison.history import Line as Course
from wallaroo_loadgen.comparison.history import Series
from wallaroo_loadgen.comparison.ratio import Statement, Verdict, ratio
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.verdict import show
from wallaroo_loadgen.presentation.pages import render
from wallaroo_loadgen.presentation.plots import (
    COLOURS,
    DASHES,
    DOTS,
    Axis,
    Figure,
    Line,
    Ticks,
    run_colour,
    spectrum,
)
from wallaroo_loadgen.presentation.tables import Rows
from wallaroo_loadgen.presentation.terminal import print_rows, say

_OUTCOMES: dict[Verdict, Outcome] = {
    Verdict.NOT_WORSE: "passed",
    Verdict.WORSE: "failure",
    Verdict.INCONCLUSIVE: "error",
}
_STYLES = {Verdict.NOT_WORSE: "good", Verdict.WORSE: "bad", Verdict.INCONCLUSIVE: "poor"}

_GREY = "#6b7280"
_MOST_LETTERS = 120  # of file names that fit along an axis


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print metrics, ratios and verdicts."""
    level = percent(comparison.level)
    say(console, f"latency: geometric means, ratios to the first ({level} intervals)")
    print_rows(console, ratio_rows(comparison))
    for other in comparison.others:
        for note in other.notes:
            say(console, f"note: {other.runs.name} was measured with another {note}")
        for statement in other.statements:
            say(console, f"{other.runs.name}: {statement.words}")
    say(console, comparison.verdict, style="bold")


def print_history(console: Console, histories: Sequence[Series]) -> None:
    """Print the changes of each history."""
    for series in histories:
        say(console, f"{series.label}: {len(series.files)} files", style="bold")
        for statement in series.statements:
            say(console, f"  {statement.words}")


def ratio_rows(comparison: Comparison) -> Rows:
    """Return metrics, ratios and verdicts as a table's rows."""
    files = [comparison.baseline, *[other.runs for other in comparison.others]]
    rows = [["", *[f"{runs.name} ({len(runs.results)})" for runs in files]]]
    for index, row in enumerate(comparison.others[0].rows):
        cells = [row.metric.name, show(row.baseline)]
        for other in comparison.others:
            own = other.rows[index]
            cell = f"{show(own.other)}  {own.ratio}"
            if own.statement is not None and own.statement.verdict != Verdict.NOT_WORSE:
                cell += f"  {own.statement.verdict}".upper()
            cells.append(cell)
        rows.append(cells)
    return rows


def cases_of_comparison(comparison: Comparison) -> list[JUnitCase]:
    """Return a case for each bound of each file."""
    return [
        _case(f"{other.runs.name} against {comparison.baseline.name}", statement)
        for other in comparison.others
        for statement in other.statements
    ]


def cases_of_history(histories: Sequence[Series]) -> list[JUnitCase]:
    """Return a case for each metric of each history: its newest level."""
    return [
        _case(series.label, statement) for series in histories for statement in series.statements
    ]


def _case(group: str, statement: Statement) -> JUnitCase:
    return JUnitCase(group, statement.bound, _OUTCOMES[statement.verdict], statement.words)


def comparison_html(comparison: Comparison) -> str:
    """Return a comparison's page."""
    return render(
        "comparison.html",
        comparison=comparison,
        rows=ratio_rows(comparison),
        styles=_STYLES,
        figures=[spectra(comparison), ratios(comparison)],
        machines=[
            (runs.name, runs.results[0].machine)
            for runs in (comparison.baseline, *[other.runs for other in comparison.others])
        ],
    )


def history_html(histories: Sequence[Series]) -> str:
    """Return a page with every history."""
    return render(
        "history.html",
        histories=[(series, course(series)) for series in histories],
        styles=_STYLES,
    )


def spectra(comparison: Comparison) -> Figure:
    """Return the percentile spectra of all files, each with its lowest and highest run."""
    files = [comparison.baseline, *[other.runs for other in comparison.others]]
    pooled = [(_pooled(runs), runs.name, run_colour(index)) for index, runs in enumerate(files)]
    figure = spectrum(pooled)
    lines = list(figure.lines)
    for runs, line in zip(files, figure.lines, strict=True):
        if len(runs.results) > 1:
            parts = 1 - 1 / np.array(line.x)
            single = _quantiles(runs, parts) / 1000
            lines.append(_dotted(line, "lowest run", single.min(axis=0).tolist()))
            lines.append(_dotted(line, "highest run", single.max(axis=0).tolist()))
    return replace(figure, lines=lines)


def ratios(comparison: Comparison) -> Figure:
    """Return how much slower each file is than the baseline, at each percentile."""
    figure = spectrum([(_pooled(comparison.baseline), comparison.baseline.name, _GREY)])
    places = figure.lines[0].x
    parts = 1 - 1 / np.array(places)
    before = _quantiles(comparison.baseline, parts)
    bound = 1 + comparison.increase
    name = f"bound: {percent(comparison.increase)} slower"
    lines = [Line(name, _GREY, [places[0], places[-1]], [bound, bound], dash=DASHES)]
    for index, other in enumerate(comparison.others, 1):
        after = _quantiles(other.runs, parts)
        slower = [
            ratio(first, second, comparison.level)
            for first, second in zip(before.T.tolist(), after.T.tolist(), strict=True)
        ]
        line = Line(other.runs.name, run_colour(index), places, [each.value for each in slower])
        lines.append(line)
        low = [each.low for each in slower if each.low is not None]
        high = [each.high for each in slower if each.high is not None]
        if low and high:
            lines += [_dotted(line, "low", low), _dotted(line, "high", high)]
    # The ends of intervals may be far away, where runs are few.
    middles = [height for line in lines if line.dash != DOTS for height in line.y]
    axis = Axis("ratio", min(1.0, *middles) / 1.5, max(1.0, *middles) * 1.5)
    return Figure("Ratio to the baseline", figure.x, axis, lines)


def course(series: Series) -> Figure:
    """Return the metrics of a history, file by file, with their levels."""
    numbers = [float(number) for number in range(1, len(series.files) + 1)]
    lines = []
    at = []
    for index, line in enumerate(series.lines):
        name = line.metric.name
        colour = COLOURS.get(name, run_colour(index))
        heights = [value / 1000 for value in line.values]
        marks = [True] * len(heights)
        lines.append(Line(name, colour, numbers, heights, marks=marks))
        levels = _levels(line)
        lines.append(Line(f"{name}, level", colour, numbers, levels, dash=DASHES, steps=True))
        at += [(change.index + 0.5, colour) for change in line.changes]
    ticks: Ticks | None = None
    if sum(len(runs.name) for runs in series.files) <= _MOST_LETTERS:
        ticks = [(number, runs.name) for number, runs in zip(numbers, series.files, strict=True)]
    files = Axis("file, oldest first", 0.5, len(numbers) + 0.5, ticks=ticks)
    return Figure("History", files, Axis("latency, ms", log=True), lines, at=at)


def _dotted(line: Line, word: str, heights: list[float]) -> Line:
    """Return a dotted line in the colour of another, above or below it."""
    return Line(f"{line.name}, {word}", line.colour, line.x, heights, dash=DOTS)


def _levels(line: Course) -> list[float]:
    """Return the level at each file, in ms."""
    ends = [0, *[change.index for change in line.changes], len(line.values)]
    levels = []
    for first, last in pairwise(ends):
        middle = float(np.exp(np.log(line.values[first:last]).mean()))
        levels += [middle / 1000] * (last - first)
    return levels


def _quantiles(runs: Runs, parts: Floats) -> Floats:
    """Return, a row for each run, the latencies in µs that these parts of 1 did not exceed."""
    rows = []
    for run in runs.results:
        _, values, counts = recorded(run.histogram("latency"))
        places = np.searchsorted(np.cumsum(counts) / counts.sum(), parts - 1e-12)
        rows.append(values[np.minimum(places, len(values) - 1)].astype(np.float64))
    return np.stack(rows)


def _pooled(runs: Runs) -> Result:
    """Return a result that has the latencies of all runs."""
    together = histogram()
    for run in runs.results:
        together.add(run.histogram("latency"))
    return replace(runs.results[0], histograms={"latency": encode(together)})
