"""The topology: a frozen graph that tools read."""

import dataclasses

import pytest
from small_steps import whole

import wallaroo
from wallaroo.topology import Sink, Source, Step


@wallaroo.computation(name="c")
def compute(message):
    return message


@wallaroo.state_computation(name="s")
def count(message, state):
    return message, True


class Numbers:
    def initial_value(self):
        return 0

    def apply(self, last):
        return last + 1


@pytest.fixture(scope="module")
def application(add_pipeline):
    builder = wallaroo.ApplicationBuilder("app")
    add_pipeline(
        builder,
        ("to", compute),
        ("to_parallel", compute),
        ("to_state_partition", count, dict, "shared", whole, ["b", "a"]),
        sinks=2,
    )
    add_pipeline(
        builder,
        ("to_stateful", count, list, "one"),
        ("to_state_partition", count, dict, "shared", whole, ["a", "b"]),
        ("to_state_partition_u64", count, dict, "numbers", whole),
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


def test_topology_a_source_is_called_as_its_decoder_or_as_its_pipeline(add_pipeline):
    builder = wallaroo.ApplicationBuilder("app")
    add_pipeline(builder)
    builder.new_pipeline("numbers", wallaroo.GenSourceConfig(Numbers())).done()
    decoded, made = builder.build().sources.values()
    assert decoded.config.decoder is not None
    assert (decoded.name, made.name) == (decoded.config.decoder.name, "numbers")
    assert decoded.name != decoded.pipeline


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


def test_topology_has_the_same_form_with_other_components(application):
    def renamed(use):
        return dataclasses.replace(use.component, name=f"{use.component.name} again")

    before = list(application.components())
    changed = application.map_components(renamed)
    names = [use.component.name for use in changed.components()]
    assert names == [f"{use.component.name} again" for use in before]
    assert [use.component for use in application.components()] == [use.component for use in before]
    assert changed.consumers == application.consumers
