"""Range windows: the grid, when they fire, panes (window-2, window-3, window-5, window-10, -11)."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_windows import Gather, arrivals, built, config, events, initial, said, sink, windowed

import wallaroo
from wallaroo import nanoseconds, range_windows, seconds
from wallaroo.testing import run as run_once

TEN = range_windows(seconds(10))


@pytest.mark.parametrize(
    ("time", "start"), [(0, 0), (9.999, 0), (10, 10), (19.5, 10), (86_403, 86_400)]
)
def test_window_2_one_grid_for_all_keys(run, time, start):
    log = [f"{letter} {time}".encode() for letter in "abc"]
    result = run(windowed(TEN), {"events": log}, end=False)
    assert [window.start for window in result.open_windows] == [seconds(start)] * 3


@given(
    st.integers(1, 12),
    st.integers(1, 12),
    st.lists(st.integers(0, 60), min_size=1, max_size=8),
)
def test_window_2_and_5_any_range_slide_and_times(length, slide, times):
    slide = min(length, slide)
    windows = range_windows(nanoseconds(length)).with_slide(slide).with_delay(100)

    class Numbers(Gather):
        def update(self, event, names):
            return f"{names},{event[0][1:]}"

        def combine(self, earlier, later):
            return earlier + later

        def output(self, key, names, window):
            return f"{window.start} {window.end}{names}"

    application = windowed(windows, Numbers(), events(event_time=lambda event: int(event[1])))
    log = [f"a{n} {time}".encode() for n, time in enumerate(times)]
    pane = math.gcd(length, slide)
    expected = []
    for number in range(-length, 61):
        start, end = number * slide, number * slide + length
        inside = [n for n, time in enumerate(times) if start <= time < end]
        inside.sort(key=lambda n: times[n] // pane)  # by pane, then as they came
        if inside:
            expected.append(f"{start} {end}" + "".join([f",{n}" for n in inside]))
    assert said(run_once(application, {"events": log})) == expected


@pytest.mark.parametrize("delay", [0, 1, seconds(3)])
def test_window_3_it_fires_when_the_watermark_reaches_end_and_delay(step, delay):
    windows = TEN if delay == 0 else TEN.with_delay(delay)
    session = step(windowed(windows, source=arrivals()))
    session.send("events", b"a 0")
    session.advance(seconds(10) + delay - 1)
    assert session.output == []
    session.advance(1)
    assert said(session) == ["a:a@0-10"]
    session.advance(seconds(100))
    assert said(session) == ["a:a@0-10"]


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


def test_window_5_an_update_that_alters_the_message(isolated):
    class Altering(Gather):
        def update(self, names, accumulator):
            return accumulator + names.pop()

    @wallaroo.decoder(header_length=4, length_fmt=">I")
    def as_list(payload):
        return [payload.decode()]

    source = events(decoder=as_list, event_time=None)
    keyed = source.key_by(wallaroo.key_extractor(lambda words: "k"))
    application = built(
        keyed.to(TEN.over(Altering())).to_sink(sink()),
        keyed.to(TEN.over(Altering("again"))).to_sink(sink()),
    )
    result = isolated(application, {"events": [b"a", b"b"]})
    assert list(result.outputs.values()) == [[b"'k:ab@0-10';"]] * 2


def test_window_10_memory_follows_what_is_open(run):
    log = [f"{chr(97 + n % 26)} {n}".encode() for n in range(200)]
    result = run(windowed(range_windows(seconds(3))), {"events": log}, end=False)
    assert {window.start for window in result.open_windows} == {seconds(198)}
    assert len(result.output) + len(result.open_windows) == 200


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
