"""Windows: accumulators, late messages, sessions (window-1, window-4 to window-7, window-11)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_windows import Gather, built, config, events, initial, said, sink, windowed

import wallaroo
from wallaroo import range_windows, seconds, session_windows, testing
from wallaroo.records import End, Frame

TEN = range_windows(seconds(10))

lengths = st.integers(1, 4)
windows_of_time = st.builds(
    lambda windows, delay: windows.with_delay(seconds(delay)),
    st.one_of(
        st.builds(lambda gap: session_windows(seconds(gap)), lengths),
        st.builds(
            lambda slide, more: range_windows(seconds(slide + more)).with_slide(seconds(slide)),
            lengths,
            lengths,
        ),
    ),
    st.integers(0, 20),
)


@given(
    windows_of_time,
    st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 20)), min_size=3, max_size=8),
    st.integers(0, 8),
)
def test_window_3_what_is_due_is_not_open_any_more(windows, messages, number):
    for isolation in ("isolated", "trusting"):
        session = testing.Session(windowed(windows), isolation=isolation)
        session.send("events", *[f"{key} {time}".encode() for key, time in messages])
        ends = [one.end for one in session.open_windows]
        watermark = ends[number % len(ends)] + windows.delay
        session.send("events", f"z {watermark // seconds(1)}".encode())
        assert all(one.end + windows.delay > watermark for one in session.open_windows)


@pytest.mark.parametrize("error", [ValueError, SystemExit])
def test_window_11_a_combine_that_raises_is_listed_as_such(run, error):
    class Broken(Gather):
        def combine(self, earlier, later):
            raise error

    windows = TEN.with_slide(seconds(5)).with_delay(seconds(5))
    result = run(windowed(windows, Broken()), {"events": [b"a 3", b"a 7"]}, end=False)
    assert [window.accumulator for window in result.open_windows] == [
        ["str", "a"],
        {"combine raised": error.__name__},
        ["str", "a"],
    ]


def test_window_1_the_builder_s_form_without_a_partition_function(run):

    application = (
        wallaroo.ApplicationBuilder("app")
        .new_pipeline("events", config())
        .to_window(TEN.over(Gather()))
        .to_window(TEN.over(Gather("again")), initial, "other windows")
        .to_sink(sink())
        .build()
    )
    result = run(application, {"events": [b"a 1", b"b 2"]}, end=False)
    assert [window.key for window in result.open_windows] == [()]


PATIENT = session_windows(seconds(10)).with_delay(seconds(100))


def test_window_7_on_a_tie_the_one_that_was_there_comes_first(run):
    assert said(run(windowed(PATIENT), {"events": [b"a1 1", b"a2 1"]})) == ["a:a1+a2@1-11"]


def test_window_7_an_accumulator_takes_the_place_of_one_that_equals_it(run):
    class Latest(Gather):
        def update(self, event, before):
            return {"a1": 1, "a2": 1.0, "a3": True}[event[0]]

        def combine(self, earlier, later):
            return later

    result = run(windowed(PATIENT, Latest()), {"events": [b"a1 1", b"a2 3", b"a3 2"]})
    assert said(result) == ["a:True@1-13"]


LOG = {"events": [b"a1 1", b"b1 2", b"a2 3"]}


class InPlace:
    def initial_accumulator(self):
        return []

    def update(self, event, names):
        names.append(event[0])

    def combine(self, earlier, later):
        earlier += later

    def output(self, key, names):
        return "".join(names)


def test_window_4_output_with_and_without_the_window(run):
    class Window(InPlace):
        def output(self, key, names, window):
            return key, window.start, window.end

    class Default(InPlace):
        def output(self, key, names, window=None):
            return window is not None

    assert run(windowed(TEN, Window), LOG).output[0] == b"('a', 0, 10000000000);"
    assert run(windowed(TEN, Default), LOG).output[0] == b"True;"


@pytest.mark.parametrize("method", ["initial_accumulator", "update", "combine", "output"])
def test_dead_3_system_exit_in_an_aggregation_ends_the_run(run, method):
    class Leaving(Gather):
        pass

    def leave(self, *arguments):
        raise SystemExit

    setattr(Leaving, method, leave)
    windows = TEN.with_slide(seconds(5)).with_delay(seconds(10))
    result = run(windowed(windows, Leaving()), {"events": [b"a1 1", b"a2 6"]})
    assert (result.trace.ended.kind, result.trace.ended.step) == ("exit", "gather")
    assert result.dead_letters == []


def late(policy, windows=TEN):
    return windowed(windows.with_late_data_policy(policy))


def test_window_6_when_every_source_has_ended_there_is_no_oldest_window(run):
    left = events("left", event_time=None).key_by(initial)
    step = TEN.with_late_data_policy("place-in-oldest-window").over(Gather())
    application = built(left.to(step).to_sink(sink()))
    log = [Frame("left", b"a 1", 1), End("left", 2), Frame("left", b"b 1", 3)]
    result = run(application, log, end=False)
    assert said(result) == ["a:a@0-10"]
    assert [letter.reason.value for letter in result.dead_letters] == ["late"]
