"""The interpreter's view of the topology: the places of calls, and the stores of entities."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from wallaroo.checks import Call
from wallaroo.components import Component
from wallaroo.keys import BadKeyError, Key, identity, is_u64, respelling_hint, show_key
from wallaroo.operations import Stateful
from wallaroo.topology import Application, Node, Sink, SinkId, Source, StatePartition
from wallaroo.trace import Reason
from wallaroo_reference.dead_letter import DeadLetterError

E = TypeVar("E")

OWN_IDENTITY = frozenset({str, bytes, int})
"""The exact types of keys for which `wallaroo.keys.identity` returns the key itself."""


@dataclass(slots=True, eq=False)
class Place:
    """A decoder, computation or encoder in its pipeline, with the consumers of its messages.

    `source`, `pipeline`, `step`, `position` and `sink` are a dead letter's fields; `reason` is a
    dead letter's reason when the call raises. `calls` counts the calls that succeeded; the call
    with number `next_examined` is the next one that the observer examines.
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
    next_examined: int = 1


@dataclass(slots=True, eq=False)
class FrozenEntity:
    """A state entity; its state is frozen while no call works on it."""

    key: Key
    state: Any
    like: bytes | None = None  # other pickle bytes known to mean the same state


class Store(Generic[E]):
    """The entities of one state partition, by the identities of their keys."""

    def __init__(self, partition: StatePartition) -> None:
        self.partition = partition
        self.entities: dict[Hashable, E] = {}
        keys = partition.keys
        self._listed = None if keys is None else {identity(key) for key in keys}

    def judge(self, key: Any) -> Hashable:
        """Return the identity of `key`, by which its entity is stored (route-2, route-5).

        Raises:
            DeadLetterError: `bad-key`: it is no valid key.
        """
        known: Hashable = key
        if type(key) in OWN_IDENTITY and known in self.entities:
            return known  # it was judged when its first message came
        try:
            known = identity(key)
        except BadKeyError as error:
            raise DeadLetterError(Reason.BAD_KEY, str(error)) from None
        if self.partition.u64 and not is_u64(key):
            shown = show_key(key)
            raise DeadLetterError(
                Reason.BAD_KEY, f"a 64-bit key is an int from 0 to 2**64 - 1: {shown}"
            )
        return known

    def expect(self, key: Key, known: Hashable) -> None:
        """Refuse a key that is not listed, if the application lists its keys (route-3).

        Raises:
            DeadLetterError: `unknown-key`.
        """
        if self._listed is not None and known not in self._listed:
            raise DeadLetterError(
                Reason.UNKNOWN_KEY,
                f"{show_key(key)} is not among the {len(self._listed)} keys of "
                f"state partition {self.partition.name!r}"
                f"{respelling_hint(key, self._lists)}",
            )

    def _lists(self, key: Key) -> bool:
        return self._listed is None or identity(key) in self._listed


def places(application: Application) -> dict[str, Place]:
    """Return the place of each source's decoder; their consumers lead to all other places."""
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
    step, position, sink, multi, stateful = None, application.position(node), None, False, None
    component: Component
    if isinstance(node, Source):
        component, reason = node.config.decoder, Reason.DECODE
    elif isinstance(node, Sink):
        component, reason, sink = node.config.encoder, Reason.ENCODE, node.id
    else:
        component, reason = node.operation.computation, Reason.RAISED
        step = node.name
        multi = node.operation.computation.multi
        stateful = node.operation if isinstance(node.operation, Stateful) else None
    call = component.call
    return Place(pipeline, pipeline, step, position, sink, reason, component, call, multi, stateful)
