"""An application as operators of another engine, in the order in which data can flow."""

from __future__ import annotations

import pytest
from wallaroo_conformance.adapting.stages import (
    has_operation,
    layers,
    refuse_branches_that_meet,
    stages,
)

import wallaroo
from wallaroo.errors import UnsupportedTopology
from wallaroo.operations import Stateful, Stateless


class Total:
    """A state."""


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()


@wallaroo.encoder
def encode(message):
    return message


@wallaroo.computation(name="same")
def same(message):
    return message


def keep(message, state):
    return (message, True)


def application(*pipelines):
    """Build pipelines from the names of their state partitions; an empty name is a computation."""
    builder = wallaroo.ApplicationBuilder("app")
    for number, names in enumerate(pipelines):
        builder.new_pipeline(f"p{number}", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        for position, name in enumerate(names):
            if name:
                named = wallaroo.state_computation(name=f"{name} {number} {position}")(keep)
                builder.to_stateful(named, Total, name)
            else:
                builder.to(same)
        builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7010, encode))
    return builder.build()


@pytest.mark.parametrize(
    ("pipelines", "expected"),
    [
        ([["", ""]], {}),
        ([["a", "", "b"]], {"a": 1, "b": 2}),
        ([["a"], ["", "b"]], {"a": 1, "b": 1}),
        ([["a", "b"], ["b"]], {"a": 1, "b": 2}),
    ],
)
def test_a_state_partition_is_in_the_layer_behind_those_on_the_way_to_it(pipelines, expected):
    assert layers(application(*pipelines)) == expected


def test_steps_over_one_state_partition_stand_together_behind_what_comes_to_them():
    made = application(["a", "b"], ["b"])
    groups = stages(made)
    names = [sorted({made.nodes[index].name for index in group}) for group in groups[:2]]
    assert names == [["a 0 0"], ["b 0 1", "b 1 0"]]


def test_a_message_that_would_meet_a_state_partition_twice_is_refused():
    with pytest.raises(UnsupportedTopology, match="its own messages"):
        layers(application(["a", "", "a"]))


@wallaroo.key_extractor
def first_letter(message):
    return message[0]


def keep_in_pipeline(message, state):
    return message


class Last(wallaroo.Aggregation):
    def initial_accumulator(self):
        return ""

    def update(self, message, accumulator):
        return message

    def combine(self, earlier, later):
        return later

    def output(self, key, accumulator):
        return accumulator


WINDOW = wallaroo.range_windows(wallaroo.seconds(1)).over(Last)


def keeping(name):
    return wallaroo.state_computation(name=name, state=Total)(keep_in_pipeline)


def branched(*behind):
    """Build a pipeline with two branches, and behind them one step that both reach, or two."""
    base = wallaroo.source("in", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    branches = [base.key_by(first_letter), base.to(same).key_by(first_letter)]
    if len(behind) == 1:
        branches = [branches[0].merge(branches[1])]
    sink = wallaroo.TCPSinkConfig("127.0.0.1", 7010, encode)
    ends = [branch.to(step).to_sink(sink) for branch, step in zip(branches, behind, strict=True)]
    return wallaroo.build_application("app", *ends)


@pytest.mark.parametrize("step", [keeping("total"), WINDOW], ids=["state", "window"])
def test_branches_that_bring_a_message_to_one_state_or_window_twice_are_refused(step):
    with pytest.raises(UnsupportedTopology, match="an engine takes one of the branches"):
        refuse_branches_that_meet(branched(step), "an engine")


def test_branches_with_a_state_or_a_window_each_are_not_refused():
    refuse_branches_that_meet(branched(keeping("total"), keeping("other")), "an engine")
    refuse_branches_that_meet(branched(keeping("total"), WINDOW), "an engine")


def test_pipelines_that_share_a_state_are_no_branches():
    refuse_branches_that_meet(application(["a", "b"], ["b"]), "an engine")


def test_a_node_has_an_operation_or_none():
    source, step, *_ = application([""]).nodes
    assert has_operation(step, Stateful, Stateless)
    assert not has_operation(step, Stateful)
    assert not has_operation(source, Stateless)
