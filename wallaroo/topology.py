"""The topology: an application as one frozen graph that engines and tools read.

Nodes stand in topological order and name their inputs by index, so the graph has no cycles. Today
each step and sink has one input and each source one path, but nothing here requires this: merged
streams can be added. What a step does is its `operation`, a closed union to which windows and
re-keying can be added.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

from wallaroo.components import (
    Component,
    Computation,
    Decoder,
    Encoder,
    PartitionFunction,
    StateBuilder,
    StateComputation,
)
from wallaroo.keys import Key

SinkId: TypeAlias = tuple[str, int]
"""A sink is known by its pipeline's name and its index there."""


class SourceConfig(Protocol):
    """Where a source's messages come from; today only `TCPSourceConfig`."""

    @property
    def decoder(self) -> Decoder:
        """Its decoder."""

    @property
    def address(self) -> str:
        """Where it is, for people."""


class SinkConfig(Protocol):
    """Where a sink's outputs go; today only `TCPSinkConfig`."""

    @property
    def encoder(self) -> Encoder:
        """Its encoder."""

    @property
    def address(self) -> str:
        """Where it is, for people."""


@dataclass(frozen=True)
class StatePartition:
    """A named set of state entities, one per key.

    Args:
        name: pipelines that give the same name share the entities (state-8).
        builder: makes an entity when its first message comes (state-1).
        keys: all allowed keys, in the application's order; `None`: any key (route-3).
        u64: keys are integers from 0 to 2**64 - 1 (route-5).
    """

    name: str
    builder: StateBuilder
    keys: tuple[Key, ...] | None
    u64: bool


@dataclass(frozen=True)
class Stateless:
    """A stateless step; `parallel` allows an engine to run it in any order (compute-3)."""

    computation: Computation
    parallel: bool


@dataclass(frozen=True)
class Stateful:
    """A step over a state partition.

    `route` finds a message's key; `None` means the one entity of `to_stateful`, whose key is
    `wallaroo.keys.SINGLE_KEY` (route-6).
    """

    computation: StateComputation
    partition: str
    route: PartitionFunction | None


Operation: TypeAlias = Stateless | Stateful


@dataclass(frozen=True)
class Source:
    """The beginning of a pipeline; a source has its pipeline's name."""

    pipeline: str
    config: SourceConfig


@dataclass(frozen=True)
class Step:
    """A computation in a pipeline; `position` counts the pipeline's steps from 0."""

    pipeline: str
    position: int
    operation: Operation
    inputs: tuple[int, ...]

    @property
    def name(self) -> str:
        """The computation's name."""
        return self.operation.computation.name


@dataclass(frozen=True)
class Sink:
    """A sink of a pipeline; `index` counts the pipeline's sinks from 0."""

    pipeline: str
    index: int
    config: SinkConfig
    inputs: tuple[int, ...]

    @property
    def id(self) -> SinkId:
        """(pipeline, index)."""
        return (self.pipeline, self.index)


Node: TypeAlias = Source | Step | Sink


@dataclass(frozen=True)
class ComponentUse:
    """A component where it is used.

    Args:
        component: what is called there.
        role: ``decoder``, ``computation``, ``partition function``, ``encoder`` or ``builder``.
        user: the node that calls it; for a builder, the state partition.
    """

    component: Component
    role: str
    user: Node | StatePartition

    @property
    def where(self) -> str:
        """Where it is used, for people, such as ``step 'count' of pipeline 'words'``."""
        user = self.user
        if isinstance(user, StatePartition):
            return f"state partition {user.name!r}"
        if isinstance(user, Step):
            return f"step {user.name!r} of pipeline {user.pipeline!r}"
        if isinstance(user, Sink):
            return f"sink {user.index} of pipeline {user.pipeline!r}"
        return f"pipeline {user.pipeline!r}"


@dataclass(frozen=True)
class Application:
    """A built application.

    Args:
        name: the application's name.
        nodes: sources, steps and sinks, in topological order, pipeline by pipeline.
        partitions: the state partitions, in the order in which they were first named.
    """

    name: str
    nodes: tuple[Node, ...]
    partitions: tuple[StatePartition, ...]

    @cached_property
    def sources(self) -> dict[str, Source]:
        """The sources by name, in the order of their pipelines."""
        return {node.pipeline: node for node in self.nodes if isinstance(node, Source)}

    @cached_property
    def sinks(self) -> dict[SinkId, Sink]:
        """The sinks by id, in the order of their pipelines."""
        return {node.id: node for node in self.nodes if isinstance(node, Sink)}

    @cached_property
    def partition(self) -> dict[str, StatePartition]:
        """The state partitions by name."""
        return {partition.name: partition for partition in self.partitions}

    @cached_property
    def consumers(self) -> tuple[tuple[int, ...], ...]:
        """For each node, the indices of the nodes that receive its messages, in order."""
        consumers: list[list[int]] = [[] for _ in self.nodes]
        for index, node in enumerate(self.nodes):
            for origin in () if isinstance(node, Source) else node.inputs:
                consumers[origin].append(index)
        return tuple([tuple(indices) for indices in consumers])

    @property
    def steps(self) -> Iterator[Step]:
        """The steps, pipeline by pipeline."""
        return (node for node in self.nodes if isinstance(node, Step))

    def components(self) -> Iterator[ComponentUse]:
        """Yield every component where it is used: builders, then those of the nodes in order."""
        for partition in self.partitions:
            yield ComponentUse(partition.builder, "builder", partition)
        for node in self.nodes:
            if isinstance(node, Source):
                yield ComponentUse(node.config.decoder, "decoder", node)
            elif isinstance(node, Sink):
                yield ComponentUse(node.config.encoder, "encoder", node)
            else:
                operation = node.operation
                if isinstance(operation, Stateful) and operation.route is not None:
                    yield ComponentUse(operation.route, "partition function", node)
                yield ComponentUse(operation.computation, "computation", node)

    def map_components(self, change: Callable[[ComponentUse], Any]) -> Application:
        """Return the same application with other components.

        Args:
            change: called with each component where it is used, in the order of `components`;
                returns the component that replaces it, of the same kind.
        """
        changed = [change(use) for use in self.components()]
        new = iter(changed)
        partitions = [replace(partition, builder=next(new)) for partition in self.partitions]
        nodes: list[Node] = []
        for node in self.nodes:
            if isinstance(node, Source):
                nodes.append(replace(node, config=_with(node.config, "decoder", next(new))))
            elif isinstance(node, Sink):
                nodes.append(replace(node, config=_with(node.config, "encoder", next(new))))
            else:
                operation = node.operation
                if isinstance(operation, Stateful) and operation.route is not None:
                    operation = replace(operation, route=next(new))
                operation = replace(operation, computation=next(new))
                nodes.append(replace(node, operation=operation))
        return replace(self, nodes=tuple(nodes), partitions=tuple(partitions))

    def position(self, node: Node) -> int:
        """Return a node's position in its pipeline: -1 for the source, steps from 0.

        All sinks of a pipeline have the position after the last step; their index differs.
        """
        if isinstance(node, Source):
            return -1
        if isinstance(node, Step):
            return node.position
        return sum([step.pipeline == node.pipeline for step in self.steps])

    def pipeline(self, name: str) -> tuple[Node, ...]:
        """Return the nodes of one pipeline: its source, steps and sinks, in order."""
        return tuple([node for node in self.nodes if node.pipeline == name])


def _with(config: Any, attribute: str, component: Component) -> Any:
    """Return a source's or sink's configuration with another component, not checked again."""
    changed = copy.copy(config)
    object.__setattr__(changed, attribute, component)
    return changed
