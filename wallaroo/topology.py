"""The topology: an application as one frozen graph that engines and tools read.

Nodes stand in the order of the calls that made them and name their inputs by index, so each comes
after what it gets its messages from, and the graph has no cycles. What a step does is its
`operation` (`wallaroo.operations`). A merge has two inputs, every other step and sink has one; a
branch is a step of its own, so where a node has several consumers they are the sinks of one call.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias, TypeVar

from wallaroo.components import Component, StateBuilder
from wallaroo.config import GenSourceConfig, TCPSinkConfig, TCPSourceConfig
from wallaroo.kafka import KafkaSinkConfig, KafkaSourceConfig
from wallaroo.keys import Key
from wallaroo.operations import Operation, Windowed
from wallaroo.windows import Windows

SinkId: TypeAlias = tuple[str, int]
"""A sink is known by its pipeline's name and its index there."""

M = TypeVar("M")

AnySource: TypeAlias = TCPSourceConfig[M] | KafkaSourceConfig[M] | GenSourceConfig[M]
"""Where messages come from; `M` is what they are."""

AnySink: TypeAlias = TCPSinkConfig[M] | KafkaSinkConfig[M]
"""Where the messages' outputs go."""

SOURCES = (TCPSourceConfig, KafkaSourceConfig, GenSourceConfig)
SINKS = (TCPSinkConfig, KafkaSinkConfig)


@dataclass(frozen=True)
class StatePartition:
    """A named set of state entities, one per key.

    Args:
        name: pipelines that give the same name share the entities (state-8).
        builder: makes an entity when its first message comes (state-1).
        keys: all allowed keys, in the application's order; `None`: any key (route-3).
        u64: keys are integers from 0 to 2**64 - 1 (route-5).
        expire_after: nanoseconds after its last visit at which an entity is gone; `None`: never
            (key-4).
    """

    name: str
    builder: StateBuilder
    keys: tuple[Key, ...] | None
    u64: bool
    expire_after: int | None = None


@dataclass(frozen=True)
class Source:
    """The beginning of a pipeline; a source has its pipeline's name."""

    pipeline: str
    config: AnySource[Any]

    @property
    def name(self) -> str:
        """The decoder's name; of a generator source the pipeline's."""
        decoder = self.config.decoder
        return self.pipeline if decoder is None else decoder.name


@dataclass(frozen=True)
class Step:
    """What is done to messages in a pipeline; `position` counts the pipeline's steps from 0."""

    pipeline: str
    position: int
    operation: Operation
    inputs: tuple[int, ...]

    @property
    def name(self) -> str:
        """The name of the computation, aggregation or key extractor; of others what they do."""
        return self.operation.name


@dataclass(frozen=True)
class Sink:
    """A sink of a pipeline; `index` counts the pipeline's sinks from 0."""

    pipeline: str
    index: int
    config: AnySink[Any]
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
        role: ``decoder``, ``event time``, ``generator``, ``computation``, ``partition function``,
            ``aggregation``, ``encoder`` or ``builder``.
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
class Codec:
    """What stands for pickle where messages, states and accumulators are copied (key-5).

    Args:
        serialize: ``(object) -> bytes``.
        deserialize: ``(bytes) -> object``.
    """

    serialize: Callable[[Any], bytes]
    deserialize: Callable[[bytes], Any]


@dataclass(frozen=True)
class Application:
    """A built application.

    Args:
        name: the application's name.
        nodes: sources, steps and sinks, in the order of the calls that made them.
        partitions: the state partitions, in the order in which they were first named.
        codec: copies messages, states and accumulators; `None`: pickle does.
    """

    name: str
    nodes: tuple[Node, ...]
    partitions: tuple[StatePartition, ...]
    codec: Codec | None = None

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

    @cached_property
    def window_steps(self) -> tuple[int, ...]:
        """The indices of the window steps, in the order of the calls that made them (time-4)."""
        return tuple([i for i, node in enumerate(self.nodes) if _windows_of(node) is not None])

    @cached_property
    def time_decides(self) -> bool:
        """Whether what it does can depend on arrival times.

        It has windows, states expire, outputs have a timestamp (kafka-13), or an event time may be
        too far ahead of the arrival time.
        """
        expires = any(partition.expire_after is not None for partition in self.partitions)
        stamps = any(isinstance(sink.config, KafkaSinkConfig) for sink in self.sinks.values())
        ahead = any(source.config.max_ahead is not None for source in self.sources.values())
        return expires or stamps or ahead or bool(self.window_steps)

    @cached_property
    def time_stands_still(self) -> bool:
        """Whether all that is read has the arrival time of the start, and nothing ticks.

        It is so if all sources are topics that are read to their ends (kafka-10).
        """
        return all(getattr(one.config, "until", None) == "end" for one in self.sources.values())

    @cached_property
    def ways(self) -> tuple[Mapping[str, int], ...]:
        """For each node the sources it gets messages from, with the delays on the way (time-3).

        The watermark of a step is the least, over these sources, of the source's watermark less the
        delays: the nanoseconds that windows wait on the way; if there are several ways, on the
        longest.
        """
        ways: list[dict[str, int]] = []
        for node in self.nodes:
            if isinstance(node, Source):
                ways.append({node.pipeline: 0})
                continue
            found: dict[str, int] = {}
            for origin in node.inputs:
                windows = _windows_of(self.nodes[origin])
                delay = getattr(windows, "delay", 0)
                for source, before in ways[origin].items():
                    found[source] = max(found.get(source, 0), before + delay)
            ways.append(found)
        return tuple(ways)

    def components(self) -> Iterator[ComponentUse]:
        """Yield every component where it is used: builders, then those of the nodes in order."""
        for partition in self.partitions:
            yield ComponentUse(partition.builder, "builder", partition)
        for node in self.nodes:
            owner = node.operation if isinstance(node, Step) else node.config
            for attribute, role in _ROLES.items():
                component = getattr(owner, attribute, None)
                if component is not None:
                    yield ComponentUse(component, role, node)

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
            owner = node.operation if isinstance(node, Step) else node.config
            used = [name for name in _ROLES if getattr(owner, name, None) is not None]
            owner = _with(owner, {name: next(new) for name in used})
            changes = {"operation" if isinstance(node, Step) else "config": owner}
            nodes.append(replace(node, **changes))
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


_ROLES = {
    "generator": "generator",
    "decoder": "decoder",
    "event_time": "event time",
    "route": "partition function",
    "computation": "computation",
    "aggregation": "aggregation",
    "encoder": "encoder",
}
"""The attributes of configurations and operations that hold components, and the roles of these."""


def _windows_of(node: Node) -> Windows | None:
    if isinstance(node, Step) and isinstance(node.operation, Windowed):
        return node.operation.windows
    return None


def _with(owner: Any, components: Mapping[str, Component]) -> Any:
    """Return a configuration or an operation with other components, not checked again."""
    changed = copy.copy(owner)
    for attribute, component in components.items():
        object.__setattr__(changed, attribute, component)
    return changed
