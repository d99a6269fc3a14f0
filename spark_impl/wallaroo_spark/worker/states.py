"""The entities a flow works on during a batch: built, handed to calls, kept.

`IsolatedStates` keeps every entity pickled and gives each call a copy; the state after a call is
pickled at once, so an entity is never half replaced. `TrustingStates` keeps live objects and
pickles the changed ones when the batch ends; if that fails, the batch is processed again in
isolated mode, to find the call whose state cannot be pickled.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any, Protocol

from wallaroo_spark.worker.plan import Component
from wallaroo_spark.worker.portable import PROTOCOL, UnportableError, freeze, freeze_checked
from wallaroo_spark.worker.segments import Entities
from wallaroo_spark.worker.stored import restored


class NeedsIsolation(Exception):  # noqa: N818 - a request, not an error
    """Only isolated mode can keep the rules here: process the messages again in that mode."""


ABSENT: Any = object()
"""Stands for the state of an entity that has not been built."""


class States(Protocol):
    """Entities by id, see `entity_id`."""

    def __getitem__(self, entity: bytes) -> Any:
        """Return the state for a call to work on, or `ABSENT`."""

    def build(self, entity: bytes, state: Any) -> Any:
        """Add a new entity (state-1); return the state for a call to work on.

        Raises:
            UnportableError: it cannot be pickled.
        """

    @property
    def keep(self) -> Callable[[bytes, Any], Any]:
        """Store the state that a call has left as the entity's state (state-3).

        Raises:
            UnportableError: it cannot be pickled; the entity is as it was.
        """

    def flush(self) -> None:
        """Write the changed entities.

        Raises:
            NeedsIsolation: some of them cannot be pickled.
        """


def entity_id(component: Component, partition: str, key: bytes) -> bytes:
    """Return the entity's id, which is unique within its component."""
    if len(component.partitions) == 1:
        return key
    return component.partitions.index(partition).to_bytes(2, "big") + key


def entity_of(component: Component, entity: bytes) -> tuple[str, bytes]:
    """Return the state partition and encoded key of an entity id."""
    if len(component.partitions) == 1:
        return component.partitions[0], entity
    return component.partitions[int.from_bytes(entity[:2], "big")], entity[2:]


class IsolatedStates:
    """Entities in isolated mode: every call gets a copy."""

    def __init__(self, entities: Entities) -> None:
        self._entities = entities
        self._spare: dict[bytes, Any] = {}  # copies made to check that a state can be read back

    def __getitem__(self, entity: bytes) -> Any:
        """See `States`."""
        if entity in self._spare:
            return self._spare.pop(entity)
        blob = self._entities.get(entity)
        return ABSENT if blob is None else restored(blob)

    def build(self, entity: bytes, state: Any) -> Any:
        """See `States`."""
        self.keep(entity, state)
        return self[entity]

    def keep(self, entity: bytes, state: Any) -> None:
        """See `States`."""
        frozen, spare = freeze_checked(state)
        self._entities.put(entity, _blob(frozen))
        self._spare[entity] = spare

    def flush(self) -> None:
        """See `States`."""
        self._entities.flush()


class TrustingStates(dict[bytes, Any]):
    """Entities in trusting mode, by id: calls work on the entities themselves.

    To get a known entity and to keep one are `dict`'s own methods, without Python code. With
    hundreds of messages for each entity of a batch, this saves much time.
    """

    def __init__(self, entities: Entities) -> None:
        super().__init__()
        self._entities = entities
        self._changed: dict[bytes, Any] = {}
        self.keep = self._changed.setdefault

    def __missing__(self, entity: bytes) -> Any:
        """Read an entity."""
        blob = self._entities.get(entity)
        if blob is None:
            return ABSENT
        state = self[entity] = restored(blob)
        return state

    def build(self, entity: bytes, state: Any) -> Any:
        """See `States`."""
        self[entity] = self._changed[entity] = state
        return state

    def flush(self) -> None:
        """See `States`."""
        try:
            # Sorted, so that the order is the same in every process.
            blobs = [
                (entity, _blob(freeze(self._changed[entity]))) for entity in sorted(self._changed)
            ]
        except UnportableError as error:
            raise NeedsIsolation from error
        for entity, blob in blobs:
            self._entities.put(entity, blob)
        self._entities.flush()


def _blob(frozen: Any) -> bytes:
    return frozen[0] if type(frozen) is tuple else pickle.dumps(frozen, PROTOCOL)
