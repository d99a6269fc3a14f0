"""Durations, event times and arrival times (time-1, time-2, window-1)."""

import math
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallaroo
from wallaroo import WallarooParameterError
from wallaroo.records import Frame, Tick, with_times_that_never_decrease
from wallaroo.times import BadTimeError, event_time_from, has_unit


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


def test_window_1_a_count_is_shown_in_60_characters_at_most():
    for length in (59, 60):
        with pytest.raises(WallarooParameterError) as refused:
            wallaroo.seconds("1" * (length - 2))
        assert str(refused.value).startswith(f"wallaroo.seconds({'1' * (length - 2)!r}): ")
    with pytest.raises(WallarooParameterError) as refused:
        wallaroo.seconds("1" * 100)
    assert str(refused.value).startswith(f"wallaroo.seconds('{'1' * 59}…): ")


def test_window_1_whether_a_short_length_was_made_with_its_unit():
    made = [wallaroo.nanoseconds(123_457), wallaroo.microseconds(123.459)]
    assert [has_unit(length) for length in made] == [True, True]
    assert not has_unit(123_458)


KINDS = "an int of nanoseconds since 1970, or an aware datetime, not "
SPAN = "from 0 to 2**63 - 1 nanoseconds since 1970, not "


@pytest.mark.parametrize("time", [0, 1, 2**63 - 1])
def test_time_2_an_event_time_may_be_any_of_its_span(time):
    assert event_time_from(time) == time


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (None, f"{KINDS}None."),
        (True, f"{KINDS}a bool."),
        ("1", f"{KINDS}a str."),
        (1.5, f"{KINDS}a float. For seconds write: wallaroo.seconds(…)"),
        (-1, f"{SPAN}-1"),
        (2**63, f"{SPAN}{2**63}"),
        (2**63 + 1, f"{SPAN}{2**63 + 1}"),
        (10**30 - 1, f"{SPAN}{10**30 - 1}"),
        (-(10**5000), f"{SPAN}a number far outside"),
        (datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC), f"{SPAN}-1000000000"),
    ],
    ids=["none", "bool", "text", "float", "-1", "end", "behind", "large", "far", "before 1970"],
)
def test_time_2_what_is_no_event_time_is_refused_in_words(result, said):
    with pytest.raises(BadTimeError) as refused:
        event_time_from(result)
    assert str(refused.value) == f"an event time is {said}"


def test_time_1_a_record_arrives_no_earlier_than_the_one_before():
    given = [Frame("p", b"a", 5), Frame("p", b"b", 3), Tick(7), Tick(7), Frame("p", b"c")]
    arrived = [Frame("p", b"a", 5), Frame("p", b"b", 5), Tick(7), Tick(7), Frame("p", b"c", 7)]
    assert with_times_that_never_decrease(given) == arrived
