"""Where calls are made and where entities live: the interpreter's view of the topology."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from wallaroo.components import Call, Component
from wallaroo.keys import BadKeyError, Key, identity, is_u64, respelling_hint, show_key
from wallaroo.topology import Application, Node, Sink, SinkId, Source, Stateful, StatePartition
from wallaroo.trace import Reason
from wallaroo_reference.dead_letter import DeadLetterError

E = TypeVar("E")

OWN_IDENTITY = frozenset({str, bytes, int})
"""Exact types of keys that are their own identities (`wallaroo.keys.identity`)."""


@dataclass(slots=True, eq=False)
class Place:
    """A decoder, computation or encoder where it stands, with what takes its messages.

    `source`, `pipeline`, `step`, `position` and `sink` are a dead letter's fields; `reason` is the
    one it has when the call raises. `calls` counts the calls that ended well, of which number
    `next_look` is the next that who looks for findings wants to see.
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
class FrozenEntity:
    """A state entity; its state is frozen whenever no call is looking at it."""

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
        """Return what `key` is known by, if it is one at all (route-2, route-5).

        Raises:
            DeadLetterError: `bad-key`.
        """
        known: Hashable = key
        if type(key) in OWN_IDENTITY and known in self.entities:
            return known  # it was judged when it was met first
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
        """Refuse a key the application does not list, where it lists its keys (route-3).

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
