"""What an aggregation does, and what happens when it fails (window-4, window-9)."""

from __future__ import annotations

import pytest
from small_windows import Gather, said, windowed

from wallaroo import range_windows, seconds

TEN = range_windows(seconds(10))
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


@pytest.mark.parametrize("method", ["combine", "output"])
def test_window_9_what_raises_at_a_firing_loses_that_window_only(run, method):
    class Broken(Gather):
        pass

    def broken(self, *arguments):
        if "a" in str(arguments[:2]):
            raise ValueError
        return getattr(Gather, method)(self, *arguments)

    setattr(Broken, method, broken)
    windows = range_windows(seconds(10)).with_slide(seconds(5)).with_delay(seconds(10))
    log = [("events", item) for item in (b"a1 6", b"b1 6", b"a2 9.5", b"b2 1", b"a3 1", b"c 100")]
    result = run(windowed(windows, Broken()), log, end=False)
    failed = [letter for letter in result.dead_letters if letter.key == "a"]
    assert {letter.lineage[0] for letter in failed} == {5}
    assert all(letter.lineage[1] == -1 for letter in failed)
    for letter in failed:
        assert (letter.source, letter.step, letter.payload) == ("events", "gather", None)
        assert (letter.reason.value, letter.error_type) == ("raised", "ValueError")
    assert [each for each in said(result) if each.startswith("b")] == [
        "b:b2@-5-5",
        "b:b2+b1@0-10",
        "b:b1@5-15",
    ]
    assert [window.key for window in result.open_windows] == ["c", "c"]


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
