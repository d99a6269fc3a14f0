"""Late messages and what becomes of them (window-6)."""

from __future__ import annotations

import pytest
from small_windows import Gather, built, events, fail, initial, said, sink, windowed

from wallaroo import range_windows, seconds
from wallaroo.records import End, Frame

TEN = range_windows(seconds(10))
POLICIES = ("dead-letter", "drop", "fire-per-message", "place-in-oldest-window")


def late(policy, windows=TEN):
    return windowed(windows.with_late_data_policy(policy))


LOG = {"events": [b"a1 12", b"a2 9", b"a3 13"]}


def test_window_6_the_window_of_a_late_message(run):
    class Bounds(Gather):
        def output(self, key, names, window):
            return window.end - window.start, window.start

    windows = TEN.with_late_data_policy("fire-per-message")
    result = run(windowed(windows, Bounds()), LOG, end=False)
    assert result.output == [b"(1, 9000000000);"]


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


@pytest.mark.parametrize(
    ("delay", "time", "is_late"),
    [(0, 9, True), (2, 9, True), (2.5, 9, False), (0, 10, False), (100, 0, False)],
)
def test_window_6_late_is_measured_by_the_window_s_end_and_delay(run, delay, time, is_late):
    windows = TEN.with_delay(seconds(delay)) if delay else TEN
    result = run(windowed(windows), {"events": [b"a1 12", f"a2 {time}".encode()]})
    assert len(result.dead_letters) == is_late


def test_window_6_within_the_delay_in_any_order_gives_the_same_windows(run):
    log = [b"a 1", b"a 11", b"a 5", b"a 16", b"a 7", b"a 12", b"a 18"]
    windows = TEN.with_delay(seconds(30))
    expected = said(run(windowed(windows), {"events": sorted(log)}))
    for order in (log, log[::-1]):
        result = run(windowed(windows), {"events": order})
        assert said(result) == expected
        assert result.dead_letters == []


def test_window_6_partly_late_joins_the_others_and_is_counted(run):
    windows = TEN.with_slide(seconds(5))
    result = run(windowed(windows), {"events": [b"a1 12", b"a2 9"]})
    assert said(result) == ["a:a2+a1@5-15", "a:a1@10-20"]
    assert result.trace.late == {("gather", "partly"): 1}
    assert result.dead_letters == []


def test_window_6_what_is_a_dead_letter_is_not_counted_as_partly_late(run):
    class Broken(Gather):
        def update(self, event, names):
            if event[0] == "a2":
                raise ValueError
            return super().update(event, names)

    result = run(windowed(TEN.with_slide(seconds(5)), Broken()), {"events": [b"a1 12", b"a2 9"]})
    assert result.trace.late == {}


def test_window_6_what_a_window_gives_is_not_late_because_of_the_record_that_fired_it(run):
    class Again(Gather):
        def update(self, message, names):
            return f"{names}[{message}]"

    pipeline = events().key_by(initial).to(TEN.over(Gather())).to(TEN.over(Again("again")))
    result = run(built(pipeline.to_sink(sink())), {"events": [b"a 1", b"a 99", b"a 500"]})
    assert result.dead_letters == []
    assert len(result.output) == 3


@pytest.mark.parametrize("policy", POLICIES)
def test_window_6_nothing_is_lost_and_nothing_counted_twice(run, policy):
    log = [f"a{(n * 7919) % 100:02} {(n * 7919) % 100}".encode() for n in range(60)]
    result = run(late(policy), {"events": log}, end=False)
    fired = "".join(each.split(":")[1].split("@")[0] for each in said(result))
    held = "".join(window.value for window in result.open_windows)
    dropped = result.trace.late.get(("gather", "dropped"), 0)
    assert (fired + held).count("a") + len(result.dead_letters) + dropped == len(log)


def test_window_6_dead_letters_behind_a_window_of_its_own_have_no_payload(run, letters):
    windows = TEN.with_late_data_policy("fire-per-message")
    pipeline = events().key_by(initial).to(windows.over(Gather())).to(fail)
    result = run(built(pipeline.done()), LOG, end=False)
    assert letters(result) == [((1,), "fail", None, None, "raised")]
    assert result.dead_letters[0].payload is None
