"""Windows as they are declared (window-1)."""

import pickle

from wallaroo import (
    count_windows,
    milliseconds,
    minutes,
    range_windows,
    seconds,
    session_windows,
)
from wallaroo.windows import show_duration

TEN = range_windows(seconds(10))


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
    for one in (TEN, windows, session_windows(1_000), count_windows(1_000).with_timeout(7_000)):
        assert pickle.loads(pickle.dumps(one)).described() == one.described()
