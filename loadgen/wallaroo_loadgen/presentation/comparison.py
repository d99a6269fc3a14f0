"""Shows a comparison or a history: in a terminal, as JUnit XML, on a page with plots.

On a page a file has one colour in all plots of a comparison. In a history a metric has the colour
that it has in the report of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import log

import numpy as np
from rich.console import Console
from rich.table import Table

from wallaroo.junit import JUnitCase, Outcome
from wallaroo_loadgen.common.measure import add, encode, histogram
from wallaroo_loadgen.common.schedule import Floats
from wallaroo_loadgen.comparison.baseline import Comparison, Runs, percent, table
from wallaroo_loadgen.comparison.distribution import Distributions, ratio_band
from wallaroo_loadgen.comparison.history import Line as Course
from wallaroo_loadgen.comparison.history import Series
from wallaroo_loadgen.comparison.ratio import Verdict
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.presentation.pages import render
from wallaroo_loadgen.presentation.plots import (
    COLOURS,
    DASHES,
    DOTS,
    Axis,
    Figure,
    Line,
    Ticks,
    log_axis,
    run_colour,
    spectrum,
)
from wallaroo_loadgen.presentation.terminal import safe

_OUTCOMES: dict[Verdict, Outcome] = {
    Verdict.NOT_WORSE: "passed",
    Verdict.WORSE: "failure",
    Verdict.INCONCLUSIVE: "error",
}
_STYLES = {Verdict.NOT_WORSE: "good", Verdict.WORSE: "bad", Verdict.INCONCLUSIVE: "poor"}

_GREY = "#6b7280"
_MOST_LETTERS = 120  # of file names that fit along an axis
_RATIOS_AT_AN_AXIS = 14  # at most, or they would cover each other
_RATIOS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.75, 2]
_RATIOS += [2.5, 3, 4, 5, 7, 10, 20, 50, 100]


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print metrics, ratios and verdicts."""
    rows = table(comparison)
    _say(
        console,
        f"latency: geometric means, ratios to the first ({percent(comparison.level)} intervals)",
    )
    shown = Table(box=None, pad_edge=False)
    for index, name in enumerate(rows[0]):
        shown.add_column(safe(name), justify="left" if index == 0 else "right")
    for row in rows[1:]:
        shown.add_row(*[safe(cell) for cell in row])
    console.print(shown)
    for other in comparison.others:
        for note in other.notes:
            _say(console, f"note: {other.runs.name} was measured with another {note}")
        for sentence in other.sentences:
            _say(console, f"{other.runs.name}: {sentence}")
    _say(console, comparison.verdict, style="bold")


def print_history(console: Console, histories: Sequence[Series]) -> None:
    """Print the changes of each history."""
    for series in histories:
        _say(console, f"{series.label}: {len(series.files)} files", style="bold")
        for line in series.lines:
            for sentence in series.words(line):
                _say(console, f"  {sentence}")


def _say(console: Console, text: str, style: str | None = None) -> None:
    """Print a line whole, however narrow the terminal is: CI keeps it to be searched."""
    console.print(safe(text), highlight=False, soft_wrap=True, style=style)


def cases_of_comparison(comparison: Comparison) -> list[JUnitCase]:
    """Return a case for each bound of each file, and one for its whole distribution."""
    cases = []
    for other in comparison.others:
        group = f"{other.runs.name} against {comparison.baseline.name}"
        for row in other.rows:
            if row.bound is not None and row.verdict is not None:
                name = f"{row.metric.name} within {percent(row.bound)}"
                cases.append(JUnitCase(group, name, _OUTCOMES[row.verdict], row.words))
        name = f"whole distribution within {percent(other.shift_bound)}"
        outcome: Outcome = "failure" if other.shift.worse else "passed"
        if other.shift.blind:  # too few runs to ask
            outcome = "skipped"
        cases.append(JUnitCase(group, name, outcome, other.shift_words))
    return cases


def cases_of_history(histories: Sequence[Series]) -> list[JUnitCase]:
    """Return a case for each metric of each history: its newest level."""
    return [
        JUnitCase(
            series.label,
            f"{line.metric.name}: newest level within {percent(line.bound)}",
            _OUTCOMES[series.verdict_of(line)],
            "; ".join(series.words(line)),
        )
        for series in histories
        for line in series.lines
    ]


def comparison_html(comparison: Comparison, *, seed: int) -> str:
    """Return a comparison's page.

    Args:
        comparison: the comparison.
        seed: of the bootstraps that are only drawn.
    """
    return render(
        "comparison.html",
        comparison=comparison,
        rows=table(comparison),
        styles=_STYLES,
        figures=[spectra(comparison), ratios(comparison, seed=seed)],
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
        if len(runs.results) < 2:
            continue
        places = _places(line)
        single = Distributions.of(runs.results).quantiles(1 - 1 / places) / 1000
        for name, heights in (
            ("lowest run", single.min(axis=0)),
            ("highest run", single.max(axis=0)),
        ):
            lines.append(
                Line(
                    f"{runs.name}, {name}",
                    line.colour,
                    places.tolist(),
                    heights.tolist(),
                    dash=DOTS,
                )
            )
    heights = [height for line in lines for height in line.y if height is not None]
    return replace(figure, y=log_axis(figure.y.label, heights), lines=lines)


def ratios(comparison: Comparison, *, seed: int) -> Figure:
    """Return how much slower each file is than the baseline, at each percentile."""
    baseline = Distributions.of(comparison.baseline.results)
    figure = spectrum([(_pooled(comparison.baseline), comparison.baseline.name, _GREY)])
    places = _places(figure.lines[0])
    lines = [
        Line(
            f"bound: {percent(bound)} slower",
            _GREY,
            [float(places[0]), float(places[-1])],
            [1 + bound, 1 + bound],
            dash=DASHES,
        )
        for bound in sorted({other.shift_bound for other in comparison.others})
    ]
    for index, other in enumerate(comparison.others, 1):
        distributions = Distributions.of(other.runs.results)
        value, low, high = ratio_band(baseline, distributions, 1 - 1 / places, seed=seed)
        name, colour = other.runs.name, run_colour(index)
        lines.append(Line(name, colour, places.tolist(), value.tolist()))
        if len(baseline) > 1 and len(distributions) > 1:
            for word, heights in (("low", low), ("high", high)):
                lines.append(
                    Line(f"{name}, {word}", colour, places.tolist(), heights.tolist(), dash=DOTS)
                )
    used = [height for line in lines for height in line.y if height is not None]
    bottom, top = min(1.0, *used) / 1.1, max(1.0, *used) * 1.1
    axis = Axis("ratio", bottom, top, log=True, ticks=ratio_ticks(bottom, top))
    return Figure("Ratio to the baseline", figure.x, axis, lines)


def ratio_ticks(bottom: float, top: float) -> Ticks:
    """Return the ratios that are written at an axis, of which none covers another."""
    least = log(top / bottom) / _RATIOS_AT_AN_AXIS
    kept: list[float] = []
    for ratio in sorted(_RATIOS, key=lambda ratio: abs(log(ratio))):  # from 1 outwards
        if bottom <= ratio <= top and all(abs(log(ratio / tick)) >= least for tick in kept):
            kept.append(ratio)
    return [(ratio, f"{ratio:g}") for ratio in sorted(kept)]


def course(series: Series) -> Figure:
    """Return the metrics of a history, file by file, with their levels."""
    numbers = [float(number) for number in range(1, len(series.files) + 1)]
    lines = []
    for index, line in enumerate(series.lines):
        name = line.metric.name
        colour = COLOURS.get(name, run_colour(index))
        heights = [value / 1000 for value in line.values]
        marks = [True] * len(heights)
        lines.append(Line(name, colour, numbers, heights, marks=marks))
        lines.append(
            Line(f"{name}, level", colour, numbers, _levels(line), dash=DASHES, steps=True)
        )
    ticks: Ticks | None = None
    if sum(len(runs.name) for runs in series.files) <= _MOST_LETTERS:
        ticks = [(number, runs.name) for number, runs in zip(numbers, series.files, strict=True)]
    return Figure(
        "History",
        Axis("file, oldest first", 0.5, len(numbers) + 0.5, ticks=ticks),
        log_axis("latency, ms", [float(height) for line in lines for height in line.y if height]),
        lines,
        at=[
            (change.index + 0.5, COLOURS.get(line.metric.name, run_colour(index)))
            for index, line in enumerate(series.lines)
            for change in line.changes
        ],
    )


def _levels(line: Course) -> list[float]:
    """Return the level at each file, in ms."""
    ends = [0, *[change.index for change in line.changes], len(line.values)]
    levels = []
    for first, last in pairwise(ends):
        middle = float(np.exp(np.log(line.values[first:last]).mean()))
        levels += [middle / 1000] * (last - first)
    return levels


def _pooled(runs: Runs) -> Result:
    """Return a result that has the latencies of all runs."""
    together = histogram()
    for run in runs.results:
        add(together, run.histograms["latency"])
    return replace(runs.results[0], histograms={"latency": encode(together)})


def _places(line: Line) -> Floats:
    """Return where a spectrum's line has points: the inverse distances to 100 %."""
    return np.array([place for place in line.x if place is not None], dtype=np.float64)
