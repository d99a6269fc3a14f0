"""The entities a flow works on during a batch: built, handed to calls, kept.

`IsolatedStates` keeps every entity pickled and gives each call a copy; the state after a call is
pickled at once, so an entity is never half replaced. `TrustingStates` keeps live objects and
pickles the changed ones when the batch ends, and reads them back; if that fails, the batch is
processed again in isolated mode, to find the call whose state does not survive it.

An entity that expires has its last visit stored beside its state, and is found to be gone when its
next message comes (key-4).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from wallaroo.copying import Copies
from wallaroo.overriding import override
from wallaroo_spark.worker.plan import Member, StateGroup
from wallaroo_spark.worker.segments import Entities
from wallaroo_spark.worker.stored import Form, unpacked

M = TypeVar("M")


class NeedsIsolation(Exception):  # noqa: N818 - a request, not an error
    """Only isolated mode can keep the rules here: process the messages again in that mode."""


ABSENT: Any = object()
"""Stands for the state of an entity that has not been built."""


class States(Protocol):
    """Entities by id, see `entity_id`.

    Attributes:
        entities: where they are stored.
    """

    entities: Entities

    def __getitem__(self, entity: bytes) -> Any:
        """Return the state for a call to work on, or `ABSENT`."""

    def build(self, entity: bytes, state: Any) -> Any:
        """Add a new entity (state-1); return the state for a call to work on.

        Raises:
            DeadLetterError: it cannot be pickled.
        """

    @property
    def keep(self) -> Callable[[bytes, Any], Any]:
        """Store the state that a call has left as the entity's state (state-3).

        Raises:
            DeadLetterError: it cannot be pickled; the entity is as it was.
        """

    def visit(self, entity: bytes, now: int, expire_after: int) -> None:
        """Note a visit of an entity, which may not exist yet; if it had expired, remove it (key-4).

        Args:
            entity: its id.
            now: the arrival time of the message.
            expire_after: nanoseconds after its last visit at which it is gone.
        """

    def flush(self) -> None:
        """Write the changed entities.

        Raises:
            NeedsIsolation: some of them do not survive pickling.
        """


def entity_id(group: StateGroup, member: Member, key: bytes) -> bytes:
    """Return the entity's id, which is unique within its group."""
    return member_prefix(len(group.members), group.members.index(member)) + key


def member_prefix(members: int, member: int) -> bytes:
    """Return what the ids of a member of a group begin with: its number, if there are several."""
    return b"" if members == 1 else member.to_bytes(2, "big")


def entity_of(members: Sequence[M], entity: bytes) -> tuple[M, bytes]:
    """Return the member, of those of its group, and the encoded key of an entity id."""
    if len(members) == 1:
        return members[0], entity
    return members[int.from_bytes(entity[:2], "big")], entity[2:]


class _Visits:
    """The last visits of entities that expire, during a batch."""

    def __init__(self, entities: Entities, form: Form) -> None:
        self._entities = entities
        self._form = form
        self.at: dict[bytes, int] = {}

    def packed(self, entity: bytes, frozen: Any) -> bytes:
        """Return an entity as it is stored."""
        return self._form.packed(frozen, self.at.get(entity, 0))

    def visit(self, entity: bytes, now: int, expire_after: int) -> bool:
        """Note a visit; return whether the entity had expired, and remove it from the store."""
        last = self.at.get(entity)
        if last is None:
            blob = self._entities.get(entity)
            last = now if blob is None else unpacked(blob).visited
        self.at[entity] = now
        expired = now - last >= expire_after
        if expired:
            self._entities.remove(entity)
        return expired

    def flush(self) -> None:
        """Write the visits of entities that are there."""
        for entity, now in self.at.items():
            blob = self._entities.get(entity)
            if blob is not None and (stored := unpacked(blob)).visited != now:
                self._entities.put(entity, stored._replace(visited=now).packed())


class IsolatedStates(States):
    """Entities in isolated mode: every call gets a copy."""

    def __init__(self, entities: Entities, copies: Copies, form: Form) -> None:
        self.entities = entities
        self._copies = copies
        self._form = form
        self._visits = _Visits(entities, form)
        self._spare: dict[bytes, Any] = {}  # copies made to check that a state can be read back

    @override
    def __getitem__(self, entity: bytes) -> Any:
        if entity in self._spare:
            return self._spare.pop(entity)
        blob = self.entities.get(entity)
        return ABSENT if blob is None else self._form.state(blob)

    @override
    def build(self, entity: bytes, state: Any) -> Any:
        self.keep(entity, state)
        return self[entity]

    @override
    def keep(self, entity: bytes, state: Any) -> None:
        frozen, spare = self._copies.freeze_checked(state)
        self.entities.put(entity, self._visits.packed(entity, frozen))
        self._spare[entity] = spare

    @override
    def visit(self, entity: bytes, now: int, expire_after: int) -> None:
        if self._visits.visit(entity, now, expire_after):
            self._spare.pop(entity, None)

    @override
    def flush(self) -> None:
        self._visits.flush()
        self.entities.flush()


class TrustingStates(dict[bytes, Any]):
    """Entities in trusting mode, by id: calls work on the entities themselves.

    Getting a known entity and keeping one are `dict`'s own methods, without Python code. With
    hundreds of messages for each entity of a batch, this saves much time.
    """

    def __init__(self, entities: Entities, copies: Copies, form: Form) -> None:
        super().__init__()
        self.entities = entities
        self._copies = copies
        self._form = form
        self._visits = _Visits(entities, form)
        self._changed: dict[bytes, Any] = {}
        self.keep = self._changed.setdefault

    def __missing__(self, entity: bytes) -> Any:
        """Read an entity."""
        blob = self.entities.get(entity)
        if blob is None:
            return ABSENT
        state = self[entity] = self._form.state(blob)
        return state

    def build(self, entity: bytes, state: Any) -> Any:
        """Do as `States` says."""
        self[entity] = self._changed[entity] = state
        return state

    def visit(self, entity: bytes, now: int, expire_after: int) -> None:
        """Do as `States` says."""
        if self._visits.visit(entity, now, expire_after):
            self.pop(entity, None)
            self._changed.pop(entity, None)

    def flush(self) -> None:
        """Do as `States` says."""
        form, visited, put = self._form, self._visits.at.get, self.entities.put
        try:
            blobs = [
                (entity, form.written(state, visited(entity, 0)))
                for entity, state in self._changed.items()
            ]
            for _, blob in blobs:
                form.state(blob)
        except BaseException as error:  # user code pickles, and may end the run (dead-3)
            raise NeedsIsolation from error
        for entity, blob in blobs:
            put(entity, blob)
        self._visits.flush()
        self.entities.flush()
