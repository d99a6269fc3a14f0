"""The topology: a frozen graph that tools read."""

from __future__ import annotations

import dataclasses

import pytest

import wallaroo
from wallaroo.keys import SINGLE_KEY
from wallaroo.operations import Stateful, Stateless
from wallaroo.topology import Sink, Source, Step


@wallaroo.computation(name="c")
def compute(message):
    return message


@wallaroo.state_computation(name="s")
def count(message, state):
    return message, True


@wallaroo.partition
def part(message):
    return message


@pytest.fixture(scope="module")
def application(add_pipeline):
    builder = wallaroo.ApplicationBuilder("app")
    add_pipeline(
        builder,
        ("to", compute),
        ("to_parallel", compute),
        ("to_state_partition", count, dict, "shared", part, ["b", "a"]),
        sinks=2,
    )
    add_pipeline(
        builder,
        ("to_stateful", count, list, "one"),
        ("to_state_partition", count, dict, "shared", part, ["a", "b"]),
        ("to_state_partition_u64", count, dict, "numbers", part),
        name="q",
        sinks=0,
    )
    return builder.build()


def test_topology_nodes_stand_in_order_and_name_their_inputs(application):
    kinds = [type(node).__name__ for node in application.nodes]
    assert kinds == ["Source", *["Step"] * 3, "Sink", "Sink", "Source", *["Step"] * 3]
    inputs = [None if isinstance(node, Source) else node.inputs for node in application.nodes]
    assert inputs == [None, (0,), (1,), (2,), (3,), (3,), None, (6,), (7,), (8,)]
    for index, node in enumerate(application.nodes):
        assert isinstance(node, Source) or all(origin < index for origin in node.inputs)


def test_topology_consumers_are_inputs_the_other_way_round(application):
    assert application.consumers == ((1,), (2,), (3,), (4, 5), (), (), (7,), (8,), (9,), ())


def test_topology_steps_count_from_0_in_each_pipeline(application):
    found = [(step.pipeline, step.position, step.name) for step in application.steps]
    assert found == [
        ("p", 0, "c"),
        ("p", 1, "c"),
        ("p", 2, "s"),
        ("q", 0, "s"),
        ("q", 1, "s"),
        ("q", 2, "s"),
    ]


def test_sink_2_sinks_are_known_by_pipeline_and_index(application):
    assert list(application.sinks) == [("p", 0), ("p", 1)]
    assert all(sink.id == key for key, sink in application.sinks.items())
    assert list(application.sources) == ["p", "q"]


def test_topology_a_pipelines_nodes(application):
    assert application.pipeline("p") == application.nodes[:6]
    assert application.pipeline("q") == application.nodes[6:]
    assert application.pipeline("none") == ()


def test_compute_3_parallel_is_told(application):
    told = [s.operation.parallel for s in application.steps if isinstance(s.operation, Stateless)]
    assert told == [False, True]


def test_route_6_to_stateful_has_one_key_and_no_partition_function(application):
    operation = next(step.operation for step in application.steps if step.pipeline == "q")
    assert isinstance(operation, Stateful)
    assert operation.route is None
    assert application.partition["one"].keys == (SINGLE_KEY,)


def test_state_8_a_shared_partition_is_there_once_as_first_said(application):
    assert [part.name for part in application.partitions] == ["shared", "one", "numbers"]
    assert application.partition["shared"].keys == ("b", "a")
    assert application.partition["numbers"].keys is None
    assert [part.u64 for part in application.partitions] == [False, False, True]


def test_topology_is_frozen(application):
    for thing in (application, *application.nodes, *application.partitions):
        name = dataclasses.fields(thing)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(thing, name, None)
    assert isinstance(application.nodes, tuple)
    assert {type(node) for node in application.nodes} == {Source, Step, Sink}


def test_topology_yields_every_component_where_it_is_used(application):
    used = [(use.role, use.where) for use in application.components()]
    assert used[:4] == [
        ("builder", "state partition 'shared'"),
        ("builder", "state partition 'one'"),
        ("builder", "state partition 'numbers'"),
        ("decoder", "pipeline 'p'"),
    ]
    assert ("partition function", "step 's' of pipeline 'p'") in used
    assert ("computation", "step 's' of pipeline 'q'") in used
    assert ("encoder", "sink 1 of pipeline 'p'") in used


def test_topology_knows_each_nodes_position(application):
    positions = [application.position(node) for node in application.pipeline("p")]
    assert positions == [-1, 0, 1, 2, 3, 3]
