"""Whole distributions: medians can hold while a run splits into fast and slow outputs.

A run is one observation here too (see `ratio`): the observation is a distribution, and a side's
distribution is the mean of its runs'.

What is measured: the part of the outputs that is slower by more than a bound. It is the one-sided
Kolmogorov-Smirnov distance between the baseline and the other side with its latencies divided by
1 + bound: the largest x for which P(baseline <= t) - P(other <= t * (1 + bound)) = x at some t. By
Strassen's theorem no pairing of outputs has a smaller part in which the other is slower by more.
(V. Strassen, "The existence of probability measures with given marginals", Annals of Mathematical
Statistics 36, 1965.)

Whether it is more than chance: a permutation test. If the sides differed by the bound only, any way
to deal the runs to the sides would be as likely as this one; p is the part of all deals whose
statistic is as large. The statistic is the largest difference of the two distributions in
standard errors, from run to run, so that the test is about the difference and not about a side that
varies more. Assumed: runs are independent; exact if, but for the bound, they are exchangeable, else
approximate. (`scipy.stats.permutation_test`, all deals where they are few. E. Chung, J. Romano,
"Exact and asymptotically robust permutation tests", Annals of Statistics 41, 2013.) The
Kolmogorov-Smirnov test's own p cannot be used: its observations would be outputs, which are not
independent.

How large it is: a bootstrap of the runs of each side (`scipy.stats.bootstrap`, percentile method).
It only describes, and decides nothing: with fewer than about ten runs such intervals are too
narrow. (A. Davison, D. Hinkley, "Bootstrap Methods and their Application", 1997.)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from wallaroo_loadgen.common.measure import recorded
from wallaroo_loadgen.common.schedule import Floats, Int64s
from wallaroo_loadgen.control.result import Result

_POINTS = 200  # latencies at which distributions are compared, evenly spaced in their logarithm
_LEAST_ERROR = 0.01  # added to standard errors, which are 0 where all runs agree
_DEALS = 1999  # of the permutation test, where all would be more
_RESAMPLES = 2000
_BATCH = 200  # deals or resamples at once: some 10 MB with ten runs a side

Steps = tuple[Floats, Floats]
"""A run's different latencies in µs, rising, and the part of its outputs up to each."""


class Distributions:
    """The latencies of runs, each as the part of its outputs up to a latency."""

    def __init__(self, runs: Sequence[Steps]) -> None:
        self._runs = runs

    @classmethod
    def of(cls, results: Sequence[Result]) -> Distributions:
        """Return the distributions of runs in which something was measured."""
        return cls([_steps(result) for result in results])

    def __len__(self) -> int:
        return len(self._runs)

    @property
    def extremes(self) -> tuple[float, float]:
        """The smallest and the largest latency, in µs."""
        return (
            min(float(values[0]) for values, _ in self._runs),
            max(float(values[-1]) for values, _ in self._runs),
        )

    def below(self, micros: Floats) -> Floats:
        """Return, a row for each run, the parts of its outputs that took these times or less."""
        rows = []
        for values, parts in self._runs:
            rows.append(np.append(0.0, parts)[np.searchsorted(values, micros, side="right")])
        return np.stack(rows)

    def quantiles(self, parts: Floats) -> Floats:
        """Return, a row for each run, the latencies in µs that these parts of 1 did not exceed."""
        rows = []
        for values, reached in self._runs:
            places = np.searchsorted(reached, parts - 1e-12)
            rows.append(values[np.minimum(places, len(values) - 1)])
        return np.stack(rows)


@dataclass(frozen=True)
class Shift:
    """The part of the outputs that is slower than in the baseline by more than a bound.

    Attributes:
        part: of 1.
        low, high: its 95 % bootstrap interval.
        p: how often chance alone gives as much. All three are `None` where a side has one run only.
        least_p: the smallest p that so few runs can give.
        level: p up to this counts.
    """

    part: float
    low: float | None
    high: float | None
    p: float | None
    least_p: float
    level: float

    @property
    def worse(self) -> bool:
        """Whether it is more than chance."""
        return self.p is not None and self.p <= self.level

    @property
    def blind(self) -> bool:
        """Whether there are too few runs to find any difference."""
        return self.least_p > self.level

    @property
    def needed(self) -> int:
        """The runs on each side from which a difference can be found."""
        return next(n for n in range(2, 100) if 1 / math.comb(2 * n, n) <= self.level)


def shift(
    baseline: Distributions, other: Distributions, bound: float, *, level: float, seed: int
) -> Shift:
    """Return which part of the outputs is slower by more than `bound`, and whether by chance."""
    slower = 1 + bound
    ends = [baseline.extremes, tuple(end / slower for end in other.extremes)]
    grid = np.geomspace(
        max(1.0, min(low for low, _ in ends)), max(2.0, *(high for _, high in ends)), _POINTS
    )
    parts = np.concatenate([baseline.below(grid), other.below(grid * slower)])

    def distance(first: Int64s, second: Int64s, axis: int = -1) -> Floats:
        """Return the distance between sides that consist of these runs; `axis` is the last."""
        largest: Floats = (parts[first].mean(axis=-2) - parts[second].mean(axis=-2)).max(axis=-1)
        return largest

    def in_errors(first: Int64s, second: Int64s, axis: int = -1) -> Floats:
        """Return the largest difference between such sides in standard errors."""
        left, right = parts[first], parts[second]
        errors = np.sqrt(
            left.var(axis=-2, ddof=1) / left.shape[-2]
            + right.var(axis=-2, ddof=1) / right.shape[-2]
        )
        difference = left.mean(axis=-2) - right.mean(axis=-2)
        largest: Floats = (difference / (errors + _LEAST_ERROR)).max(axis=-1)
        return largest

    sides = (np.arange(len(baseline)), np.arange(len(baseline), len(parts)))
    part = max(0.0, float(distance(*sides)))
    least_p = max(1 / math.comb(len(parts), len(baseline)), 1 / (_DEALS + 1))
    if min(len(baseline), len(other)) < 2:
        return Shift(part, None, None, None, least_p, level)
    test = stats.permutation_test(
        sides,
        in_errors,
        alternative="greater",
        n_resamples=_DEALS,
        batch=_BATCH,
        vectorized=True,
        rng=np.random.default_rng(seed),
    )
    interval = _bootstrap(sides, distance, seed)
    return Shift(
        part,
        max(0.0, float(interval.low)),
        float(interval.high),
        float(test.pvalue),
        least_p,
        level,
    )


def ratio_band(
    baseline: Distributions, other: Distributions, parts: Floats, *, seed: int
) -> tuple[Floats, Floats, Floats]:
    """Return the ratio of geometric mean quantiles at these parts of 1, with a bootstrap band.

    Each quantile has its own 95 %: the band says nothing about all of them together. Without
    repeated runs on both sides the band is as wide as the line.
    """
    logs = np.log(
        np.maximum(np.concatenate([baseline.quantiles(parts), other.quantiles(parts)]), 1.0)
    )

    def difference(first: Int64s, second: Int64s, axis: int = -1) -> Floats:
        """Return the differences of means, a row for each quantile; `axis` is the last."""
        differences: Floats = logs[second].mean(axis=-2) - logs[first].mean(axis=-2)
        return np.moveaxis(differences, -1, 0)

    sides = (np.arange(len(baseline)), np.arange(len(baseline), len(logs)))
    value = difference(*sides)
    if min(len(baseline), len(other)) < 2:
        return np.exp(value), np.exp(value), np.exp(value)
    interval = _bootstrap(sides, difference, seed)
    return np.exp(value), np.exp(interval.low), np.exp(interval.high)


def _bootstrap(
    sides: tuple[Int64s, Int64s], statistic: Callable[[Int64s, Int64s], Floats], seed: int
) -> Any:
    """Return the 95 % interval (`low`, `high`) of a statistic of runs given by their numbers."""
    return stats.bootstrap(
        sides,
        statistic,
        method="percentile",
        n_resamples=_RESAMPLES,
        batch=_BATCH,
        vectorized=True,
        rng=np.random.default_rng(seed),
    ).confidence_interval


def _steps(run: Result) -> Steps:
    _, values, counts = recorded(run.histogram("latency"))
    return values.astype(np.float64), np.cumsum(counts) / counts.sum()
