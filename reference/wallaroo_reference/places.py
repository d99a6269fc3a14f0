"""The interpreter's view of the topology: the places of calls, and the stores of entities."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from wallaroo.checks import Call
from wallaroo.components import Component
from wallaroo.judging.keys import judged_key, unknown_key
from wallaroo.keys import Key, identity
from wallaroo.operations import (
    Branch,
    Collect,
    KeyBy,
    Merge,
    Stateful,
    Stateless,
    Windowed,
)
from wallaroo.topology import Application, Node, Sink, SinkId, Source, StatePartition
from wallaroo.trace import Reason

E = TypeVar("E")

OWN_IDENTITY = frozenset({str, bytes, int})
"""The exact types of keys for which `wallaroo.keys.identity` returns the key itself."""


@dataclass(slots=True, eq=False)
class Place:
    """A source, step or sink in its pipeline, with the consumers of its messages.

    `pipeline`, `step`, `position` and `sink` are a dead letter's fields; `reason` is a dead
    letter's reason when the call raises. `calls` counts the calls that succeeded; the call with
    number `next_examined` is the next one that the observer examines. `operation` is that of a step
    which is neither a computation nor a state computation; it has no `call` of its own.
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
        self._visits: dict[Hashable, int] = {}  # arrival time of the last visit, oldest first
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
        return judged_key(key, u64=self.partition.u64)

    def visit(self, known: Hashable, now: int) -> None:
        """Note that an entity, by its key's identity, is visited at arrival time `now` (key-4)."""
        if self.partition.expire_after is not None:
            self._visits.pop(known, None)  # it goes to the end: visits are in order of time
            self._visits[known] = now

    def expire(self, now: int) -> None:
        """Forget the entities last visited `expire_after` or longer before `now` (key-4)."""
        expire_after = self.partition.expire_after
        assert expire_after is not None
        while self._visits:
            known = next(iter(self._visits))
            if now - self._visits[known] < expire_after:
                return
            del self._visits[known], self.entities[known]

    def expect(self, key: Key, known: Hashable) -> None:
        """Refuse a key that is not listed, if the application lists its keys (route-3).

        Raises:
            DeadLetterError: `unknown-key`.
        """
        if self._listed is not None and known not in self._listed:
            raise unknown_key(key, self.partition, self._lists)

    def _lists(self, key: Key) -> bool:
        return self._listed is None or identity(key) in self._listed


def places(application: Application) -> list[Place]:
    """Return the place of each node; their consumers are linked."""
    made = [_place(application, node) for node in application.nodes]
    for place, consumers in zip(made, application.consumers, strict=True):
        place.consumers.extend([made[index] for index in consumers])
    return made


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
    return Place(pipeline, step, position, sink, reason, component, call, multi, stateful, other)


def _no_call(*_: Any) -> Any:
    raise AssertionError("a generator, a merge, a branch or a window step has no call of its own")
