"""Late messages and what becomes of them (window-6)."""

from __future__ import annotations

import pytest
from small_windows import Gather, built, events, fail, initial, said, sink, windowed

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


def test_window_6_the_oldest_window_on_the_grid_though_nothing_is_in_it(run):
    result = run(late("place-in-oldest-window"), {"events": [b"a1 12", b"b1 1"]})
    assert said(result) == ["a:a1@10-20", "b:b1@10-20"]


def test_window_6_into_its_first_pane(run):
    windows = TEN.with_slide(seconds(5))
    result = run(late("place-in-oldest-window", windows), {"events": [b"a1 17", b"a2 1"]})
    # The earliest window that has not fired is that of 10 to 20 s; its first pane is 10 to 15 s.
    assert said(result) == ["a:a2+a1@10-20", "a:a1@15-25"]


def test_window_6_when_every_source_has_ended_there_is_no_oldest_window(run):
    left = events("left", event_time=None).key_by(initial)
    step = TEN.with_late_data_policy("place-in-oldest-window").over(Gather())
    application = built(left.to(step).to_sink(sink()))
    log = [Frame("left", b"a 1", 1), End("left", 2), Frame("left", b"b 1", 3)]
    result = run(application, log, end=False)
    assert said(result) == ["a:a@0-10"]
    assert [letter.reason.value for letter in result.dead_letters] == ["late"]


def test_window_6_what_is_a_dead_letter_is_not_counted_as_partly_late(run):
    class Broken(Gather):
        def update(self, event, names):
            if event[0] == "a2":
                raise ValueError
            return super().update(event, names)

    result = run(windowed(TEN.with_slide(seconds(5)), Broken()), {"events": [b"a1 12", b"a2 9"]})
    assert result.trace.late == {}


def test_window_6_dead_letters_behind_a_window_of_its_own_have_no_payload(run, letters):
    windows = TEN.with_late_data_policy("fire-per-message")
    pipeline = events().key_by(initial).to(windows.over(Gather())).to(fail)
    result = run(built(pipeline.done()), LOG, end=False)
    assert letters(result) == [((1,), "fail", None, None, "raised")]
    assert result.dead_letters[0].payload is None
