"""Session windows (window-7) and count windows (window-8)."""

from __future__ import annotations

import pytest
from small_windows import Gather, arrivals, built, events, initial, said, sink, windowed

import wallaroo
from wallaroo import count_windows, range_windows, seconds, session_windows
from wallaroo.records import Frame, Tick

GAP = session_windows(seconds(10))
PATIENT = GAP.with_delay(seconds(100))


def test_window_7_a_message_may_bridge_two_in_order_of_their_first_times(run):
    result = run(windowed(PATIENT), {"events": [b"a1 16", b"a2 1", b"a3 8"]})
    assert said(result) == ["a:a2+a3+a1@1-26"]


def test_window_7_on_a_tie_the_one_that_was_there_comes_first(run):
    assert said(run(windowed(PATIENT), {"events": [b"a1 1", b"a2 1"]})) == ["a:a1+a2@1-11"]


def test_window_7_keys_have_sessions_of_their_own_and_fire_by_end_and_key(run):
    log = [b"b 1", b"a 5", b"c 5", b"b 4"]
    assert said(run(windowed(GAP), {"events": log})) == ["b:b+b@1-14", "a:a@5-15", "c:c@5-15"]


def test_window_7_a_session_fires_at_its_end_and_delay(step):
    session = step(windowed(GAP.with_delay(seconds(3)), source=arrivals()))
    session.send("events", b"a1 0")
    session.advance(seconds(9))
    session.send("events", b"a2 0")
    session.advance(seconds(13) - 1)
    assert session.output == []
    session.advance(1)
    assert said(session) == ["a:a1+a2@0-19"]


def test_window_7_late_if_it_meets_no_session_and_its_own_would_have_fired(run, letters):
    result = run(windowed(GAP), {"events": [b"b 30", b"a1 20", b"a2 21"]}, end=False)
    assert letters(result) == [((1,), "gather", None, "a", "late")]
    assert [window.value for window in result.open_windows] == ["a2", "b"]


def test_window_7_a_message_that_meets_an_open_session_is_not_late(run):
    # The session of 25 to 35 s is open; the message of 16 s alone would have fired at 26 s.
    result = run(windowed(GAP), {"events": [b"a1 25", b"b 30", b"a2 16"]})
    assert said(result) == ["a:a2+a1@16-35", "b:b@30-40"]
    assert result.dead_letters == []


@pytest.mark.parametrize("policy", ["drop", "fire-per-message"])
def test_window_7_policies(run, policy):
    result = run(windowed(GAP.with_late_data_policy(policy)), {"events": [b"b 30", b"a 20"]})
    assert (
        said(result)
        == {
            "drop": ["b:b@30-40"],
            "fire-per-message": ["a:a@20-20", "b:b@30-40"],
        }[policy]
    )
    assert result.trace.late == ({("gather", "dropped"): 1} if policy == "drop" else {})


class Failing(Gather):
    def update(self, event, names):
        if event[0].endswith("!"):
            raise ValueError
        return super().update(event, names)


def test_window_9_one_that_fails_opens_extends_and_bridges_no_session(run, letters):
    log = [b"a1 1", b"a2 16", b"a! 8", b"b! 3"]
    result = run(windowed(PATIENT, Failing()), {"events": log})
    assert said(result) == ["a:a1@1-11", "a:a2@16-26"]
    assert [letter[0] for letter in letters(result)] == [(2,), (3,)]


def test_window_9_a_combine_that_raises_when_sessions_meet(run, letters):
    class Apart(Gather):
        def combine(self, earlier, later):
            raise ValueError

    log = [b"a1 1", b"a2 16", b"a3 8", b"a4 30"]
    result = run(windowed(PATIENT, Apart()), {"events": log})
    assert said(result) == ["a:a1@1-11", "a:a2@16-26", "a:a4@30-40"]
    assert letters(result) == [((2,), "gather", None, "a", "raised")]
    assert result.dead_letters[0].payload == b"a3 8"


def test_window_8_at_that_point_of_its_lineage(run, letters):
    class Broken(Gather):
        def output(self, key, names, window):
            raise ValueError

    twice = wallaroo.computation_multi(name="twice")(lambda event: [event] * 3)
    step = count_windows(2).over(Broken())
    pipeline = events().to(twice).key_by(initial).to(step)
    result = run(built(pipeline.done()), {"events": [b"a 1", b"a 2"]})
    assert [letter[0] for letter in letters(result)] == [(0, 1), (1, 0), (1, 2)]


def test_window_8_its_bounds_and_its_event_time(run):
    class Bounds(Gather):
        def output(self, key, names, window):
            return window.start, window.end

    class Times(Gather):
        def update(self, bounds, names):
            return f"{names}{bounds}"

    step = count_windows(3).over(Bounds())
    again = range_windows(1).over(Times("times"))
    pipeline = events(event_time=lambda event: int(event[1])).key_by(initial).to(step).to(again)
    result = run(built(pipeline.done()), {"events": [b"a 9", b"a 3", b"a 9"]}, end=False)
    (window,) = result.open_windows
    assert (window.start, window.value) == (9, "(3, 10)")


def test_window_8_what_it_gives_may_be_late_further_down(run, letters):
    class Any(Gather):
        def update(self, message, names):
            return names + message

    pipeline = events().key_by(initial).to(count_windows(2).over(Gather()))
    pipeline = pipeline.to(range_windows(seconds(10)).over(Any("again")))
    result = run(built(pipeline.to_sink(sink())), {"events": [b"a1 30", b"a2 5"]})
    assert letters(result) == [((1,), "again", None, "a", "late")]


def test_window_8_a_timeout_fires_it_as_it_is(step):
    session = step(windowed(count_windows(3).with_timeout(seconds(60))))
    session.send("events", b"a1 5")
    session.advance(seconds(30))
    session.send("events", b"a2 1")
    session.advance(seconds(30) - 1)
    assert session.output == []
    session.advance(1)
    assert said(session) == ["a:a1a2@1-5"]
    session.send("events", b"a3 9")
    session.advance(seconds(59))
    assert len(session.open_windows) == 1


def test_window_8_by_arrival_and_not_by_event_time(run):
    application = windowed(count_windows(3).with_timeout(seconds(60)))
    assert run(application, {"events": [b"a 1", b"a 1000"]}, end=False).output == []


def test_window_8_several_due_together_come_by_end_and_key(run):
    application = windowed(count_windows(9).with_timeout(seconds(1)))
    log = [Frame("events", text) for text in (b"c 5", b"b 9", b"a 9", b"d 1")]
    result = run(application, [*log, Tick(seconds(1))])
    assert [each[0] for each in said(result)] == list("dcab")


def test_window_8_a_full_window_s_timeout_does_not_fire_the_next(run):
    application = windowed(count_windows(2).with_timeout(seconds(10)))
    log = [
        Frame("events", b"a1 1"),
        Frame("events", b"a2 1", seconds(5)),
        Frame("events", b"a3 1", seconds(6)),
        Tick(seconds(12)),
    ]
    result = run(application, log, end=False)
    assert said(result) == ["a:a1a2@1-1"]
    assert said(run(application, [*log, Tick(seconds(16))])) == ["a:a1a2@1-1", "a:a3@1-1"]


def test_window_9_one_that_fails_is_not_counted(run):
    log = [b"a1 1", b"a! 2", b"a2 3"]
    assert said(run(windowed(count_windows(2), Failing()), {"events": log})) == ["a:a1a2@1-3"]
