"""Whole distributions: what medians hide is found, and chance is not taken for it (seeded)."""

from __future__ import annotations

import numpy as np
import pytest
from load_runs import result
from wallaroo_loadgen.comparison.distribution import Distributions, shift

BOUND = 0.1


def steps(latencies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a run's latencies as `Distributions` takes them."""
    return np.sort(latencies), np.arange(1, len(latencies) + 1) / len(latencies)


def side(
    random: np.random.Generator, runs: int, scale: float = 1.0, outputs: int = 100
) -> Distributions:
    """Return runs whose level varies by 10 % from one to the next."""
    found = []
    for _ in range(runs):
        middle = np.log(10_000 * scale) + random.normal(0, 0.1)
        found.append(steps(np.exp(random.normal(middle, 0.4, outputs))))
    return Distributions(found)


def test_chance_is_taken_for_a_shift_as_rarely_as_the_level_says() -> None:
    random = np.random.default_rng(8)
    trials = 150
    wrong = 0
    for seed in range(trials):
        first, second = side(random, 4), side(random, 4, 1 + BOUND)
        wrong += shift(first, second, BOUND, level=0.05, seed=seed).worse
    assert 0 < wrong / trials < 0.05 + 0.05


def test_a_shift_is_found_with_its_size() -> None:
    random = np.random.default_rng(2)
    found = shift(side(random, 5), side(random, 5, 2.0), BOUND, level=0.05, seed=0)
    assert found.worse
    assert 0.3 < found.part < 0.8
    better = shift(side(random, 5), side(random, 5, 0.5), BOUND, level=0.05, seed=0)
    assert not better.worse
    assert better.part < 0.05


def test_a_run_that_splits_is_found_though_its_median_is_better() -> None:
    random = np.random.default_rng(3)
    whole = Distributions([steps(random.normal(10_000, 300, 400)) for _ in range(4)])
    halves = [np.r_[random.normal(6_000, 200, 205), random.normal(14_000, 200, 195)]] * 4
    split = Distributions([steps(half) for half in halves])
    assert split.quantiles(np.array([0.5])).max() < whole.quantiles(np.array([0.5])).min()
    found = shift(whole, split, BOUND, level=0.05, seed=0)
    assert found.worse
    assert found.part == pytest.approx(0.49, abs=0.01)


def test_too_few_runs_are_blind_and_say_how_many_would_do() -> None:
    random = np.random.default_rng(1)
    found = shift(side(random, 3), side(random, 2, 5.0), BOUND, level=0.04, seed=0)
    assert found.blind
    assert not found.worse
    assert found.least_p == 1 / 10
    assert found.needed == 4  # 1 of 70 deals; with three on each side, 1 of 20
    one = shift(side(random, 1), side(random, 5), BOUND, level=0.05, seed=0)
    assert (one.p, one.worse) == (None, False)


def test_the_same_seed_gives_the_same() -> None:
    first, second = side(np.random.default_rng(5), 7), side(np.random.default_rng(6), 7)
    found = [shift(first, second, 0.0, level=0.05, seed=seed) for seed in (1, 1, 2)]
    assert found[0] == found[1]
    assert found[0] != found[2]  # 3,432 deals: not all are tried


def test_quantiles_and_parts_are_those_of_the_histogram() -> None:
    run = result([100] * 50 + [200] * 49 + [1000])
    found = Distributions.of([run])
    assert found.below(np.array([99.0, 100, 200, 999, 1000])).tolist() == [[0, 0.5, 0.99, 0.99, 1]]
    assert found.quantiles(np.array([0.5, 0.51, 0.99, 1])).tolist() == [[100, 200, 200, 1000]]
    assert found.extremes == (100, 1000)
