"""New states for old ones: what ``wallaroo checkpoint DIR --migrate MODULE:FUNCTION`` makes."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from wallaroo.copying import PROTOCOL
from wallaroo.keys import Key, decode_key
from wallaroo.transport.identity import CheckpointError
from wallaroo.transport.old_states import FreshStates, Place
from wallaroo.transport.shadows import state_of, structure_of
from wallaroo.transport.stored_state import StoredState, with_parts

Change: TypeAlias = Callable[[str, Key, Any], Any]
"""Takes a state partition's name, a key and a state; returns the new state.

Also a window step's name, the key of an open window, and an accumulator of it. Where the
application has its own `serialize`, states are bytes: what that has made."""


class Migration:
    """Makes new states of stored ones by a function of the user's, and checks what it returns.

    Args:
        change: the function.
        fresh: what the application builds today; `None`: nobody has said.
        coded: the application's `serialize` has made the states: the function takes and returns
            its bytes.

    Attributes:
        changed: number of states and accumulators that are others now.
    """

    def __init__(self, change: Change, fresh: FreshStates | None, *, coded: bool) -> None:
        self.changed = 0
        self._change = change
        self._fresh = fresh
        self._coded = coded

    def migrated(self, state: StoredState) -> StoredState:
        """Return a whole state with what the function makes of each state and accumulator.

        Raises:
            CheckpointError: a state cannot be loaded or pickled, the function raised, or what it
                returned is not what the application builds.
        """
        entities = [
            entity._replace(state=self._new(Place(entity.partition), entity.key, entity.state))
            for entity in state.entities
        ]
        windows = [
            one._replace(
                form=with_parts(one.form, partial(self._new, state.steps[one.step], one.key))
            )
            for one in state.windows
        ]
        return replace(state, entities=entities, windows=windows)

    def _new(self, place: Place, encoded: bytes, data: bytes) -> bytes:
        """Return what the function makes of a stored state, or accumulator, as it is stored."""
        key = decode_key(encoded)
        try:
            new = self._made(place, key, data)
        except (Exception, SystemExit) as error:
            unknown = isinstance(error, pickle.PicklingError) and self._fresh is None
            raise CheckpointError(
                f"{place}, key {key!r:.80} cannot be migrated: "
                f"{type(error).__name__}: {error}"
                + ". Name the application that has the class with --app"
                * unknown
            ) from error
        self.changed += new != data if self._coded else structure_of(new) != structure_of(data)
        return new

    def _made(self, place: Place, key: Key, data: bytes) -> bytes:
        new = self._change(place.name, key, data if self._coded else state_of(data))
        if self._coded and not isinstance(new, bytes):
            raise TypeError(
                "the application has its own serialize, so the new state must be bytes, not "
                f"{new!r:.80}"
            )
        stored: bytes = new if self._coded else pickle.dumps(new, PROTOCOL)
        if self._fresh is not None and (why := self._fresh.refusal(place, stored)):
            raise TypeError(f"the function's result {why}")
        return stored
