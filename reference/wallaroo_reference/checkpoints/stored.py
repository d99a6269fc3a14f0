"""The engine's part of a checkpoint, for `wallaroo checkpoint`."""

from __future__ import annotations

import contextlib
import pickle
import sqlite3
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from wallaroo.overriding import override
from wallaroo.topology import Application
from wallaroo.transport.identity import CheckpointError, Identity, damaged
from wallaroo.transport.old_states import Place
from wallaroo.transport.stamps import Stamp
from wallaroo.transport.stored import Overview, StoredCheckpoint
from wallaroo.transport.stored_state import StoredEntity, StoredState, StoredWindows, with_ends
from wallaroo.windows import Shape
from wallaroo_reference.cells import (
    NOT_NOTED,
    PANE,
    PROTOCOL,
    VISITED,
    Kind,
    Moment,
)
from wallaroo_reference.checkpoints.blobs import divided
from wallaroo_reference.checkpoints.head import CellsHead, Head
from wallaroo_reference.checkpoints.on_disk import ENGINE
from wallaroo_reference.checkpoints.store import StateFile, latest


class ReferenceCheckpoint(StoredCheckpoint):
    """A checkpoint's state, read only.

    Args:
        directory: the checkpoint's directory.
    """

    engine = ENGINE

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
            moment.sources,
            [one.name for one in head.cells if not one.shape],
            [Place(one.name, one.shape) for one in head.cells if one.shape],
            moment.watermarks,
            entities,
            windows,
            head.logged,
            head.sinks,
            head.topics,
            head.at,
            head.streams,
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
    def write(
        self, state: StoredState, identity: Identity, application: Application | None
    ) -> None:
        store = StateFile.create(self._directory / ENGINE, identity.stamp)
        with contextlib.closing(store):
            try:
                if state.position:
                    store.write(*_head_and_blobs(state))
            except sqlite3.Error as error:
                raise CheckpointError(f"{store.path} cannot be written: {error}") from error

    @contextlib.contextmanager
    def _open(self) -> Iterator[StateFile]:
        store = StateFile(self._directory / ENGINE, read_only=True)
        try:
            yield store
        except sqlite3.Error as error:
            raise CheckpointError(f"{store.path} cannot be read: {error}") from error
        finally:
            store.close()


def _read(store: StateFile) -> tuple[Head | None, list[dict[bytes, bytes]]]:
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


def _head_and_blobs(state: StoredState) -> tuple[Head, list[tuple[int, bytes]]]:
    """Return a whole state as it is stored."""
    cells = cells_in(state)
    blobs = [(place, blob) for place, some in enumerate(cells) for blob in divided(some)]
    logged = state.logged or {}
    head = Head(
        state.at,
        Moment(
            state.position,
            state.now,
            state.first,
            with_ends(state.sources, logged),
            state.watermarks,
        ),
        [replace(one, count=len(some)) for one, some in zip(heads_in(state), cells, strict=True)],
        state.outputs,
        logged,
        0,
        len(blobs),
        state.topics,
        state.streams,
    )
    return head, blobs


def heads_in(state: StoredState) -> list[CellsHead]:
    """Return what the cells of a whole state are: state partitions, then window steps."""
    return [
        *[CellsHead("partition", name, 0) for name in state.partitions],
        *[CellsHead(_kind_of(step.shape), step.name, 0, step.shape) for step in state.steps],
    ]


def cells_in(state: StoredState) -> list[list[tuple[bytes, bytes]]]:
    """Return the cells of a whole state, as lists in the order of `heads_in`."""
    cells: list[list[tuple[bytes, bytes]]] = [[] for _ in (*state.partitions, *state.steps)]
    numbers = {name: number for number, name in enumerate(state.partitions)}
    for entity in state.entities:
        visited = NOT_NOTED if entity.visited is None else entity.visited
        value = VISITED.pack(visited) + entity.state
        cells[numbers[entity.partition]].append((entity.key, value))
    for step, key, form in state.windows:
        parts = {b"": form}
        if _kind_of(state.steps[step].shape) == "panes":
            parts = {PANE.pack(number): part for number, part in form.items()}
        for name, part in parts.items():
            value = pickle.dumps(part, PROTOCOL)
            cells[len(state.partitions) + step].append((name + key, value))
    return cells


def _kind_of(shape: Shape) -> Kind:
    return "panes" if shape[0] == "range" else "windows"
