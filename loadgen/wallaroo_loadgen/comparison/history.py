"""A history: files of runs in the order in which they were made, and where their level changed.

A bound compares two measurements, and misses small changes that add up; a history shows them. Each
file of runs is one observation (the geometric mean of its runs: they were made together, so they
are not independent).

Method: `ruptures.Pelt` finds the levels whose medians lie closest to the logarithms of the
observations; distances are not squared, so one outlier neither makes a change nor hides one. The
unit is the noise from one observation to the next, and each change costs a penalty that grows with
the logarithm of their number. Without a change, one is found in about one history of thirty.
Assumed: without a change, observations are independent of each other. Slow drift, and other
programs that are busy for days, break this; they show as changes, and they are changes.

The level before and after is that of the observations at hand: a change that was only just found
looks larger than it is.

(R. Killick, P. Fearnhead, I. A. Eckley, "Optimal detection of changepoints with a linear
computational cost", JASA 107, 2012, for Pelt. C. Truong, L. Oudre, N. Vayatis, "Selective review of
offline change point detection methods", Signal Processing 167, 2020, for ruptures.)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from wallaroo_loadgen.comparison.baseline import SETTINGS, Bound, Runs, percent
from wallaroo_loadgen.comparison.ratio import RESOLUTION, Statement, Verdict
from wallaroo_loadgen.control.result import Metric
from wallaroo_loadgen.control.verdict import show

FEWEST = 10
"""Files from which on a change is looked for."""

_SHORTEST = 3  # observations at a level: it is found when the third of a new one is there
_PENALTY = 2.0  # of a change, times the logarithm of the number of observations
_NOISE = 1.4826 / 2**0.5  # makes a standard deviation of the median difference of neighbours


@dataclass(frozen=True)
class Change:
    """A change of level.

    Attributes:
        index: of the first observation at the new level.
        before, after: geometric means of the levels, up to the next change on each side.
    """

    index: int
    before: float
    after: float

    @property
    def ratio(self) -> float:
        """How much larger the new level is."""
        return self.after / self.before


def changes(values: Sequence[float]) -> list[Change]:
    """Return where the level of the values changes, in their order.

    Args:
        values: observations in the order in which they were made, all above 0.
    """
    import ruptures  # which takes a second

    if len(values) < FEWEST:
        return []
    logs = np.log(np.array(values, dtype=np.float64))
    noise = max(_NOISE * float(np.median(np.abs(np.diff(logs)))), RESOLUTION)
    search = ruptures.Pelt(model="l1", min_size=_SHORTEST, jump=1).fit(logs / noise)
    *places, _ = search.predict(pen=_PENALTY * np.log(len(logs)))
    ends = [0, *places, len(logs)]
    levels = [float(np.exp(logs[first:last].mean())) for first, last in pairwise(ends)]
    return [
        Change(place, before, after)
        for place, (before, after) in zip(places, pairwise(levels), strict=True)
    ]


@dataclass(frozen=True)
class Line:
    """One metric over time.

    Attributes:
        values: geometric means of the files' runs, in µs.
        changes: where their level changes.
        statement: whether the newest level is above the one before it by more than the bound.
    """

    metric: Metric
    values: list[float]
    changes: list[Change]
    statement: Statement


@dataclass(frozen=True)
class Series:
    """Files of runs with the same settings on machines of the same kind, oldest first.

    Attributes:
        label: what the runs have in common.
    """

    label: str
    files: list[Runs]
    lines: list[Line]

    @property
    def statements(self) -> list[Statement]:
        """What is known of each metric."""
        return [line.statement for line in self.lines]

    @property
    def verdict(self) -> Verdict:
        """The verdict of all metrics together."""
        return Verdict.of([statement.verdict for statement in self.statements])


def histories_of(files: Sequence[Runs], bounds: Sequence[Bound]) -> list[Series]:
    """Return histories of files that can be compared, each with its changes.

    Args:
        files: in any order; those of other settings or another processor make another history.
        bounds: the metrics to follow.
    """
    groups: dict[str, list[Runs]] = {}
    for runs in sorted(files, key=lambda runs: (runs.results[0].started or "", runs.name)):
        groups.setdefault(_kind(runs), []).append(runs)
    series = []
    for group in groups.values():
        lines = []
        for bound in bounds:
            values = [runs.middle(bound.metric) for runs in group]
            changed = changes(values)
            statement = _statement(bound, changed, group)
            lines.append(Line(bound.metric, values, changed, statement))
        series.append(Series(_label(group[-1]), group, lines))
    return series


def _statement(bound: Bound, changed: Sequence[Change], files: Sequence[Runs]) -> Statement:
    """Return what was found of a metric: every change, and whether the last one is too large."""
    metric, within = bound.metric.name, percent(bound.increase)
    name = f"{metric}: newest level within {within}"
    if len(files) < FEWEST:
        words = f"{metric}: cannot tell; {FEWEST} files or more are needed"
        return Statement(name, Verdict.INCONCLUSIVE, words)
    if not changed:
        return Statement(name, Verdict.NOT_WORSE, f"{metric}: no change")
    sentences = [
        f"{metric} × {change.ratio:.2f} "  # noqa: RUF001 - multiplication
        f"({show(change.before)} to {show(change.after)}) from "
        f"{files[change.index].name} on"
        for change in changed
    ]
    if changed[-1].ratio > 1 + bound.increase:
        return Statement(
            name, Verdict.WORSE, f"{'; '.join(sentences)}: worse by more than {within}"
        )
    return Statement(name, Verdict.NOT_WORSE, "; ".join(sentences))


def _kind(runs: Runs) -> str:
    """Return what must be equal for runs to be in one history."""
    run = runs.results[0]
    settings = [run.config[name] for name in SETTINGS]
    machine = [run.machine.get(name) for name in ("processor", "processors")]
    return json.dumps([settings, machine], sort_keys=True)


def _label(runs: Runs) -> str:
    run = runs.results[0]
    machine = f"{run.machine.get('processors', '?')} × {run.machine.get('processor', 'unknown')}"  # noqa: RUF001 - multiplication
    return f"{run.label}, {run.config['schedule']}, on {machine}"
