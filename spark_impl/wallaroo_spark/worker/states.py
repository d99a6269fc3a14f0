"""The entities a flow works on during a batch: built, handed to calls, kept.

`IsolatedStates` keeps every entity pickled and gives each call a copy; what a call leaves is
pickled at once, so an entity is only ever replaced whole. `TrustingStates` keeps live objects and
pickles what changed when the batch ends; where that fails the batch has to be done again, isolated,
to know which call left what cannot be pickled.
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
    """Only isolated mode can keep the rules here: the messages must be taken again in it."""


ABSENT: Any = object()
"""What there is where no entity has been built."""


class States(Protocol):
    """Entities by id, see `entity_id`."""

    def __getitem__(self, entity: bytes) -> Any:
        """Return the state for a call to work on, or `ABSENT`."""

    def build(self, entity: bytes, state: Any) -> Any:
        """Add an entity, as built (state-1); return the state for a call to work on.

        Raises:
            UnportableError: it cannot be kept.
        """

    @property
    def keep(self) -> Callable[[bytes, Any], Any]:
        """Make an entity what a call has left (state-3).

        Raises:
            UnportableError: it cannot be kept; the entity is as it was.
        """

    def flush(self) -> None:
        """Write what has changed.

        Raises:
            NeedsIsolation: some of it cannot be.
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
    """Entities that calls work on themselves, by id; those that were asked for.

    To ask for one that was asked for before, and to keep one, are `dict`'s own methods and run no
    code of ours: with hundreds of messages for each entity of a batch, that tells.
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
            # In an order that is the same in another process.
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
