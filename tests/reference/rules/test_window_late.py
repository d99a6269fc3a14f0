"""Late messages and what becomes of them (window-6)."""

from __future__ import annotations

import pytest
from small_windows import Gather, built, events, initial, said, sink, windowed

from wallaroo import range_windows, seconds
from wallaroo.records import End, Frame

TEN = range_windows(seconds(10))


def late(policy, windows=TEN):
    return windowed(windows.with_late_data_policy(policy))


LOG = {"events": [b"a1 12", b"a2 9", b"a3 13"]}


@pytest.mark.parametrize("method", ["initial_accumulator", "update", "output"])
def test_window_6_what_fails_in_it_is_that_message_s_dead_letter(run, letters, method):
    class Broken(Gather):
        pass

    def broken(self, *arguments):
        if method == "initial_accumulator" or "a2" in str(arguments):
            raise ValueError
        return getattr(Gather, method)(self, *arguments)

    setattr(Broken, method, broken)
    windows = TEN.with_late_data_policy("fire-per-message")
    result = run(windowed(windows, Broken()), LOG, end=False)
    letter = next(one for one in result.dead_letters if one.lineage == (1,))
    assert (letter.step, letter.key, letter.payload) == ("gather", "a", b"a2 9")
    assert (letter.source, letter.reason.value) == ("events", "raised")


def test_window_6_when_every_source_has_ended_there_is_no_oldest_window(run):
    left = events("left", event_time=None).key_by(initial)
    step = TEN.with_late_data_policy("place-in-oldest-window").over(Gather())
    application = built(left.to(step).to_sink(sink()))
    log = [Frame("left", b"a 1", 1), End("left", 2), Frame("left", b"b 1", 3)]
    result = run(application, log, end=False)
    assert said(result) == ["a:a@0-10"]
    assert [letter.reason.value for letter in result.dead_letters] == ["late"]
