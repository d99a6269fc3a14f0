"""A history: files of runs in the order in which they were made, and where their level changed.

A bound compares two measurements, and misses small changes that add up; a history shows them. Each
file of runs is one observation (the geometric mean of its runs: they were made together, so they
are not independent).

Method: hierarchical division, as E-divisive does it. In a stretch of observations the split is
found that separates two levels best, and the pair of splits that separates three levels best,
because a single split does not find a level that came and went (least squares, by
`ruptures.KernelCPD`). Observations are replaced by their ranks in the stretch first, so one outlier
neither makes a change nor hides one. Splits count when a permutation test says so: of the same
observations in random order, no more than half of `level` separate as well, half because there are
two questions. Then the parts are searched in the same way. Ranks show well that there is a change,
but not where: in ranks a step of 50 % is not larger than one of 0.1 %. So each split is then moved
to where the values lie closest to the medians beside it. A history without any change shows one
with a probability of `level`; each part that a true change leaves has the same probability again.
Assumed: without a change the observations are exchangeable. Slow drift, and other programs that are
busy for days, break this; they show as changes, and they are changes.

The level before and after is that of the observations at hand: a change that was only just found
looks larger than it is.

(D. Matteson, N. James, "A nonparametric approach for multiple change point analysis of
multivariate data", JASA 109, 2014; used so on benchmarks by D. Daly et al., "The use of change
point detection to identify software performance regressions in a continuous integration system",
ICPE 2020. C. Truong, L. Oudre, N. Vayatis, "Selective review of offline change point detection
methods", Signal Processing 167, 2020, for ruptures. A. Lung-Yut-Fong, C. Lévy-Leduc, O. Cappé,
"Homogeneity and change-point detection tests for multivariate data using rank statistics", Journal
de la SFdS 156, 2015, for ranks.)
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy  # its part `stats` is imported when it is asked for, which takes a second

from wallaroo_loadgen.common.schedule import Floats
from wallaroo_loadgen.comparison.baseline import ERROR, SETTINGS, Bound, Runs, percent
from wallaroo_loadgen.comparison.ratio import Statement, Verdict
from wallaroo_loadgen.control.result import Metric
from wallaroo_loadgen.control.verdict import show

SHORTEST = 3
"""Observations on each side of a change: it is found when the third of a new level is there."""

_COUNTS = (1, 2)  # splits that are tried at once
_ORDERS = 999  # random orders of a permutation test


@dataclass(frozen=True)
class Change:
    """A change of level.

    Attributes:
        index: of the first observation at the new level.
        before, after: geometric means of the levels, up to the next change on each side.
        p: how often observations in random order separate as well.
    """

    index: int
    before: float
    after: float
    p: float

    @property
    def ratio(self) -> float:
        """How much larger the new level is."""
        return self.after / self.before


def fewest(level: float) -> int:
    """Return how many observations there must be before one change can be found.

    The clearest is one in the middle. Random orders show it too: two of them where both halves are
    of a size, else four.
    """

    def least_p(count: int) -> float:
        return len(_COUNTS) * (4 if count % 2 else 2) / math.comb(count, count // 2)

    return next(count for count in range(3 * SHORTEST, 100) if least_p(count) <= level)


def changes(values: Sequence[float], *, level: float, seed: int) -> list[Change]:
    """Return where the level of the values changes, in their order.

    Args:
        values: observations in the order in which they were made, all above 0.
        level: the probability of finding a change where there is none.
        seed: of the random orders.
    """
    logs = np.log(np.array(values, dtype=np.float64))
    changed = dict(sorted(_search(logs, 0, level, np.random.default_rng(seed))))
    ends = [0, *changed, len(logs)]
    levels = [float(np.exp(logs[first:last].mean())) for first, last in pairwise(ends)]
    return [
        Change(index, levels[place], levels[place + 1], p)
        for place, (index, p) in enumerate(changed.items())
    ]


def _search(
    logs: Floats, start: int, level: float, random: np.random.Generator
) -> list[tuple[int, float]]:
    """Return the changes in a stretch that begins at `start`, each with its p."""
    if len(logs) < fewest(level):
        return []
    ranks = scipy.stats.rankdata(logs)
    for count in _COUNTS:  # the simpler answer first
        test = scipy.stats.permutation_test(
            (ranks,),
            lambda mixed, count=count: _gain(mixed, _splits(mixed, count)),
            permutation_type="pairings",  # of one sample: its orders
            alternative="greater",
            n_resamples=_ORDERS,
            rng=random,
        )
        p = len(_COUNTS) * float(test.pvalue)
        if p <= level:
            placed = _placed(logs, _splits(ranks, count))
            changed = [(start + split, p) for split in placed]
            for first, last in pairwise([0, *placed, len(logs)]):
                changed += _search(logs[first:last], start + first, level, random)
            return changed
    return []


def _splits(ranks: Floats, count: int) -> list[int]:
    """Return where the second, third, … of levels begin that fit the ranks best."""
    import ruptures  # which takes a second

    detection = ruptures.KernelCPD(kernel="linear", min_size=SHORTEST)
    return [int(end) for end in detection.fit(ranks).predict(n_bkps=count)[:-1]]


def _placed(logs: Floats, splits: Sequence[int]) -> list[int]:
    """Return the splits, each moved between its neighbours to where the values fit best."""
    ends = [0, *splits, len(logs)]
    for place in range(1, len(ends) - 1):
        first, last = ends[place - 1], ends[place + 1]
        misfits = [
            _misfit(logs[first:split]) + _misfit(logs[split:last])
            for split in range(first + SHORTEST, last - SHORTEST + 1)
        ]
        ends[place] = first + SHORTEST + int(np.argmin(misfits))
    return ends[1:-1]


def _misfit(logs: Floats) -> float:
    """Return how far values lie from their median, in all: an outlier counts once, not squared."""
    return float(np.abs(logs - np.median(logs)).sum())


def _gain(ranks: Floats, splits: Sequence[int]) -> float:
    """Return how much smaller the sum of squares is with these levels than with one."""
    parts = [ranks[first:last] for first, last in pairwise([0, *splits, len(ranks)])]
    return float(sum(len(part) * (part.mean() - ranks.mean()) ** 2 for part in parts))


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


def histories_of(files: Sequence[Runs], bounds: Sequence[Bound], *, seed: int) -> list[Series]:
    """Return histories of files that can be compared, each with its changes.

    The 5 % for finding a change where there is none are divided among the metrics of a history.

    Args:
        files: in any order; those of other settings or another processor make another history.
        bounds: the metrics to follow.
        seed: of permutations.
    """
    groups: dict[str, list[Runs]] = {}
    for runs in sorted(files, key=lambda runs: (runs.results[0].started or "", runs.name)):
        groups.setdefault(_kind(runs), []).append(runs)
    level = ERROR / len(bounds)
    series = []
    for group in groups.values():
        lines = []
        for bound in bounds:
            values = [runs.middle(bound.metric) for runs in group]
            changed = changes(values, level=level, seed=seed)
            statement = _statement(bound, changed, group, fewest(level))
            lines.append(Line(bound.metric, values, changed, statement))
        series.append(Series(_label(group[-1]), group, lines))
    return series


def _statement(
    bound: Bound, changed: Sequence[Change], files: Sequence[Runs], fewest: int
) -> Statement:
    """Return what was found of a metric: every change, and whether the last one is too large."""
    metric, within = bound.metric.name, percent(bound.increase)
    name = f"{metric}: newest level within {within}"
    if len(files) < fewest:
        words = f"{metric}: cannot tell; {fewest} files or more are needed"
        return Statement(name, Verdict.INCONCLUSIVE, words)
    if not changed:
        return Statement(name, Verdict.NOT_WORSE, f"{metric}: no change")
    sentences = [
        f"{metric} × {change.ratio:.2f} "  # noqa: RUF001 - multiplication
        f"({show(change.before)} to {show(change.after)}) from "
        f"{files[change.index].name} on, p = {change.p:.2g}"
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
