"""The entities of a state partition, of both machines (route-2, route-3, key-4)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Generic, TypeVar

from wallaroo.judging import judged_key, unknown_key
from wallaroo.keys import Key, identity
from wallaroo.overriding import override
from wallaroo.topology import StatePartition
from wallaroo_reference.cells import (
    NOT_NOTED,
    VISITED,
    Cells,
    Kind,
    UnpackError,
    identities_of,
    key_of_name,
    name_of,
)

E = TypeVar("E")

OWN_IDENTITY = frozenset({str, bytes, int})
"""The exact types of keys for which `wallaroo.keys.identity` returns the key itself."""


class Store(Cells, Generic[E]):
    """The entities of one state partition, by the identities of their keys.

    Attributes:
        keeps: note in `changed` which entities have changed.
        visits: if entities expire, the arrival time of each one's last visit, oldest first.
        changed: see `wallaroo_reference.cells.Cells`.
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
        identity: Hashable = key
        if type(key) in OWN_IDENTITY and identity in self.entities:
            return identity  # it was judged when its first message came
        return judged_key(key, u64=self.partition.u64)

    def visit(self, identity: Hashable, now: int) -> None:
        """Note that an entity, by its key's identity, is visited at arrival time `now` (key-4)."""
        if self.partition.expire_after is not None:
            self.visits.pop(identity, None)  # it goes to the end: visits are in order of time
            self.visits[identity] = now
            self.touch(identity)

    def expire(self, now: int) -> None:
        """Forget the entities last visited `expire_after` or longer before `now` (key-4)."""
        expire_after = self.partition.expire_after
        assert expire_after is not None
        while self.visits:
            identity = next(iter(self.visits))
            if now - self.visits[identity] < expire_after:
                return
            del self.visits[identity], self.entities[identity]
            self.touch(identity)

    def touch(self, identity: Hashable) -> None:
        """Note that an entity may have changed, or is gone."""
        if self.keeps:
            self.changed[identity] = None

    def expect(self, key: Key, identity: Hashable) -> None:
        """Refuse a key that is not listed, if the application lists its keys (route-3).

        Raises:
            DeadLetterError: `unknown-key`.
        """
        if self._listed is not None and identity not in self._listed:
            raise unknown_key(key, self.partition, self._lists)

    def _lists(self, key: Key) -> bool:
        return self._listed is None or identity(key) in self._listed

    # -- for checkpoints: see `wallaroo_reference.cells.Cells` ----------------------------------

    def keep(self, dumps: Callable[[E], bytes], make: Callable[[bytes, bytes], E]) -> None:
        """Begin to note what changes.

        Args:
            dumps: returns an entity's state as bytes.
            make: returns the entity of a cell's name and these bytes.
        """
        self.keeps = True
        self._dumps, self._make = dumps, make

    @override
    def count(self) -> int:
        return len(self.entities)

    @override
    def identities(self) -> list[Any]:
        return list(self.entities)

    @override
    def named(self, identity: Any) -> bytes:
        return name_of(identity)

    @override
    def packed(self, identity: Any) -> bytes | None:
        if identity not in self.entities:
            return None
        visited = VISITED.pack(self.visits.get(identity, NOT_NOTED))
        return visited + self._dumps(self.entities[identity])

    @override
    def unpack(self, cells: Sequence[tuple[bytes, bytes]]) -> None:
        entities, make, start = self.entities, self._make, VISITED.size
        expires = self.partition.expire_after is not None
        for key_identity, (name, value) in zip(identities_of(cells), cells, strict=True):
            try:
                entities[key_identity] = make(name, value[start:])
            except Exception as error:
                raise UnpackError(self, key_of_name(name), error) from error
            if expires:
                self.visits[key_identity] = VISITED.unpack_from(value)[0]

    def go_on_from(self, now: int) -> None:
        """Put the visits in order; an entity without a noted visit was visited `now`."""
        visits = {identity: now if at == NOT_NOTED else at for identity, at in self.visits.items()}
        self.visits.clear()
        self.visits.update(sorted(visits.items(), key=lambda visit: visit[1]))
