from __future__ import annotations

import numpy as np
import pytest
from wallaroo_loadgen.common.schedule import Schedule, ScheduleError


def times(text: str, *, rate: float = 100, share: float = 1.0, phase: float = 0.0) -> np.ndarray:
    schedule = Schedule.parse(text, rate=rate, warmup=0, duration=10, cooldown=0)
    stream = schedule.stream(share, phase, seed=3)
    return stream.intended(np.arange(stream.total)) / 1e9


def per_second(due: np.ndarray) -> list[int]:
    return np.histogram(due, bins=10, range=(0, 10))[0].tolist()


def test_constant_is_evenly_spaced() -> None:
    due = times("constant")
    assert due.tolist() == pytest.approx([index / 100 for index in range(1000)])


def test_steps_are_equal_parts() -> None:
    assert per_second(times("steps:0.5,1")) == [50] * 5 + [100] * 5


def test_ramp_goes_up_linearly() -> None:
    assert per_second(times("ramp:0,1")) == [5, 15, 25, 35, 45, 55, 65, 75, 85, 95]


def test_burst_adds_to_the_rate() -> None:
    due = times("burst:5,0.5,2")
    assert per_second(due) == [100, 300] * 5


def test_a_step_of_rate_0_sends_nothing() -> None:
    assert per_second(times("steps:1,0,1,0,1")) == [100, 100, 0, 0, 100, 100, 0, 0, 100, 100]


def test_poisson_has_the_rate_and_the_spread_of_random_arrivals() -> None:
    due = times("poisson", rate=5000)
    assert len(due) == pytest.approx(50_000, rel=0.02)
    gaps = np.diff(due)
    assert (gaps >= 0).all()
    assert gaps.std() / gaps.mean() == pytest.approx(1, rel=0.03)


def test_poisson_goes_on_beyond_its_table_of_gaps() -> None:
    due = times("poisson", rate=20_000)
    assert len(due) > 1 << 16
    assert (np.diff(due) >= 0).all()


def test_a_shape_with_random_arrivals() -> None:
    counts = per_second(times("ramp:0,1+poisson", rate=10_000))
    assert counts == pytest.approx([500 + 1000 * second for second in range(10)], rel=0.25)


def test_streams_share_the_rate_and_do_not_coincide() -> None:
    both = np.concatenate([times("constant", share=0.5), times("constant", share=0.5, phase=0.5)])
    assert sorted(both.tolist()) == pytest.approx([index / 100 for index in range(1000)])


def test_the_same_seed_gives_the_same_times() -> None:
    assert times("poisson").tolist() == times("poisson").tolist()


def test_measured_counts_the_messages_between_warm_up_and_cool_down() -> None:
    schedule = Schedule.parse("constant", rate=100, warmup=1, duration=2, cooldown=0.5)
    stream = schedule.stream(1.0, 0.0, seed=0)
    assert (stream.total, stream.measured) == (350, 200)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("sometimes", "no schedule is called 'sometimes'"),
        ("steps:", "numbers are expected"),
        ("ramp:1", "2 numbers are expected"),
        ("burst:5,2,1", "does not fit"),
        ("ramp:0,0", "not all 0"),
        ("ramp:0,1+steps:1", "one shape"),
    ],
)
def test_a_bad_schedule_says_what_is_expected(text: str, words: str) -> None:
    with pytest.raises(ScheduleError, match=words):
        Schedule.parse(text, rate=1, warmup=0, duration=1, cooldown=0)


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_rate_is_above_0(rate: float) -> None:
    with pytest.raises(ScheduleError, match="rate"):
        Schedule.parse("constant", rate=rate, warmup=0, duration=1, cooldown=0)
