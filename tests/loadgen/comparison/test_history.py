"""Changes of level in a history: those there are, and as few others as promised (seeded)."""

from __future__ import annotations

import numpy as np
import pytest
from wallaroo_loadgen.comparison.history import FEWEST, changes


def levels(random: np.random.Generator, *parts: tuple[int, float]) -> list[float]:
    """Return so many observations at each level, which vary by 5 %."""
    varied = [level * np.exp(random.normal(0, 0.05, count)) for count, level in parts]
    return np.concatenate(varied).tolist()


@pytest.mark.parametrize("files", [FEWEST, 30])
def test_a_history_without_a_change_rarely_shows_one(files: int) -> None:
    random = np.random.default_rng(9)
    trials = 80
    wrong = sum(bool(changes(levels(random, (files, 3000.0)))) for _ in range(trials))
    assert wrong / trials < 0.05 + 0.03


def test_changes_are_found_where_they_are() -> None:
    random = np.random.default_rng(1)
    found = changes(levels(random, (10, 3000.0), (8, 3600.0), (9, 3000.0)))
    assert [change.index for change in found] == [10, 18]
    assert found[0].ratio == pytest.approx(1.2, abs=0.05)
    assert found[1].ratio == pytest.approx(1 / 1.2, abs=0.05)
    there = [changes(levels(random, (6, 3000.0), (6, 3600.0))) for _ in range(50)]
    assert sum(map(bool, there)) > 45


def test_a_change_is_placed_by_its_size_not_by_the_order_of_the_noise() -> None:
    # Echoes after 20 ms, later 30 ms: p50 in µs. By chance the last two before the change are the
    # largest so far, if only by 0.1 %.
    before = [20351.0, 20335, 20351, 20367, 20367, 20415, 20383]
    (found,) = changes([*before, 30351.0, 30511, 30271, 30351, 30223])
    assert found.index == 7
    assert found.ratio == pytest.approx(1.49, abs=0.01)


def test_a_drift_within_a_level_does_not_move_the_change() -> None:
    slowly = [1000.0 + number for number in range(15)]
    found = changes([*slowly, 2000.0, 2001.0, 2002.0])
    assert found[-1].index == 15
    assert all(change.ratio < 1.02 for change in found[:-1])


def test_what_creeps_in_below_every_bound_is_found() -> None:
    steps = [(6, 3000 * 1.07**number) for number in range(5)]
    found = changes(levels(np.random.default_rng(2), *steps))
    assert found
    assert found[-1].after / found[0].before > 1.2


def test_an_outlier_neither_makes_a_change_nor_hides_one() -> None:
    random = np.random.default_rng(3)
    still = levels(random, (15, 3000.0))
    still[6] *= 20
    assert changes(still) == []
    moved = levels(random, (10, 3000.0), (10, 3600.0))
    moved[3] *= 20
    assert [change.index for change in changes(moved)] == [10]


def test_so_many_observations_are_needed() -> None:
    clear = [1003.0, 1000, 1002, 1001, 1004, 9002, 9000, 9004, 9001, 9003]
    assert [change.index for change in changes(clear)] == [5]
    assert changes(clear[1:]) == []


def test_equal_observations_have_no_change() -> None:
    assert changes([1000.0] * 20) == []
