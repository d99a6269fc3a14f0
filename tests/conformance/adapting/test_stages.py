"""An application as operators of another engine, in the order in which data can flow."""

from __future__ import annotations

from dataclasses import replace

import pytest
from wallaroo_conformance.adapting.stages import (
    has_operation,
    layers,
    refuse_branches_that_meet,
    stages,
)
from wallaroo_conformance.cases.building import assemble
from wallaroo_conformance.cases.case import PartitionSpec, StepSpec, WindowSpec
from wallaroo_conformance.cases.composing import graph, row, step, together

from wallaroo.errors import UnsupportedTopology
from wallaroo.operations import Stateful, Stateless
from wallaroo.topology import Application

A, B, PLAIN = 0, 1, None  # two state partitions, and a step without state
STATE, WINDOW = step("remember"), step("texts", window=WindowSpec())


def application(*pipelines: list[int | None]) -> Application:
    """Build pipelines of the builder's form from the state partitions of their steps."""
    rows = [
        row(*[step("identity") if at is None else step("count", partition=at) for at in places])
        for places in pipelines
    ]
    return assemble(replace(together(rows, ()), partitions=(PartitionSpec("single"),) * 2))


@pytest.mark.parametrize(
    ("pipelines", "expected"),
    [
        ([[PLAIN, PLAIN]], {}),
        ([[A, PLAIN, B]], {"north": 1, "north sea": 2}),
        ([[A], [PLAIN, B]], {"north": 1, "north sea": 1}),
        ([[A, B], [B]], {"north": 1, "north sea": 2}),
    ],
)
def test_a_state_partition_is_in_the_layer_behind_those_on_the_way_to_it(
    pipelines: list[list[int | None]], expected: dict[str, int]
) -> None:
    assert layers(application(*pipelines)) == expected


def test_steps_over_one_state_partition_stand_together_behind_what_comes_to_them() -> None:
    made = application([A, B], [B])
    groups = [[made.nodes[index] for index in group] for group in stages(made)]
    held = [[node.operation.partition for node in nodes] for nodes in groups[:2]]  # type: ignore[union-attr]
    assert held == [["north"], ["north sea", "north sea"]]


def test_a_message_that_would_meet_a_state_partition_twice_is_refused() -> None:
    with pytest.raises(UnsupportedTopology, match="its own messages"):
        layers(application([A, PLAIN, A]))


def branched(*behind: StepSpec) -> Application:
    """Build two branches, and behind them one step that both reach, or one behind each."""
    branches = step("by_letter"), step("doubled", 1), step("by_letter")
    if len(behind) == 1:
        return assemble(graph(*branches, step("merge", 0, 2), *behind))
    first, second = behind
    return assemble(graph(*branches, replace(first, origins=(2,)), replace(second, origins=(1,))))


@pytest.mark.parametrize("behind", [STATE, WINDOW], ids=["state", "window"])
def test_branches_that_bring_a_message_to_one_state_or_window_twice_are_refused(
    behind: StepSpec,
) -> None:
    with pytest.raises(UnsupportedTopology, match="an engine takes one of the branches"):
        refuse_branches_that_meet(branched(behind), "an engine")


def test_branches_with_a_state_or_a_window_each_and_pipelines_that_share_one_are_not() -> None:
    refuse_branches_that_meet(branched(STATE, STATE), "an engine")
    refuse_branches_that_meet(branched(STATE, WINDOW), "an engine")
    refuse_branches_that_meet(application([A, B], [B]), "an engine")


def test_a_node_has_an_operation_or_none() -> None:
    source, made, *_ = application([PLAIN]).nodes
    assert has_operation(made, Stateful, Stateless)
    assert not has_operation(made, Stateful)
    assert not has_operation(source, Stateless)
