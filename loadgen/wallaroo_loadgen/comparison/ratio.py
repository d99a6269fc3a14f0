"""How much larger a metric is than the baseline's, and what repeated runs say about a bound.

A run is one observation. Thousands of messages of one run share its machine, its memory and its
neighbours, so they do not show how much the next run will differ; only repeated runs do.

Method: latencies vary by factors, so each run gives the logarithm of its metric. Two sides are
compared by Welch's t interval of the difference of means, which is the logarithm of the ratio of
geometric means. Assumed: runs are independent of each other, and the logarithms are roughly normal
from run to run; the two sides may spread differently. (B. L. Welch, "The generalization of
'Student's' problem when several different population variances are involved", Biometrika 34, 1947.)

The verdict is read off the interval, as in a test of non-inferiority: all of it above the bound,
all of it below, or neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from scipy.special import stdtrit

POWER = 0.8
"""Probability with which `Ratio.repeats` runs would decide."""

MOST_REPEATS = 1000
"""The most runs that `Ratio.repeats` returns."""

RESOLUTION = 1 / 1024
"""A histogram's classes are this wide at most, as a part of the value, and never below 1 µs."""


class Verdict(StrEnum):
    """What a comparison says about a bound."""

    WORSE = "worse"
    NOT_WORSE = "not worse"
    INCONCLUSIVE = "inconclusive"

    @classmethod
    def of(cls, several: Sequence[Verdict]) -> Verdict:
        """Return the verdict of several bounds together: each that was asked for must be kept."""
        for verdict in (cls.WORSE, cls.INCONCLUSIVE):
            if verdict in several:
                return verdict
        return cls.NOT_WORSE


@dataclass(frozen=True)
class Statement:
    """What runs say about one bound.

    Attributes:
        bound: the bound in words, such as `p99 within 10 %`.
        verdict: whether it is kept.
        words: the verdict and its reason, as a sentence.
    """

    bound: str
    verdict: Verdict
    words: str


@dataclass(frozen=True)
class Ratio:
    """A ratio of geometric means with its interval.

    Attributes:
        value: the ratio.
        low, high: the interval's ends; `None` where a side has one run only.
        spreads: standard deviations of the logarithms, of the baseline and the other.
        level: the interval's confidence, such as 0.95.
    """

    value: float
    low: float | None
    high: float | None
    spreads: tuple[float, float] | None
    level: float

    def verdict(self, bound: float) -> Verdict:
        """Return whether the increase is over `bound` (0.1: 10 %), as far as the runs can tell."""
        if self.low is not None and self.low > 1 + bound:
            return Verdict.WORSE
        if self.high is not None and self.high <= 1 + bound:
            return Verdict.NOT_WORSE
        return Verdict.INCONCLUSIVE

    def repeats(self, bound: float) -> int | None:
        """Return how many runs on each side would decide about the bound, with `POWER`.

        It is the usual sample size of a test of non-inferiority, if ratio and spread are what these
        runs say. From a few runs both are rough, and so is the number. `None`: not known from one
        run, or more than `MOST_REPEATS`, because the ratio is too near to the bound.
        """
        distance = abs(math.log(self.value) - math.log1p(bound))
        if self.spreads is None:
            return None
        variances = [spread**2 for spread in self.spreads]
        runs = np.arange(2, MOST_REPEATS + 1)
        degrees = (runs - 1) * sum(variances) ** 2 / sum(part**2 for part in variances)
        quantiles = stdtrit(degrees, (1 + self.level) / 2) + stdtrit(degrees, POWER)
        enough = np.flatnonzero(quantiles * np.sqrt(sum(variances) / runs) <= distance)
        return int(runs[enough[0]]) if len(enough) else None

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"× {self.value:.2f}"  # noqa: RUF001 - a multiplication sign is meant
        return f"× {self.value:.2f} ({_brief(self.low)} to {_brief(self.high)})"  # noqa: RUF001 - likewise


def _brief(factor: float) -> str:
    """Return an end of an interval, but not the digits of one that says nothing."""
    if factor < 0.01:
        return "under 0.01"
    return "over 100" if factor > 100 else f"{factor:.2f}"


def ratio(baseline: Sequence[float], other: Sequence[float], level: float = 0.95) -> Ratio:
    """Return how much larger the other runs' metric is than the baseline's.

    Args:
        baseline: the metric of each run, in µs; less than 1 counts as 1.
        other: likewise.
        level: the interval's confidence.
    """
    sides = [np.maximum(np.array(side, dtype=np.float64), 1.0) for side in (baseline, other)]
    first, second = [np.log(side) for side in sides]
    difference = float(second.mean() - first.mean())
    if min(len(first), len(second)) < 2:
        return Ratio(math.exp(difference), None, None, None, level)
    # Values are rounded to a class: runs that look equal are not known to be.
    rounding = [max(RESOLUTION, 1 / float(side.min())) ** 2 / 12 for side in sides]
    variances = [
        max(float(logs.var(ddof=1)), least)
        for logs, least in zip((first, second), rounding, strict=True)
    ]
    parts = [variances[0] / len(first), variances[1] / len(second)]
    degrees = sum(parts) ** 2 / (
        parts[0] ** 2 / (len(first) - 1) + parts[1] ** 2 / (len(second) - 1)
    )
    width = float(stdtrit(degrees, (1 + level) / 2)) * math.sqrt(sum(parts))
    return Ratio(
        value=math.exp(difference),
        low=math.exp(difference - width),
        high=math.exp(min(difference + width, 700.0)),  # two runs may allow more than a float
        spreads=(math.sqrt(variances[0]), math.sqrt(variances[1])),
        level=level,
    )
