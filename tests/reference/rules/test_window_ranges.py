"""Range windows: the grid, when they fire, panes (window-2, window-3, window-5, window-10, -11)."""

from __future__ import annotations

import pytest
from small_windows import Gather, built, config, events, initial, said, sink, windowed

import wallaroo
from wallaroo import range_windows, seconds

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
