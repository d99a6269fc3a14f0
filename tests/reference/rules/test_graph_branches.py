"""Pipelines that branch and meet (graph-1, graph-2, graph-3, graph-5)."""

from __future__ import annotations

import pytest
from small_windows import Gather, arrivals, built, encode_repr, events, sink

import wallaroo
from wallaroo import range_windows, seconds


def test_graph_2_branches_take_turns_in_the_order_of_their_calls(isolated):
    order = []

    def noting(name):
        def note(event):
            order.append((name, event[0]))
            return event

        return wallaroo.computation(name=name)(note)

    words = events()
    second_given_first = words.to(noting("first")).to(noting("deeper")).done()
    other = words.to(noting("second")).done()
    isolated(built(other, second_given_first), {"events": [b"a 1", b"b 2"]})
    assert order == [(name, event) for event in "ab" for name in ("first", "deeper", "second")]


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


def test_graph_5_an_aggregation_without_a_name_has_its_class_s(run):
    class Nameless:
        def initial_accumulator(self):
            return 0

        def update(self, message, accumulator):
            raise ValueError

        def output(self, key, accumulator):
            return accumulator

    for given in (Nameless, Nameless()):
        step = range_windows(seconds(1)).over(given)
        result = run(built(arrivals().to(step).to_sink(sink(encode_repr))), {"events": [b"a 1"]})
        assert [letter.step for letter in result.dead_letters] == ["Nameless"]
