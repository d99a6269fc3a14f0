"""Session windows (window-7) and count windows (window-8)."""

from __future__ import annotations

from small_windows import Gather, built, events, initial, said, sink, windowed

import wallaroo
from wallaroo import count_windows, range_windows, seconds, session_windows

PATIENT = session_windows(seconds(10)).with_delay(seconds(100))


def test_window_7_on_a_tie_the_one_that_was_there_comes_first(run):
    assert said(run(windowed(PATIENT), {"events": [b"a1 1", b"a2 1"]})) == ["a:a1+a2@1-11"]


def test_window_8_at_that_point_of_its_lineage(run, letters):
    class Broken(Gather):
        def output(self, key, names, window):
            raise ValueError

    twice = wallaroo.computation_multi(name="twice")(lambda event: [event] * 3)
    step = count_windows(2).over(Broken())
    pipeline = events().to(twice).key_by(initial).to(step)
    result = run(built(pipeline.done()), {"events": [b"a 1", b"a 2"]})
    assert [letter[0] for letter in letters(result)] == [(0, 1), (1, 0), (1, 2)]


def test_window_8_what_it_gives_may_be_late_further_down(run, letters):
    class Any(Gather):
        def update(self, message, names):
            return names + message

    pipeline = events().key_by(initial).to(count_windows(2).over(Gather()))
    pipeline = pipeline.to(range_windows(seconds(10)).over(Any("again")))
    result = run(built(pipeline.to_sink(sink())), {"events": [b"a1 30", b"a2 5"]})
    assert letters(result) == [((1,), "again", None, "a", "late")]
