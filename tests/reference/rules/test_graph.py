"""Pipelines that branch, and sources that need no network (graph-4, graph-5)."""

import threading

import pytest
from small_windows import Gather, built, events, sink

import wallaroo
from wallaroo import range_windows, seconds
from wallaroo.testing import Session


def test_graph_5_a_key_extractor_in_a_second_place_has_a_number(run):
    @wallaroo.key_extractor
    def fails(event):
        raise ValueError

    application = built(*[events(name).key_by(fails).done() for name in ("one", "other")])
    result = run(application, [("one", b"a 1"), ("other", b"b 2")])
    assert [letter.step for letter in result.dead_letters] == ["fails", "fails (2)"]


def test_graph_5_windows_in_several_places_are_windows_of_their_own(run):
    words = events()
    counted = range_windows(seconds(1)).over(Gather("counted"))
    ways = [words.to(counted).done() for _ in range(3)]
    result = run(built(*ways), {"events": [b"a 1"]}, end=False)
    assert [one.step for one in result.open_windows] == ["counted", "counted (2)", "counted (3)"]
    taken = words.to(range_windows(seconds(2)).over(Gather("counted (2)"))).done()
    with pytest.raises(wallaroo.WallarooParameterError, match="has a step of that name too"):
        built(*ways, taken)


class Counting:
    """Gives 0, 1, … up to `last`; exits where it would give `broken`."""

    def __init__(self, last, broken=None):
        self.last = last
        self.broken = broken

    def initial_value(self):
        return self._checked(0)

    def apply(self, value):
        return self._checked(value + 1) if value < self.last else None

    def _checked(self, value):
        if value == self.broken:
            raise SystemExit("no more")
        return value


def generator(counting, **options):
    return wallaroo.source("numbers", wallaroo.GenSourceConfig(counting, **options))


@pytest.mark.parametrize("first", [0, "", b"", [], False])
def test_graph_4_only_none_ends_it(run, first):
    class One:
        def initial_value(self):
            return first

        def apply(self, last):
            return None

    assert run(built(generator(One()).to_sink(sink()))).output == [f"{first!r};".encode()]


def test_graph_4_system_exit_ends_the_run(run):
    result = run(built(generator(Counting(5, broken=2)).to_sink(sink())))
    assert result.output == [b"0;", b"1;"]
    assert result.dead_letters == []
    assert (result.trace.ended.kind, result.trace.ended.error_type) == ("exit", "SystemExit")


def test_graph_4_a_session_generates_when_it_is_told():
    session = Session(built(generator(Counting(2)).to_sink(sink())))
    assert session.output == []
    session.generate("numbers")
    assert session.output == [b"0;", b"1;", b"2;"]
    with pytest.raises(
        wallaroo.WallarooParameterError, match="not a generator source, or it has ended"
    ):
        session.generate("numbers")


class Unportable:
    """Gives a lock between two numbers."""

    def initial_value(self):
        return 0

    def apply(self, value):
        return {0: threading.Lock(), 2: None}.get(value, 2)


def test_graph_4_a_value_that_cannot_be_copied_is_unportable_and_the_next_one_comes(isolated):
    result = isolated(built(generator(Unportable()).to_sink(sink())), {})
    assert result.output == [b"0;", b"2;"]
    (letter,) = result.dead_letters
    assert (letter.reason, letter.lineage, letter.step) == ("unportable", (1,), None)
    assert letter.payload is None
