"""The topology as the interpreter walks it, by places; the entities of both machines, in stores."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from wallaroo.checks import Call
from wallaroo.components import Component
from wallaroo.judging import judged_key, unknown_key
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
from wallaroo_reference.kept import (
    NOT_NOTED,
    VISITED,
    Kind,
    UnpackError,
    identities_of,
    key_of_name,
    name_of,
)

E = TypeVar("E")

OWN_IDENTITY = frozenset({str, bytes, int})
"""The exact types of keys for which `wallaroo.keys.identity` returns the key itself."""


@dataclass(slots=True, eq=False)
class Place:
    """A source, step or sink in its pipeline, with the consumers of its messages.

    `pipeline`, `step`, `position` and `sink` are a dead letter's fields; `reason` is a dead
    letter's reason when the call raises. `calls` counts the calls that succeeded; the call with
    number `next_examined` is the next one that the observer examines. Only a step that is neither a
    computation nor a state computation has an `operation`; of these only `key_by` has a `call`.
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
    """The entities of one state partition, by the identities of their keys.

    Attributes:
        keeps: note in `changed` which entities have changed.
        visits: if entities expire, the arrival time of each one's last visit, oldest first.
        changed: see `wallaroo_reference.kept.Cells`.
    """

    kind: Kind = "partition"

    def __init__(self, partition: StatePartition) -> None:
        self.partition = partition
        self.name = partition.name
        self.entities: dict[Hashable, E] = {}
        self.keeps = False
        self.changed: dict[Hashable, Any] = {}
        self.visits: dict[Hashable, int] = {}
        keys = partition.keys
        self._listed = None if keys is None else {identity(key) for key in keys}

    def judge(self, key: Any) -> Hashable:
        """Return the identity of `key`, by which its entity is stored (route-2, route-5).

        Raises:
            DeadLetterError: `bad-key`: it is not a valid key.
        """
        known: Hashable = key
        if type(key) in OWN_IDENTITY and known in self.entities:
            return known  # it was judged when its first message came
        return judged_key(key, u64=self.partition.u64)

    def visit(self, known: Hashable, now: int) -> None:
        """Note that an entity, by its key's identity, is visited at arrival time `now` (key-4)."""
        if self.partition.expire_after is not None:
            self.visits.pop(known, None)  # it goes to the end: visits are in order of time
            self.visits[known] = now
            self.touch(known)

    def expire(self, now: int) -> None:
        """Forget the entities last visited `expire_after` or longer before `now` (key-4)."""
        expire_after = self.partition.expire_after
        assert expire_after is not None
        while self.visits:
            known = next(iter(self.visits))
            if now - self.visits[known] < expire_after:
                return
            del self.visits[known], self.entities[known]
            self.touch(known)

    def touch(self, known: Hashable) -> None:
        """Note that an entity may have changed, or is gone."""
        if self.keeps:
            self.changed[known] = None

    def expect(self, key: Key, known: Hashable) -> None:
        """Refuse a key that is not listed, if the application lists its keys (route-3).

        Raises:
            DeadLetterError: `unknown-key`.
        """
        if self._listed is not None and known not in self._listed:
            raise unknown_key(key, self.partition, self._lists)

    def _lists(self, key: Key) -> bool:
        return self._listed is None or identity(key) in self._listed

    # -- for checkpoints: see `wallaroo_reference.kept.Cells` ----------------------------------

    def keep(self, dumps: Callable[[E], bytes], make: Callable[[bytes, bytes], E]) -> None:
        """Begin to note what changes.

        Args:
            dumps: returns an entity's state as bytes.
            make: returns the entity of a cell's name and these bytes.
        """
        self.keeps = True
        self._dumps, self._make = dumps, make

    def count(self) -> int:
        """Return the number of entities."""
        return len(self.entities)

    def identities(self) -> list[Any]:
        """Return the identities of the keys of all entities."""
        return list(self.entities)

    def named(self, known: Any) -> bytes:
        """Return the canonical encoding of an entity's key."""
        return name_of(known)

    def packed(self, known: Any) -> bytes | None:
        """Return when an entity was visited, and its state."""
        if known not in self.entities:
            return None
        visited = VISITED.pack(self.visits.get(known, NOT_NOTED))
        return visited + self._dumps(self.entities[known])

    def unpack(self, cells: Sequence[tuple[bytes, bytes]]) -> None:
        """Put in entities that were packed; raises as `Cells.unpack`."""
        entities, make, start = self.entities, self._make, VISITED.size
        expires = self.partition.expire_after is not None
        for known, (name, value) in zip(identities_of(cells), cells, strict=True):
            try:
                entities[known] = make(name, value[start:])
            except Exception as error:
                raise UnpackError(self, key_of_name(name), error) from error
            if expires:
                self.visits[known] = VISITED.unpack_from(value)[0]

    def go_on_from(self, now: int) -> None:
        """Put the visits in order; an entity without a noted visit was visited `now`."""
        known = {one: now if at == NOT_NOTED else at for one, at in self.visits.items()}
        self.visits.clear()
        self.visits.update(sorted(known.items(), key=lambda visit: visit[1]))


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
