"""How an application becomes a chain of stateful operators.

Messages may travel between state partitions in a cycle: one message visits a partition twice, or
two partitions feed each other across pipelines. Such partitions must meet their messages depth
first (order-1), which no chain of operators can do. They form one *fused* component, which one
shard holds and processes depth first. Every other partition is a component of its own and is
sharded by key. Components are put on *levels*, each after every level that feeds it, with one Spark
operator per level.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from wallaroo.operations import Stateful
from wallaroo.topology import Application, Source, Step


@dataclass(frozen=True)
class Component:
    """State partitions that one shard must hold together.

    Args:
        index: its number in the plan.
        level: the operator that holds it, from 0.
        partitions: the state partitions' names.
        fused: whether messages can come back to it; then one shard holds all its keys.
    """

    index: int
    level: int
    partitions: tuple[str, ...]
    fused: bool


@dataclass(frozen=True)
class Plan:
    """An application and where its state is held."""

    application: Application
    components: tuple[Component, ...]

    @property
    def levels(self) -> int:
        """Number of stateful operators, one after the other; 0 without state."""
        return 1 + max([component.level for component in self.components], default=-1)

    @cached_property
    def component(self) -> dict[str, Component]:
        """The components by the names of their state partitions."""
        return {name: component for component in self.components for name in component.partitions}


def plan(application: Application) -> Plan:
    """Return where the application's state is held, and in which order it is visited."""
    feeds = _feeds(application)
    groups = _circles(feeds)
    of = {name: index for index, group in enumerate(groups) for name in group}
    levels: dict[int, int] = {}

    def level(index: int) -> int:
        """Return one more than the highest level that feeds the component."""
        if index not in levels:
            before = {
                of[origin]
                for origin, targets in feeds.items()
                for target in targets
                if of[target] == index and of[origin] != index
            }
            levels[index] = max([level(other) + 1 for other in before], default=0)
        return levels[index]

    return Plan(
        application,
        tuple(
            [
                Component(index, level(index), group, len(group) > 1 or group[0] in feeds[group[0]])
                for index, group in enumerate(groups)
            ]
        ),
    )


def _feeds(application: Application) -> dict[str, set[str]]:
    """Return for each state partition the partitions that a message can visit next."""
    feeds: dict[str, set[str]] = {partition.name: set() for partition in application.partitions}
    last: list[set[str]] = []  # for each node, the partitions its messages may have visited last
    for node in application.nodes:
        if isinstance(node, Source):
            last.append(set())
            continue
        before = set().union(*[last[origin] for origin in node.inputs])
        if isinstance(node, Step) and isinstance(node.operation, Stateful):
            for name in before:
                feeds[name].add(node.operation.partition)
            before = {node.operation.partition}
        last.append(before)
    return feeds


def _circles(feeds: dict[str, set[str]]) -> list[tuple[str, ...]]:
    """Return the strongly connected groups of partitions, in the order of their first members."""
    reach = {name: set(_reached(feeds, name)) for name in feeds}
    groups: list[tuple[str, ...]] = []
    placed: set[str] = set()
    for name in feeds:
        if name not in placed:
            group = [
                other
                for other in feeds
                if other == name or (other in reach[name] and name in reach[other])
            ]
            placed.update(group)
            groups.append(tuple(group))
    return groups


def _reached(feeds: dict[str, set[str]], start: str) -> Iterator[str]:
    seen: set[str] = set()
    waiting = list(feeds[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            yield name
            waiting += feeds[name]
