"""The topology as the interpreter walks it: a place for each source, step and sink."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from wallaroo.checks import Call
from wallaroo.components import Component
from wallaroo.kafka import KafkaSinkConfig
from wallaroo.keys import Key
from wallaroo.operations import (
    Branch,
    Collect,
    KeyBy,
    Merge,
    Stateful,
    Stateless,
    Windowed,
)
from wallaroo.topology import Application, Node, Sink, SinkId, Source
from wallaroo.trace import Reason


@dataclass(slots=True, eq=False)
class Place:
    """A source, step or sink in its pipeline, with the consumers of its messages.

    `pipeline`, `step`, `position` and `sink` are a dead letter's fields; `reason` is a dead
    letter's reason when the call raises. `calls` counts the calls that succeeded; the call with
    number `next_examined` is the next one that the observer examines. Only a step that is neither a
    computation nor a state computation has an `operation`; of these only `key_by` has a `call`.
    `kafka` is the configuration of a Kafka sink.
    """

    pipeline: str
    step: str | None
    position: int
    sink: SinkId | None
    reason: Reason
    component: Component | None
    call: Call
    multi: bool
    stateful: Stateful | None
    operation: Windowed | KeyBy | Collect | Merge | Branch | None
    consumers: list[Place] = field(default_factory=list)
    kafka: KafkaSinkConfig | None = None
    calls: int = 0
    next_examined: int = 1


@dataclass(slots=True, eq=False)
class FrozenEntity:
    """A state entity; its state is frozen while no call works on it."""

    key: Key
    state: Any
    like: bytes | None = None  # other pickle bytes known to mean this state


def places(application: Application) -> list[Place]:
    """Return the place of each node; their consumers are linked."""
    places = [_place(application, node) for node in application.nodes]
    for place, consumers in zip(places, application.consumers, strict=True):
        place.consumers.extend([places[index] for index in consumers])
    return places


def _place(application: Application, node: Node) -> Place:
    pipeline = node.pipeline
    step, position, sink, multi = None, application.position(node), None, False
    stateful, other = None, None
    component: Component | None = None
    if isinstance(node, Source):
        component, reason = node.config.decoder, Reason.DECODE
    elif isinstance(node, Sink):
        component, reason, sink = node.config.encoder, Reason.ENCODE, node.id
    else:
        reason, step, operation = Reason.RAISED, node.name, node.operation
        if isinstance(operation, (Stateless, Stateful)):
            component, multi = operation.computation, operation.computation.multi
            stateful = operation if isinstance(operation, Stateful) else None
        else:
            other = operation
            component = operation.route if isinstance(operation, KeyBy) else None
    call = _no_call if component is None else component.call
    place = Place(pipeline, step, position, sink, reason, component, call, multi, stateful, other)
    if isinstance(node, Sink) and isinstance(node.config, KafkaSinkConfig):
        place.kafka = node.config
    return place


def _no_call(*_: Any) -> Any:
    raise AssertionError("a generator, a merge, a branch or a window step has no call of its own")
