"""Pipelines that branch and meet (graph-1, graph-2, graph-3, graph-5)."""

from __future__ import annotations

import pytest
from small_windows import Gather, arrivals, built, encode_repr, events, fail, initial, sink

import wallaroo
from wallaroo import range_windows, seconds


def named(name):
    return wallaroo.computation(name=name)(lambda event: (event[0] + name, event[1]))


def names(result, which):
    """The names of the messages that a sink of the pipeline ``events`` got."""
    return [eval(output[:-1])[0] for output in result.outputs["events", which]]


def test_graph_1_a_pipeline_is_left_as_it_was(run):
    one = events().to(named("x"))
    one.to(named("y"))
    one.key_by(initial)
    one.to(fail)
    result = run(built(one.to_sink(sink())), {"events": [b"a 1"]})
    assert names(result, 0) == ["ax"]


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


def test_graph_2_a_lineage_has_the_branch_s_number_where_there_are_several(run, letters):
    fails = [wallaroo.computation(name=f"fail {n}")(fail.compute) for n in range(3)]
    words = events()
    branches = [words.to(each).done() for each in fails]
    result = run(built(*branches), {"events": [b"a 1"]})
    assert [letter[0] for letter in letters(result)] == [(0, 0), (0, 1), (0, 2)]
    result = run(built(branches[1]), {"events": [b"a 1"]})
    assert [letter[0] for letter in letters(result)] == [(0,)]


def test_graph_2_a_branch_of_a_branch_and_of_multi_outputs(run, letters):
    @wallaroo.computation_multi(name="twice")
    def twice(event):
        return [event, event]

    fails = [wallaroo.computation(name=f"fail {n}")(fail.compute) for n in range(3)]
    top = events()
    inner = top.to(twice)
    result = run(
        built(top.to(fails[0]).done(), inner.to(fails[1]).done(), inner.to(fails[2]).done()),
        {"events": [b"a 1"]},
    )
    # The call of `twice` was made before that of the first `fail`.
    assert [letter[:2] for letter in letters(result)] == [
        ((0, 0, 0, 0), "fail 1"),
        ((0, 0, 0, 1), "fail 2"),
        ((0, 0, 1, 0), "fail 1"),
        ((0, 0, 1, 1), "fail 2"),
        ((0, 1), "fail 0"),
    ]


def test_graph_2_to_sinks_is_one_branch_and_one_source_one_listener(run, letters):
    @wallaroo.encoder
    def broken(message):
        raise ValueError

    words = events()
    application = built(words.to_sinks([sink(broken), sink(broken)]), words.to_sink(sink(broken)))
    assert list(application.sources) == ["events"]
    result = run(application, {"events": [b"a 1"]})
    assert [(letter[0], letter[2]) for letter in letters(result)] == [
        ((0, 0), 0),
        ((0, 0), 1),
        ((0, 1), 2),
    ]


def test_graph_3_a_message_that_comes_by_two_branches_comes_twice(run):
    words = events()
    x, y = words.to(named("x")), words.to(named("y"))
    result = run(built(x.merge(y).merge(words).to_sink(sink())), {"events": [b"a 1", b"b 1"]})
    assert names(result, 0) == ["ax", "ay", "a", "bx", "by", "b"]


def test_graph_3_behind_a_merge_the_name_is_the_first_source_s(run, letters):
    left, right = events("events"), events("right")
    merged = right.to_sink(sink()), left.merge(right).to_sink(sink()), left.to(fail).to_sink(sink())
    result = run(built(*merged), [("events", b"a 1"), ("right", b"b 1")])
    assert {which: len(given) for which, given in result.outputs.items()} == {
        ("right", 0): 1,
        ("events", 0): 2,
        ("events", 1): 0,
    }
    assert letters(result) == [((0, 1), "fail", None, None, "raised")]


def test_graph_3_keys_stay_through_a_merge(run):
    @wallaroo.state_computation(name="gather", state=list)
    def gather(event, state):
        state.append(event[0])

    by_name = wallaroo.key_extractor(lambda event: event[0])
    left, right = events("events").key_by(initial), events("right").key_by(by_name)
    result = run(
        built(left.merge(right).to(gather).done()),
        [("events", b"ann 1"), ("right", b"ann 1"), ("right", b"a 1")],
    )
    assert result.entities == {"gather": {"a": ["ann", "a"], "ann": ["ann"]}}


def test_graph_5_a_key_extractor_may_stand_in_several_places(run):
    words = events()
    one, other = (
        words.key_by(initial).to(range_windows(seconds(1)).over(Gather(name))).to_sink(sink())
        for name in ("one", "other")
    )
    result = run(built(one, other), {"events": [b"a 1"]})
    assert [len(outputs) for outputs in result.outputs.values()] == [1, 1]


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
