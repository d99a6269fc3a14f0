"""Durations and event times (time-2, window-1)."""

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallaroo
from wallaroo import WallarooParameterError


class Unshown:
    def __repr__(self):
        raise ValueError("how?")


UNITS = {
    wallaroo.nanoseconds: 1,
    wallaroo.microseconds: 10**3,
    wallaroo.milliseconds: 10**6,
    wallaroo.seconds: 10**9,
    wallaroo.minutes: 60 * 10**9,
    wallaroo.hours: 3600 * 10**9,
    wallaroo.days: 86400 * 10**9,
}


@pytest.mark.parametrize("unit", UNITS)
@given(count=st.integers(0, 10**6) | st.floats(1, 10**6))
def test_window_1_the_exact_product_rounded_half_to_even(unit, count):
    made = unit(count)
    assert type(made) is int
    assert made == round(Fraction(count) * UNITS[unit])


def test_window_1_half_to_even():
    found = [wallaroo.nanoseconds(count) for count in (0.75, 1.5, 2.5, 3.5)]
    assert found == [1, 2, 2, 4]
    assert wallaroo.seconds(0.1) == 100_000_000
    assert wallaroo.days(10**6) == 86_400 * 10**15
    assert wallaroo.seconds(0) == wallaroo.seconds(-0.0) == 0


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("count", "why"),
    [
        (-1, "not negative"),
        (-0.5, "not negative"),
        (math.inf, "finite"),
        (math.nan, "finite"),
        ("1", "an int or a float"),
        (None, "an int or a float"),
        (True, "an int or a float"),
        (Unshown(), "an int or a float"),
        (1e-30, "rounds to 0"),
    ],
)
def test_window_1_what_is_no_duration(unit, count, why):
    with pytest.raises(WallarooParameterError, match=why) as refused:
        unit(count)
    assert f"wallaroo.{unit.__name__}(" in str(refused.value)
