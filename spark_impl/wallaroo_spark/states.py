"""The entities a flow works on during a batch: built, handed to calls, kept.

`IsolatedStates` keeps every entity pickled and gives each call a copy; what a call leaves is
pickled at once, so an entity is only ever replaced whole. `TrustingStates` keeps live objects and
pickles what changed when the batch ends; where that fails the batch has to be done again, isolated,
to know which call left what cannot be pickled.
"""

from __future__ import annotations

import pickle
from typing import Any, Protocol

from wallaroo_spark.plan import Component
from wallaroo_spark.portable import PROTOCOL, UnportableError, freeze, freeze_checked
from wallaroo_spark.segments import Entities


class Redo(Exception):  # noqa: N818 - a request, not an error
    """What was done in trusting mode must be done again, isolated."""


class States(Protocol):
    """Entities by id, see `entity_id`."""

    def exists(self, entity: bytes) -> bool:
        """Return whether the entity has been built."""

    def build(self, entity: bytes, state: Any) -> None:
        """Add an entity, as built (state-1).

        Raises:
            UnportableError: it cannot be kept.
        """

    def take(self, entity: bytes) -> Any:
        """Return the state for a call to work on."""

    def keep(self, entity: bytes, state: Any) -> None:
        """Make the entity what a call has left (state-3).

        Raises:
            UnportableError: it cannot be kept; the entity is as it was.
        """

    def flush(self) -> None:
        """Write what has changed.

        Raises:
            Redo: some of it cannot be.
        """


def entity_id(component: Component, partition: str, key: bytes) -> bytes:
    """Return what an entity is known by among those of its component."""
    if len(component.partitions) == 1:
        return key
    return component.partitions.index(partition).to_bytes(2, "big") + key


def entity_of(component: Component, entity: bytes) -> tuple[str, bytes]:
    """Return the state partition and encoded key of which `entity_id` made `entity`."""
    if len(component.partitions) == 1:
        return component.partitions[0], entity
    return component.partitions[int.from_bytes(entity[:2], "big")], entity[2:]


class IsolatedStates:
    """Entities of which every call gets a copy."""

    def __init__(self, entities: Entities) -> None:
        self._entities = entities
        self._spare: dict[bytes, Any] = {}  # copies made to see that a state can be read back

    def exists(self, entity: bytes) -> bool:
        """See `States`."""
        return self._entities.get(entity) is not None

    def build(self, entity: bytes, state: Any) -> None:
        """See `States`."""
        self.keep(entity, state)

    def take(self, entity: bytes) -> Any:
        """See `States`."""
        if entity in self._spare:
            return self._spare.pop(entity)
        blob = self._entities.get(entity)
        assert blob is not None
        return pickle.loads(blob)  # noqa: S301 - bytes we made

    def keep(self, entity: bytes, state: Any) -> None:
        """See `States`."""
        frozen, spare = freeze_checked(state)
        self._entities.put(entity, _blob(frozen))
        self._spare[entity] = spare

    def flush(self) -> None:
        """See `States`."""
        self._entities.flush()


class TrustingStates:
    """Entities that calls work on themselves."""

    def __init__(self, entities: Entities) -> None:
        self._entities = entities
        self._live: dict[bytes, Any] = {}
        self._changed: set[bytes] = set()

    def exists(self, entity: bytes) -> bool:
        """See `States`."""
        if entity in self._live:
            return True
        blob = self._entities.get(entity)
        if blob is None:
            return False
        self._live[entity] = pickle.loads(blob)  # noqa: S301 - bytes we made
        return True

    def build(self, entity: bytes, state: Any) -> None:
        """See `States`."""
        self._live[entity] = state
        self._changed.add(entity)

    def take(self, entity: bytes) -> Any:
        """See `States`."""
        return self._live[entity]

    def keep(self, entity: bytes, state: Any) -> None:
        """See `States`."""
        self._changed.add(entity)

    def flush(self) -> None:
        """See `States`."""
        try:
            # A set of bytes has no order that would be the same in another process.
            blobs = [
                (entity, _blob(freeze(self._live[entity]))) for entity in sorted(self._changed)
            ]
        except UnportableError as error:
            raise Redo from error
        for entity, blob in blobs:
            self._entities.put(entity, blob)
        self._entities.flush()


def _blob(frozen: Any) -> bytes:
    return frozen[0] if type(frozen) is tuple else pickle.dumps(frozen, PROTOCOL)
