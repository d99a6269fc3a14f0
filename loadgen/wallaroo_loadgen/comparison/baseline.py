"""Files of repeated runs against a baseline: every bound, every verdict, in numbers and in words.

Several bounds are several chances to be wrong. One comparison has 5 % for all of them together,
divided equally (Bonferroni) among the bounded metrics of its files. So intervals are wider than
95 % ones where there are several, hold together with 95 %, and metrics of one run may depend on
each other in any way. (O. J. Dunn, "Multiple comparisons among means", JASA 56, 1961.)
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from wallaroo_loadgen.comparison.ratio import MOST_REPEATS, Ratio, Statement, Verdict, ratio
from wallaroo_loadgen.control.result import Metric, Result

ERROR = 0.05
"""The probability that any statement of a comparison is wrong, at most."""

SHOWN = ("p50", "p90", "p99", "p99.9", "max")
"""Metrics that are shown whether they have a bound or not."""

SETTINGS = ("workload", "rate", "schedule", "connections", "duration", "values")
"""The settings that runs must have in common to be repetitions of each other."""

_MACHINE = ("processor", "processors", "python")
_ONE_RUN = "one run does not show how much runs differ: repeat both (wallaroo load --repeat 5)"


@dataclass(frozen=True)
class Bound:
    """By how much a metric may be larger than the baseline's; 0.1 is 10 %."""

    metric: Metric
    increase: float


@dataclass(frozen=True)
class Runs:
    """The valid runs of one file, which are repetitions of each other."""

    name: str
    results: list[Result]

    def values(self, metric: Metric) -> list[float]:
        """Return a metric of each run, in µs and at least 1."""
        return [max(metric.of(result) or 1.0, 1.0) for result in self.results]

    def middle(self, metric: Metric) -> float:
        """Return the geometric mean of a metric, in µs."""
        return statistics.geometric_mean(self.values(metric))


@dataclass(frozen=True)
class Row:
    """One metric of one file against the baseline's; `bound` is `None` if it is only shown."""

    metric: Metric
    baseline: float
    other: float
    ratio: Ratio
    bound: float | None

    @property
    def statement(self) -> Statement | None:
        """What is known about the bound, if there is one."""
        if self.bound is None:
            return None
        verdict = self.ratio.verdict(self.bound)
        bound = percent(self.bound)
        words = f"{self.metric.name} {self.ratio}: "
        if verdict == Verdict.WORSE:
            words += f"worse by more than {bound}"
        elif verdict == Verdict.NOT_WORSE:
            words += f"not worse within {bound}"
        else:
            words += f"cannot tell whether within {bound}; {self._what_would_decide()}"
        return Statement(f"{self.metric.name} within {bound}", verdict, words)

    def _what_would_decide(self) -> str:
        assert self.bound is not None
        if self.ratio.spreads is None:
            return _ONE_RUN
        repeats = self.ratio.repeats(self.bound)
        if repeats is None:
            return f"not even {MOST_REPEATS:,} runs on each side would be likely to decide"
        return f"about {repeats:,} runs on each side would decide"


@dataclass(frozen=True)
class Compared:
    """One file against the baseline.

    Attributes:
        statements: of each bound.
        notes: other differences between the files' runs.
    """

    runs: Runs
    rows: list[Row]
    statements: list[Statement]
    notes: list[str]

    @property
    def verdict(self) -> Verdict:
        """Worse if anything is; inconclusive if a bounded metric is; else not worse."""
        return Verdict.of([statement.verdict for statement in self.statements])


@dataclass(frozen=True)
class Comparison:
    """Files against a baseline, the first.

    Attributes:
        increase: the bound of metrics that have no bound of their own.
        level: each interval's confidence, so that all hold together with 95 %.
    """

    baseline: Runs
    others: list[Compared]
    increase: float
    level: float

    @property
    def verdict(self) -> Verdict:
        """The verdict of all files together."""
        return Verdict.of([other.verdict for other in self.others])


def compare(
    baseline: Runs, others: Sequence[Runs], bounds: Sequence[Bound], *, increase: float
) -> Comparison:
    """Compare files of runs.

    Args:
        baseline: the file that others are compared with.
        others: the other files.
        bounds: the metrics that decide.
        increase: the bound of metrics that have no bound of their own.
    """
    error = ERROR / (len(others) * len(bounds))
    bounded = {bound.metric: bound.increase for bound in bounds}
    metrics = sorted({*bounded, *map(Metric.parse, SHOWN)}, key=_place)
    compared = []
    for other in others:
        rows = [
            Row(
                metric,
                baseline.middle(metric),
                other.middle(metric),
                ratio(baseline.values(metric), other.values(metric), 1 - error),
                bounded.get(metric),
            )
            for metric in metrics
        ]
        statements = [row.statement for row in rows if row.statement is not None]
        notes = differences(baseline.results[0], other.results[0])
        compared.append(Compared(other, rows, statements, notes))
    return Comparison(baseline, compared, increase, 1 - error)


def differences(first: Result, second: Result) -> list[str]:
    """Return other differences between two runs that may change the latency."""
    pairs = [(name, first.config[name], second.config[name]) for name in SETTINGS]
    pairs += [(name, first.machine.get(name), second.machine.get(name)) for name in _MACHINE]
    return [f"{name}: {new}, not {old}" for name, old, new in pairs if old != new]


def _place(metric: Metric) -> tuple[float, str]:
    """Return where a metric stands in a table: percentiles by size, then the others."""
    return (101.0 if metric.percentile is None else metric.percentile, metric.name)


def percent(part: float) -> str:
    """Return a part of 1 as a percentage without needless digits."""
    return f"{part * 100:.3g} %"
