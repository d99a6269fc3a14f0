"""Intervals, verdicts and repeats, held to what they promise by simulation (seeded)."""

from __future__ import annotations

import numpy as np
import pytest
from wallaroo_loadgen.comparison.ratio import MOST_REPEATS, Ratio, Verdict, ratio

SPREAD = 0.1  # of the logarithms, from run to run
TRIALS = 1000


def verdicts(
    change: float, bound: float, runs: int, *, spread: float = SPREAD, level: float = 0.95
) -> list[Verdict]:
    """Return the verdicts of many comparisons whose true ratio is `change`."""
    random = np.random.default_rng(20)
    found = []
    for _ in range(TRIALS):
        first = np.exp(random.normal(9.0, spread, runs))
        second = np.exp(random.normal(9.0 + np.log(change), spread, runs))
        found.append(ratio(first.tolist(), second.tolist(), level).verdict(bound))
    return found


@pytest.mark.parametrize("runs", [3, 5, 10])
def test_at_the_bound_either_error_is_as_rare_as_the_level_says(runs: int) -> None:
    found = verdicts(1.1, 0.1, runs)
    for wrong in (Verdict.WORSE, Verdict.NOT_WORSE):
        part = found.count(wrong) / TRIALS
        assert part < 0.025 + 0.015  # three standard errors of 1,000 trials
        assert part > 0.005  # and the interval is not so wide that nothing is ever said


def test_like_with_like_is_not_called_worse() -> None:
    assert verdicts(1.0, 0.1, 5).count(Verdict.WORSE) == 0


def test_the_repeats_that_are_told_decide_with_the_power_that_is_promised() -> None:
    told = Ratio(1.2, 1.0, 1.4, (SPREAD, SPREAD), 0.95).repeats(0.1)
    assert told == 22
    assert verdicts(1.2, 0.1, told).count(Verdict.WORSE) / TRIALS == pytest.approx(0.8, abs=0.05)
    few = verdicts(1.2, 0.1, 5)
    assert few.count(Verdict.INCONCLUSIVE) > TRIALS / 2
    quiet = Ratio(1.2, 1.0, 1.4, (0.03, 0.03), 0.95).repeats(0.1)
    assert quiet == 4
    assert verdicts(1.2, 0.1, quiet, spread=0.03).count(Verdict.WORSE) / TRIALS > 0.75


def test_several_bounds_share_the_error() -> None:
    random = np.random.default_rng(4)
    wrong = 0
    for _ in range(TRIALS):
        first = np.exp(random.normal(9.0, SPREAD, (5, 5)))
        second = np.exp(random.normal(9.0 + np.log(1.1), SPREAD, (5, 5)))
        wrong += any(
            ratio(a.tolist(), b.tolist(), 1 - 0.05 / 5).verdict(0.1) != Verdict.INCONCLUSIVE
            for a, b in zip(first, second, strict=True)
        )
    assert 0.01 < wrong / TRIALS < 0.05 + 0.02


def test_an_interval_that_says_nothing_is_inconclusive() -> None:
    wide = Ratio(1.02, 0.14, 7.42, (0.5, 0.5), 0.95)
    assert wide.verdict(0.1) == Verdict.INCONCLUSIVE
    assert str(wide) == "× 1.02 (0.14 to 7.42)"  # noqa: RUF001 - a multiplication sign is meant
    told = wide.repeats(0.1)
    assert told is not None
    assert 100 < told < MOST_REPEATS


def test_one_run_says_nothing() -> None:
    one = ratio([100], [900])
    assert one.value == pytest.approx(9)
    assert one.low is None
    assert one.verdict(0.1) == Verdict.INCONCLUSIVE
    assert one.repeats(0.1) is None
    assert ratio([100], [900, 910, 920]).verdict(0.1) == Verdict.INCONCLUSIVE


def test_at_the_bound_itself_no_number_of_runs_decides() -> None:
    assert Ratio(1.1, 0.9, 1.3, (0.1, 0.1), 0.95).repeats(0.1) is None


def test_runs_that_look_equal_are_not_known_to_be() -> None:
    same = ratio([1000, 1000], [1000, 1000])
    assert same.low is not None
    assert same.low < 1
    assert same.verdict(0.1) == Verdict.NOT_WORSE
    assert ratio([2, 2], [2, 2]).verdict(0.1) == Verdict.INCONCLUSIVE  # classes of 1 µs


def test_an_interval_needs_no_more_than_a_float_holds() -> None:
    assert ratio([1, 10**9], [1, 10**9]).high is not None


def test_welchs_interval_is_the_published_one() -> None:
    # exp of samples with means 1 and 2, variances 1 and 4, sizes 5 and 4: 4.22 degrees of freedom.
    first = np.exp(np.array([-0.2649, 0.3675, 1.0, 1.6325, 2.2649]) + 5)
    second = np.exp(np.array([-0.3238, 1.2254, 2.7746, 4.3238]) + 5)
    found = ratio(first.tolist(), second.tolist())
    assert np.log(found.value) == pytest.approx(1.0, abs=1e-3)
    width = 2.720 * np.sqrt(1 / 5 + 4 / 4)  # Student's t at 97.5 % and 4.22 degrees
    assert np.log(found.high) - np.log(found.low) == pytest.approx(2 * width, rel=0.01)


def test_of_several_verdicts_the_worst_counts() -> None:
    worse, fine, unknown = Verdict.WORSE, Verdict.NOT_WORSE, Verdict.INCONCLUSIVE
    assert Verdict.of([fine, unknown, worse]) == worse
    assert Verdict.of([fine, unknown]) == unknown
    assert Verdict.of([fine, fine]) == fine
