"""The engine's part of a checkpoint, for `wallaroo checkpoint`."""

from __future__ import annotations

import contextlib
import pickle
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from wallaroo.keys import Key, partition_number
from wallaroo.trace import Entity, sorted_entities
from wallaroo.transport.checkpoint import INPUT, CheckpointDirectory
from wallaroo.transport.identity import IDENTITY, CheckpointError, damaged, read_identity
from wallaroo.transport.private import make_private, sync_directory
from wallaroo.transport.stored import Overview
from wallaroo_reference.checkpoints.blobs import divided
from wallaroo_reference.checkpoints.head import Head
from wallaroo_reference.checkpoints.recovery import ENGINE
from wallaroo_reference.checkpoints.shadows import state_of, structure_of
from wallaroo_reference.checkpoints.store import Store, merged
from wallaroo_reference.kept import PROTOCOL, VISITED, key_of_name


class ReferenceCheckpoint:
    """A checkpoint's state, read only; see `wallaroo.transport.stored.StoredCheckpoint`.

    Args:
        directory: the checkpoint's directory.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def overview(self) -> Overview:
        """See `StoredCheckpoint.overview`."""
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

    def entities(self) -> Iterator[Entity]:
        """See `StoredCheckpoint.entities`."""
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

    def verify(self) -> str:
        """See `StoredCheckpoint.verify`."""
        with self._open() as store:
            head, found = _read(store)
            store.check()
        for one, cells in zip(head.cells if head else (), found, strict=True):
            if len(cells) != one.count:
                raise damaged(
                    store.path, f"it holds {len(cells)} cells of {one.name!r}, not {one.count}"
                )
        return ""

    def migrate(self, target: Path, change: Callable[[str, Key, Any], Any]) -> int:
        """See `StoredCheckpoint.migrate`."""
        partial = target.with_name(target.name + ".new")
        if target.exists():
            raise CheckpointError(f"{target} exists already: move it elsewhere")
        old = CheckpointDirectory(self._directory, ENGINE)  # nobody may use it meanwhile
        try:
            self.verify()
            with self._open() as store:
                head, found = _read(store)
            shutil.rmtree(partial, ignore_errors=True)
            make_private(partial)
            shutil.copytree(old.input_log, partial / INPUT)
            shutil.copy(self._directory / IDENTITY, partial / IDENTITY)
            count = _migrate(partial / ENGINE, head, found, change)
            partial.rename(target)
            sync_directory(target.parent)
        except OSError as error:
            raise CheckpointError(f"{target} cannot be written: {error}") from error
        finally:
            old.close()
        return count

    @contextlib.contextmanager
    def _open(self) -> Iterator[Store]:
        store = Store(self._directory / ENGINE, read_only=True)
        try:
            yield store
        except sqlite3.Error as error:
            raise CheckpointError(f"{store.path} cannot be read: {error}") from error
        finally:
            store.close()


def _read(store: Store) -> tuple[Head | None, list[dict[bytes, bytes]]]:
    """Return the head and the cells, by their place in it."""
    head = store.head()
    if head is None:
        return None, []
    try:
        return head, merged(store.cells(head), len(head.cells))
    except IndexError:
        raise damaged(store.path, "a blob belongs to no cells") from None


def _migrate(
    directory: Path,
    head: Head | None,
    found: list[dict[bytes, bytes]],
    change: Callable[[str, Key, Any], Any],
) -> int:
    """Write a file with changed states; return how many there are."""
    store = Store.create(directory)
    try:
        if head is None:
            return 0
        count = 0
        for one, cells in zip(head.cells, found, strict=True):
            if one.kind == "partition":
                for name, value in cells.items():
                    state = _changed(one.name, name, value[VISITED.size :], change)
                    cells[name] = value[: VISITED.size] + state
                    count += 1
        blobs = [
            (place, blob) for place, cells in enumerate(found) for blob in divided([*cells.items()])
        ]
        store.write(replace(head, first_blob=0, next_blob=len(blobs)), blobs)
        return count
    finally:
        store.close()


def _changed(
    partition: str, name: bytes, data: bytes, change: Callable[[str, Key, Any], Any]
) -> bytes:
    key = key_of_name(name)
    try:
        return pickle.dumps(change(partition, key, state_of(data)), PROTOCOL)
    except Exception as error:
        raise CheckpointError(
            f"state partition {partition!r}, key {key!r:.80} cannot be migrated: "
            f"{type(error).__name__}: {error}"
        ) from error
