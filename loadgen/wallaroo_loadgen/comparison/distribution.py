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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy  # its part `stats` is imported when it is asked for, which takes a second

from wallaroo_loadgen.common.measure import recorded
from wallaroo_loadgen.common.schedule import Floats, Int64s
from wallaroo_loadgen.control.result import Result

_POINTS = 200  # latencies at which distributions are compared, evenly spaced in their logarithm
_LEAST_ERROR = 0.01  # added to standard errors, which are 0 where all runs agree
_DEALS = 1999  # of the permutation test, where all would be more
_BATCH = 200  # deals at once: some 10 MB with ten runs a side

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
        p: how often chance alone gives as much; `None` where a side has one run only.
        least_p: the smallest p that so few runs can give.
        level: p up to this counts.
    """

    part: float
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

    def in_errors(first: Int64s, second: Int64s, axis: int = -1) -> Floats:
        """Return the largest difference of sides of these runs, in standard errors."""
        left, right = parts[first], parts[second]
        errors = np.sqrt(
            left.var(axis=-2, ddof=1) / left.shape[-2]
            + right.var(axis=-2, ddof=1) / right.shape[-2]
        )
        difference = left.mean(axis=-2) - right.mean(axis=-2)
        largest: Floats = (difference / (errors + _LEAST_ERROR)).max(axis=-1)
        return largest

    difference = parts[: len(baseline)].mean(axis=0) - parts[len(baseline) :].mean(axis=0)
    part = max(0.0, float(difference.max()))
    least_p = max(1 / math.comb(len(parts), len(baseline)), 1 / (_DEALS + 1))
    if min(len(baseline), len(other)) < 2:
        return Shift(part, None, least_p, level)
    test = scipy.stats.permutation_test(
        (np.arange(len(baseline)), np.arange(len(baseline), len(parts))),
        in_errors,
        alternative="greater",
        n_resamples=_DEALS,
        batch=_BATCH,
        vectorized=True,
        rng=np.random.default_rng(seed),
    )
    return Shift(part, float(test.pvalue), least_p, level)


def _steps(run: Result) -> Steps:
    _, values, counts = recorded(run.histogram("latency"))
    return values.astype(np.float64), np.cumsum(counts) / counts.sum()
