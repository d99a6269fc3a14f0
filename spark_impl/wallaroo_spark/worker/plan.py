"""How an application becomes a chain of stateful operators.

Messages may travel between state partitions in a cycle: one message visits a partition twice, or
two partitions feed each other across pipelines. Such partitions must get their messages depth first
(order-1), which a chain of operators cannot do. They form one *fused* group, which one shard
holds and processes depth first. Every other partition is a group of its own and is sharded by
key. Groups are put on *levels*, each after every level that feeds it, with one Spark operator
per level.

The windows of a window step are held like a state partition, and divided by key.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from wallaroo.operations import Stateful, Windowed
from wallaroo.topology import Application, Node, Source, Step

Member = str | int
"""What a group holds: a state partition, by its name; a window step's windows, by its node."""


@dataclass(frozen=True)
class StateGroup:
    """State partitions, and window steps, that are held together.

    Args:
        index: its number in the plan.
        level: the operator that holds it, from 0.
        partitions: the state partitions' names.
        fused: whether messages can come back to it; then one shard holds all its keys.
        windows: the window steps' nodes.
    """

    index: int
    level: int
    partitions: tuple[str, ...]
    fused: bool
    windows: tuple[int, ...] = ()

    @property
    def members(self) -> tuple[Member, ...]:
        """Everything that it holds."""
        return (*self.partitions, *self.windows)

    def divided(self, partitions: int) -> int:
        """Return the number of partitions that its keys are divided into: one, if it is fused.

        Args:
            partitions: the run's number of partitions.
        """
        return 1 if self.fused else partitions


@dataclass(frozen=True)
class Plan:
    """An application and where its state is held."""

    application: Application
    groups: tuple[StateGroup, ...]

    @property
    def levels(self) -> int:
        """Number of stateful operators, one after the other; 0 without state."""
        return 1 + max([group.level for group in self.groups], default=-1)

    @cached_property
    def group(self) -> dict[str, StateGroup]:
        """The groups by the names of their state partitions."""
        return {name: group for group in self.groups for name in group.partitions}

    @cached_property
    def holder(self) -> dict[int, StateGroup]:
        """The group that holds a step's entities or windows, by the step's node."""
        of = {member: group for group in self.groups for member in group.members}
        return {
            index: of[member]
            for index, node in enumerate(self.application.nodes)
            if (member := _member(index, node)) is not None
        }


def plan(application: Application) -> Plan:
    """Return where the application's state is held, and in which order it is visited."""
    feeds = _feeds(application)
    groups = _cycles(feeds)
    of = {name: index for index, group in enumerate(groups) for name in group}
    levels: dict[int, int] = {}

    def level(index: int) -> int:
        """Return one more than the highest level that feeds the group."""
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
                StateGroup(
                    index,
                    level(index),
                    tuple([member for member in group if isinstance(member, str)]),
                    len(group) > 1 or group[0] in feeds[group[0]],
                    tuple([member for member in group if isinstance(member, int)]),
                )
                for index, group in enumerate(groups)
            ]
        ),
    )


def _member(index: int, node: Node) -> Member | None:
    """Return the member that stands for a step's entities or windows; `None` if it has none."""
    operation = node.operation if isinstance(node, Step) else None
    if isinstance(operation, Stateful):
        return operation.partition
    return index if isinstance(operation, Windowed) else None


def _feeds(application: Application) -> dict[Member, set[Member]]:
    """Return for each member the members that a message can visit next."""
    feeds: dict[Member, set[Member]] = {part.name: set() for part in application.partitions}
    feeds.update({index: set() for index in application.window_steps})
    last: list[set[Member]] = []  # for each node, the members its messages may have visited last
    for index, node in enumerate(application.nodes):
        if isinstance(node, Source):
            last.append(set())
            continue
        before = set().union(*[last[origin] for origin in node.inputs])
        member = _member(index, node)
        if member is not None:
            for other in before:
                feeds[other].add(member)
            before = {member}
        last.append(before)
    return feeds


def _cycles(feeds: dict[Member, set[Member]]) -> list[tuple[Member, ...]]:
    """Return the strongly connected groups of members, in the order of their first members."""
    reach = {name: set(_reached(feeds, name)) for name in feeds}
    groups: list[tuple[Member, ...]] = []
    placed: set[Member] = set()
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


def _reached(feeds: dict[Member, set[Member]], start: Member) -> Iterator[Member]:
    seen: set[Member] = set()
    waiting = list(feeds[start])
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            yield name
            waiting += feeds[name]
