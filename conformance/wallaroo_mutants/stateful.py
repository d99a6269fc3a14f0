"""Interpreters with a fault each in how they find, hand out and keep state entities."""

# ruff: noqa: D101 - `catalogue` says what each does

from __future__ import annotations

import pickle
import re
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import replace
from typing import Any

from wallaroo_reference.dead_letter import dead_letter_from
from wallaroo_reference.isolated.copies import Frozen, freeze, thaw
from wallaroo_reference.isolated.interpreter import Interpreter
from wallaroo_reference.places import FrozenEntity, Place, Store

from wallaroo.judging import DeadLetterError, pair_of
from wallaroo.keys import Key, identity
from wallaroo.operations import Stateful
from wallaroo.trace import Lineage, Reason


class IgnoresFlag(Interpreter):
    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        live = _Live(entity, place)
        try:
            return super()._visit(live.place, live.entity, message, lineage)
        finally:
            if live.returned:
                entity.state = freeze(live.state)
            else:
                entity.state = live.entity.state


class FreezesDroppedState(Interpreter):
    """Wants a state that is not kept to survive pickling too."""

    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        live = _Live(entity, place)
        try:
            output = super()._visit(live.place, live.entity, message, lineage)
        finally:
            entity.state = live.entity.state
        self._freeze(live.state)
        return output


class KeepsFirstState(Interpreter):
    """Forgets every change: the entity stays as built."""

    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        before = entity.state
        try:
            return super()._visit(place, entity, message, lineage)
        finally:
            entity.state = frozen_again(before)


class KeepsEqualState(Interpreter):
    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        before = entity.state
        output = super()._visit(place, entity, message, lineage)
        one, other = (getattr(thaw(state), "__dict__", None) for state in (before, entity.state))
        with suppress(Exception):  # some values cannot be compared
            if one is not None and one == other:
                entity.state = before
        return output


class StateTestedForTruth(Interpreter):
    """Builds an entity anew where its state is false."""

    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Any) -> Any:
        assert place.stateful is not None
        if not thaw(entity.state):
            store = self._stores[place.stateful.partition]
            entity.state = freeze(store.partition.builder.call())
        return super()._visit(place, entity, message, lineage)


class NoRollback(Interpreter):
    """Keeps what a call did to the state before it raised."""

    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        live = _Live(entity, place)
        try:
            return super()._visit(live.place, live.entity, message, lineage)
        except DeadLetterError as dead:
            if dead.reason is Reason.RAISED and live.called:
                live.entity.state = freeze(live.state)
            raise
        finally:
            entity.state = live.entity.state


class WritesStateWithOutputOnly(Interpreter):
    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        before = entity.state
        output = super()._visit(place, entity, message, lineage)
        if output is None:
            entity.state = frozen_again(before)
        return output


class EntityAfterSuccess(Interpreter):
    """An entity appears only with the first call that succeeds."""

    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        store = self._stores[place.stateful.partition] if place.stateful else None
        new = not getattr(entity, "like", None)
        try:
            output = super()._visit(place, entity, message, lineage)
        except DeadLetterError:
            if new and store is not None:
                store.entities.pop(identity(entity.key), None)
            raise
        entity.like = entity.like or b"visited"
        return output


class SendsByReference(Interpreter):
    """Outputs of a state computation are sent as they are, and change with the state."""

    def _visit(self, place: Place, entity: FrozenEntity, message: Any, lineage: Lineage) -> Any:
        state = thaw(entity.state)
        before = pickle.dumps(state)
        try:
            given, changed = pair_of(self._called(place, thaw(message), state))
            if place.multi:
                given, _ = self._items(place, given)
            else:
                freeze(given)
            freeze(state)
        except DeadLetterError:
            entity.state = pickle.loads(before)  # noqa: S301 - our own bytes
            raise
        entity.state = state if changed else pickle.loads(before)  # noqa: S301 - our own bytes
        return given

    def _called(self, place: Place, message: Any, state: Any) -> Any:
        try:
            return place.call(message, state)
        except BaseException as error:
            raise dead_letter_from(error, place.reason) from error


class SharesBuilt(Interpreter):
    """Keeps what the builder returns, without a copy."""

    def __init__(self, application: Any, **options: Any) -> None:
        super().__init__(application, **options)
        self._live: dict[int, Any] = {}

    def _build(
        self, place: Place, store: Store[FrozenEntity], key: Key, known: Hashable, lineage: Lineage
    ) -> FrozenEntity:
        builder = store.partition.builder
        entity = super()._build(place, store, key, known, lineage)
        if hasattr(builder.component, "only"):
            entity.state = builder.component.only
        return entity


class RouteTakesMessage(Interpreter):
    """Gives the partition function the message itself."""

    def _compute_with_state(
        self, place: Place, operation: Stateful, message: Any, lineage: Lineage
    ) -> None:
        if operation.route is not None and isinstance(message, Frozen):
            mine = thaw(message)
            try:
                operation.route.call(mine)
                message = freeze(mine)
            except Exception:  # noqa: BLE001, S110 - the call that counts raises it again
                pass
        super()._compute_with_state(place, operation, message, lineage)


class KeepsTheLatest(Interpreter):
    """Forgets the oldest of many entities, as a cache does."""

    def _build(
        self, place: Place, store: Store[FrozenEntity], key: Key, known: Hashable, lineage: Lineage
    ) -> FrozenEntity:
        entity = super()._build(place, store, key, known, lineage)
        if len(store.entities) > 256:
            del store.entities[next(iter(store.entities))]
        return entity


class WelcomesUnknownKeys(Interpreter):
    def _build(
        self, place: Place, store: Store[FrozenEntity], key: Key, known: Hashable, lineage: Lineage
    ) -> FrozenEntity:
        store._listed = None
        return super()._build(place, store, key, known, lineage)


class RemembersBrokenBuilder(Interpreter):
    """Gives a key whose builder raised an empty entity, so that it is not tried again."""

    def _build(
        self, place: Place, store: Store[FrozenEntity], key: Key, known: Hashable, lineage: Lineage
    ) -> FrozenEntity:
        try:
            return super()._build(place, store, key, known, lineage)
        except DeadLetterError as dead:
            if dead.reason is Reason.RAISED:
                store.entities[known] = FrozenEntity(key, freeze({}))
            raise


class RoutesSingle(Interpreter):
    """Gives a partition with one entity an entity for each type of message."""

    def _route(self, place: Place, operation: Stateful, message: Any, lineage: Lineage) -> Any:
        if operation.route is None and self.sequence % 2 == 0:
            self._stores[operation.partition]._listed = None
            return ("another",)
        return super()._route(place, operation, message, lineage)


class TrueFindsOne(Interpreter):
    """Looks a key up before it checks what the key is."""

    def _route(self, place: Place, operation: Stateful, message: Any, lineage: Lineage) -> Any:
        key = super()._route(place, operation, message, lineage)
        if type(key) is bool and int(key) in self._stores[operation.partition].entities:
            return int(key)
        return key


class UnsharesPartitions(Interpreter):
    """Gives each pipeline its own entities of a partition that they share."""

    def __init__(self, application: Any, **options: Any) -> None:
        super().__init__(application, **options)
        self._own: dict[str, dict[str, Store[FrozenEntity]]] = {}

    def _compute_with_state(
        self, place: Place, operation: Stateful, message: Any, lineage: Lineage
    ) -> None:
        shared = self._stores
        if place.pipeline not in self._own:
            copies: dict[str, Store[FrozenEntity]] = {
                name: Store(store.partition) for name, store in shared.items()
            }
            self._own[place.pipeline] = copies if self._own else shared
        self._stores = self._own[place.pipeline]
        try:
            super()._compute_with_state(place, operation, message, lineage)
        finally:
            self._stores = shared


class SharesPartitions(Interpreter):
    """Keeps the entities of all state partitions in one place."""

    def __init__(self, application: Any, **options: Any) -> None:
        super().__init__(application, **options)
        together: dict[Hashable, FrozenEntity] = {}
        for store in self._stores.values():
            store.entities = together


class SharesPartitionsOfLikeNames(Interpreter):
    """Keeps the entities of state partitions together whose names make the same identifier."""

    def __init__(self, application: Any, **options: Any) -> None:
        super().__init__(application, **options)
        together: dict[str, dict[Hashable, FrozenEntity]] = {}
        for name, store in self._stores.items():
            store.entities = together.setdefault(re.sub(r"\W+", "_", name), {})


class _Live:
    """A visit watched from outside: what state the call was given, and whether it returned."""

    def __init__(self, entity: FrozenEntity, place: Place) -> None:
        self.entity = FrozenEntity(entity.key, entity.state, entity.like)
        self.state: Any = None
        self.called = self.returned = False
        call = place.call

        def watched(message: Any, state: Any) -> Any:
            self.state, self.called = state, True
            result = call(message, state)
            self.returned = True
            return result

        self.place = replace(place, call=watched)


def frozen_again(value: Any) -> Any:
    """Return a frozen value that can be thawed once more."""
    return freeze(thaw(value)) if isinstance(value, Frozen) else value
