"""The engine's part of a checkpoint, for `wallaroo checkpoint`."""

from __future__ import annotations

import contextlib
import pickle
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from wallaroo.keys import Key, partition_number
from wallaroo.overriding import override
from wallaroo.trace import Entity, sorted_entities
from wallaroo.transport.checkpoint import IDENTITY, CheckpointError, damaged, read_identity
from wallaroo.transport.old_states import Place
from wallaroo.transport.stamps import Stamp
from wallaroo.transport.stored import (
    Migration,
    Overview,
    StoredCheckpoint,
    copied_beside,
    structure_of,
)
from wallaroo.transport.stored_state import (
    StoredEntity,
    StoredState,
    StoredTime,
    StoredWindows,
    parts_in,
    with_parts,
)
from wallaroo_reference.cells import (
    NOT_NOTED,
    PANE,
    PROTOCOL,
    VISITED,
    SourceMoment,
    key_of_name,
)
from wallaroo_reference.checkpoints.blobs import divided
from wallaroo_reference.checkpoints.head import Head
from wallaroo_reference.checkpoints.recovery import ENGINE
from wallaroo_reference.checkpoints.store import Store, latest


class ReferenceCheckpoint(StoredCheckpoint):
    """A checkpoint's state, read only.

    Args:
        directory: the checkpoint's directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @override
    def stamps(self) -> Iterator[tuple[Path, Stamp]]:
        with self._open() as store:
            yield store.path, store.stamp()

    @override
    def position(self) -> int:
        with self._open() as store:
            head = store.head()
        return 0 if head is None else head.moment.sequence

    @override
    def overview(self) -> Overview:
        with self._open() as store:
            head = store.head()
            sizes = {"state": store.size()}
        if head is None:
            return Overview(0, None, sizes, {})
        counts = {"partition": Counter[str](), "windows": Counter[str]()}
        for one in head.cells:
            counts["partition" if one.kind == "partition" else "windows"][one.name] += one.count
        return Overview(
            position=head.moment.sequence,
            at=head.at,
            sizes=sizes,
            entities=counts["partition"],
            windows=counts["windows"],
            outputs={f"{name}/{index}": count for (name, index), count in head.sinks.items()},
        )

    @override
    def entities(self) -> Iterator[Entity]:
        number = read_identity(self._directory / IDENTITY).partitions
        with self._open() as store:
            head, found = _read(store)
        entities = []
        for one, cells in zip(head.cells if head else (), found, strict=True):
            if one.kind == "partition":
                for name, value in cells.items():
                    key = key_of_name(name)
                    shown = structure_of(value[VISITED.size :])
                    entities.append(Entity(one.name, key, partition_number(key, number), shown))
        yield from sorted_entities(entities)

    @override
    def state(self) -> StoredState:
        with self._open() as store:
            head, found = _read(store)
        if head is None:
            return StoredState()
        entities: list[StoredEntity] = []
        windows: list[StoredWindows] = []
        step = -1
        for one, cells in zip(head.cells, found, strict=True):
            if one.kind == "partition":
                for name, value in cells.items():
                    (at,) = VISITED.unpack_from(value)
                    visited = None if at == NOT_NOTED else at
                    entities.append(StoredEntity(one.name, name, visited, value[VISITED.size :]))
                continue
            step += 1
            panes: dict[bytes, dict[int, Any]] = {}
            for name, value in cells.items():
                form = pickle.loads(value)  # noqa: S301 - from the owner's directory
                if one.kind == "panes":
                    (number,) = PANE.unpack_from(name)
                    panes.setdefault(name[PANE.size :], {})[number] = form
                else:
                    windows.append(StoredWindows(step, name, form))
            windows += [StoredWindows(step, key, form) for key, form in panes.items()]
        moment = head.moment
        return StoredState(
            moment.sequence,
            moment.now,
            moment.first,
            {name: _time(one) for name, one in moment.sources.items()},
            [one.name for one in head.cells if not one.shape],
            [Place(one.name, one.shape) for one in head.cells if one.shape],
            moment.watermarks,
            entities,
            windows,
        )

    @override
    def verify(self) -> str:
        with self._open() as store:
            head, found = _read(store)
            store.check()
        for one, cells in zip(head.cells if head else (), found, strict=True):
            if len(cells) != one.count:
                raise damaged(
                    store.path, f"it holds {len(cells)} cells of {one.name!r}, not {one.count}"
                )
        return ""

    @override
    def migrate(self, target: Path, migration: Migration) -> int:
        with copied_beside(self._directory, target, ENGINE) as copy:
            self.verify()
            with self._open() as store:
                head, found = _read(store)
                new = Store.create(copy / ENGINE, store.stamp())
            coded = read_identity(self._directory / IDENTITY).coded
            with contextlib.closing(new):
                return _migrate(new, head, found, partial(migration.new_state, coded=coded))

    @contextlib.contextmanager
    def _open(self) -> Iterator[Store]:
        store = Store(self._directory / ENGINE, read_only=True)
        try:
            yield store
        except sqlite3.Error as error:
            raise CheckpointError(f"{store.path} cannot be read: {error}") from error
        finally:
            store.close()


def _time(moment: SourceMoment) -> StoredTime:
    partitions = {number: _time(one) for number, one in moment.partitions.items()}
    return StoredTime(moment.greatest, moment.last_frame, moment.ended, partitions)


def _read(store: Store) -> tuple[Head | None, list[dict[bytes, bytes]]]:
    """Return the head and the cells, by their place in it."""
    head = store.head()
    if head is None:
        return None, []
    found: list[dict[bytes, bytes]] = [{} for _ in head.cells]
    try:
        for place, cells in latest(store.cells(head), len(head.cells)):
            found[place].update(cells)
    except IndexError:
        raise damaged(store.path, "a blob belongs to no cells") from None
    return head, found


def _migrate(
    store: Store,
    head: Head | None,
    found: list[dict[bytes, bytes]],
    change: Callable[[Place, Key, bytes], bytes],
) -> int:
    """Write a file with changed states and accumulators; return how many there are."""
    if head is None:
        return 0
    count = 0
    for one, cells in zip(head.cells, found, strict=True):
        for name, value in cells.items():
            changed = partial(change, Place(one.name, one.shape), key_of_name(name, one.kind))
            if one.kind == "partition":
                cells[name] = value[: VISITED.size] + changed(value[VISITED.size :])
                count += 1
                continue
            form = pickle.loads(value)  # noqa: S301 - from the owner's directory
            new = changed(form) if one.kind == "panes" else with_parts(form, changed)
            cells[name] = pickle.dumps(new, PROTOCOL)
            count += 1 if one.kind == "panes" else parts_in(form)
    blobs = [
        (place, blob) for place, cells in enumerate(found) for blob in divided([*cells.items()])
    ]
    store.write(replace(head, first_blob=0, next_blob=len(blobs)), blobs)
    return count
