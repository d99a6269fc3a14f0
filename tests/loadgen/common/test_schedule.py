from __future__ import annotations

import numpy as np
import pytest
from wallaroo_loadgen.common.schedule import Schedule, ScheduleError


def times(text: str, *, rate: float = 100, share: float = 1.0, phase: float = 0.0) -> np.ndarray:
    schedule = Schedule.parse(text, rate=rate, warmup=0, duration=10, cooldown=0)
    stream = schedule.stream(share, phase, seed=3)
    return stream.intended(np.arange(stream.total)) / 1e9


@pytest.mark.parametrize(
    ("text", "per_second"),
    [
        ("steps:0.5,1", [50] * 5 + [100] * 5),
        ("ramp:0,1", [5, 15, 25, 35, 45, 55, 65, 75, 85, 95]),
        ("burst:5,0.5,2", [100, 300] * 5),
        ("steps:1,0,1,0,1", [100, 100, 0, 0, 100, 100, 0, 0, 100, 100]),
    ],
)
def test_a_shape_sends_so_many_messages_in_each_second(text: str, per_second: list[int]) -> None:
    assert np.histogram(times(text), bins=10, range=(0, 10))[0].tolist() == per_second


def test_constant_is_evenly_spaced_and_streams_that_share_it_do_not_coincide() -> None:
    expected = pytest.approx([index / 100 for index in range(1000)])
    assert times("constant").tolist() == expected
    both = np.concatenate([times("constant", share=0.5), times("constant", share=0.5, phase=0.5)])
    assert sorted(both.tolist()) == expected


def test_poisson_has_the_rate_and_spread_of_random_arrivals_beyond_its_table_of_gaps() -> None:
    due = times("poisson", rate=20_000)
    assert len(due) == pytest.approx(200_000, rel=0.02)
    gaps = np.diff(due)
    assert (gaps >= 0).all()
    assert gaps.std() / gaps.mean() == pytest.approx(1, rel=0.03)
    assert due.tolist() == times("poisson", rate=20_000).tolist()  # the same seed


def test_a_shape_with_random_arrivals() -> None:
    counts = np.histogram(times("ramp:0,1+poisson", rate=10_000), bins=10, range=(0, 10))[0]
    assert counts == pytest.approx([500 + 1000 * second for second in range(10)], rel=0.25)


def test_what_is_offered_is_the_mean_rate_between_warm_up_and_cool_down() -> None:
    schedule = Schedule.parse("ramp:1,2", rate=100, warmup=1, duration=2, cooldown=0.5)
    assert (schedule.stream(1.0, 0.0, seed=0).total, schedule.offered) == (500, 150)


@pytest.mark.parametrize(
    ("text", "rate", "words"),
    [
        ("sometimes", 1, "no schedule is called 'sometimes'"),
        ("steps:", 1, "numbers are expected"),
        ("ramp:1", 1, "2 numbers are expected"),
        ("burst:5,2,1", 1, "does not fit"),
        ("ramp:0,0", 1, "not all 0"),
        ("ramp:0,1+steps:1", 1, "one shape"),
        *[("constant", rate, "the rate is a number above 0") for rate in (0, -1)],
        *[("constant", float(rate), "the rate is a number above 0") for rate in ("nan", "inf")],
    ],
)
def test_a_bad_schedule_says_what_is_expected(text: str, rate: float, words: str) -> None:
    with pytest.raises(ScheduleError, match=words):
        Schedule.parse(text, rate=rate, warmup=0, duration=1, cooldown=0)
