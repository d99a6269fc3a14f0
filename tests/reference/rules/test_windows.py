"""Windows: panes and accumulators (window-5, window-11), sessions (window-7)."""

from __future__ import annotations

import pytest
from small_windows import Gather, config, initial, said, sink, windowed

import wallaroo
from wallaroo import range_windows, seconds, session_windows

TEN = range_windows(seconds(10))


@pytest.mark.parametrize("careless", ["update", "combine", "output"])
def test_window_5_what_is_done_to_an_accumulator_shows_nowhere_else(isolated, careless):
    kept = []

    class Lists:
        def initial_accumulator(self):
            return []

        def update(self, event, names):
            if careless == "update":
                for one in kept:
                    one.append("spoilt")
                kept.append(names)
            names.append(event[0])

        def combine(self, earlier, later):
            merged = [*earlier, *later]
            if careless == "combine":
                earlier.append("spoilt")
                later.append("spoilt")
            return merged

        def output(self, key, names, window):
            text = "".join(names)
            if careless == "output":
                names.append("spoilt")
            return text

    windows = TEN.with_slide(seconds(5)).with_delay(seconds(10))
    application = windowed(windows, Lists())
    log = [b"a1 1", b"a2 6", b"a3 11", b"a4 2"]
    assert said(isolated(application, {"events": log})) == ["a1a4", "a1a4a2", "a2a3", "a3"]


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
