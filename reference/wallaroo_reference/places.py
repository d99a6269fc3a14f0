"""Where calls are made and where entities live: the interpreter's view of the topology."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Final

from wallaroo.components import Call, Component
from wallaroo.keys import Key, identity
from wallaroo.topology import Application, Node, Sink, SinkId, Source, Stateful, StatePartition
from wallaroo.trace import Reason

U64: Final = 1 << 64


@dataclass(slots=True, eq=False)
class Place:
    """A decoder, computation or encoder where it stands, with what takes its messages.

    `source`, `pipeline`, `step`, `position` and `sink` are a dead letter's fields; `reason` is the
    one it has when the call raises. `calls` and `next_look` belong to who looks for findings.
    """

    source: str
    pipeline: str
    step: str | None
    position: int
    sink: SinkId | None
    reason: Reason
    component: Component
    call: Call
    multi: bool
    stateful: Stateful | None
    consumers: list[Place] = field(default_factory=list)
    calls: int = 0
    next_look: int = 1


@dataclass(slots=True, eq=False)
class EntityNow:
    """A state entity; its state is frozen whenever no call is looking at it."""

    key: Key
    state: Any
    like: bytes | None = None  # other pickle bytes known to mean the same state


class Store:
    """The entities of one state partition, by the identities of their keys."""

    def __init__(self, partition: StatePartition) -> None:
        self.partition = partition
        self.listed = None if partition.keys is None else {identity(key) for key in partition.keys}
        self.entities: dict[Hashable, EntityNow] = {}


def places(application: Application) -> dict[str, Place]:
    """Return the place of each source's decoder, from which all others are reached."""
    made = [_place(application, node) for node in application.nodes]
    for place, consumers in zip(made, application.consumers, strict=True):
        place.consumers.extend([made[index] for index in consumers])
    return {
        node.pipeline: place
        for node, place in zip(application.nodes, made, strict=True)
        if isinstance(node, Source)
    }


def _place(application: Application, node: Node) -> Place:
    pipeline = node.pipeline
    step, position, sink, multi, stateful = None, -1, None, False, None
    component: Component
    if isinstance(node, Source):
        component, reason = node.config.decoder, Reason.DECODE
    elif isinstance(node, Sink):
        component, reason, sink = node.config.encoder, Reason.ENCODE, node.id
        position = len([step for step in application.steps if step.pipeline == pipeline])
    else:
        component, reason = node.operation.computation, Reason.RAISED
        step, position = node.name, node.position
        multi = node.operation.computation.multi
        stateful = node.operation if isinstance(node.operation, Stateful) else None
    call = component.call
    return Place(pipeline, pipeline, step, position, sink, reason, component, call, multi, stateful)
