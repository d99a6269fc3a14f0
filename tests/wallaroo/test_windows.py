"""Windows as they are declared (window-1)."""

from __future__ import annotations

import pytest

from wallaroo import (
    WallarooParameterError,
    count_windows,
    hours,
    milliseconds,
    minutes,
    range_windows,
    seconds,
    session_windows,
)
from wallaroo.windows import show_duration

TEN = range_windows(seconds(10))


def refused(call, *parts):
    with pytest.raises(WallarooParameterError) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("length", [0, -1, 1.0, "1", None, True])
def test_window_1_lengths_that_are_none(length):
    refused(lambda: range_windows(length), "range_windows(…): the range", "wallaroo.seconds(COUNT)")
    refused(lambda: session_windows(length), "session_windows(…): the gap")
    refused(lambda: count_windows(length), "an int of 1 or more")
    refused(lambda: TEN.with_slide(length), "with_slide(…): the slide")
    refused(lambda: count_windows(2).with_timeout(length), "with_timeout(…): the timeout")


@pytest.mark.parametrize("delay", [-1, 1.0, "1", None, True])
def test_window_1_delays_that_are_none(delay):
    refused(lambda: TEN.with_delay(delay), "with_delay(…): the delay")
    refused(lambda: session_windows(5).with_delay(delay), "with_delay(…): the delay")


def test_window_1_a_delay_of_0():
    assert TEN.with_delay(0) == TEN


def test_window_1_a_slide_beyond_the_range():
    refused(lambda: TEN.with_slide(seconds(11)), "longer than the range", "up to the range")


def test_window_1_too_many_panes():
    assert range_windows(10_000).with_slide(1).pane == 1
    refused(lambda: range_windows(10_001).with_slide(1), "10001 panes", "10000 is the most")
    refused(lambda: range_windows(hours(1)).with_slide(seconds(1) + 1), "panes")


@pytest.mark.parametrize(
    ("windows", "call", "value"),
    [
        (TEN, "with_slide", 5),
        (TEN, "with_delay", 0),
        (TEN, "with_late_data_policy", "drop"),
        (session_windows(5), "with_delay", 0),
        (session_windows(5), "with_late_data_policy", "drop"),
        (count_windows(5), "with_timeout", 5),
    ],
)
def test_window_1_each_once(windows, call, value):
    if call == "with_slide":
        value = seconds(5)
    once = getattr(windows, call)(value)
    refused(lambda: getattr(once, call)(value), f"{call} is called twice")


@pytest.mark.parametrize("policy", ["late", "", None, 5, "DROP", b"drop"])
def test_window_6_a_policy_that_there_is_not(policy):
    refused(lambda: TEN.with_late_data_policy(policy), "'dead-letter', 'drop'")


def test_window_7_sessions_have_no_oldest_window():
    policy = "place-in-oldest-window"
    refused(lambda: session_windows(5).with_late_data_policy(policy), "no grid", "'drop'")


def test_window_1_what_is_called_leaves_the_windows_as_they_were():
    TEN.with_slide(seconds(5))
    assert TEN.slide == seconds(10)


def test_window_1_as_people_read_them():
    windows = range_windows(minutes(1)).with_slide(seconds(1.5)).with_delay(milliseconds(2))
    assert windows.with_late_data_policy("drop").described() == (
        "range 1 min, slide 1.5 s, delay 2 ms, late drop"
    )
    assert session_windows(minutes(30)).described() == "sessions, gap 30 min"
    assert count_windows(5).with_timeout(7).described() == "count 5, timeout 7 ns"
    assert show_duration(0) == "0 ns"
