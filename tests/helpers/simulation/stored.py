"""The state that a checkpoint of the reference engine holds, looked at between two lives."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from wallaroo_reference.checkpoints.on_disk import ENGINE
from wallaroo_reference.checkpoints.store import FILE
from wallaroo_reference.checkpoints.stored import ReferenceCheckpoint

from simulation.checkpoints import DIRECTORY
from simulation.disk import Disk
from simulation.world import Broken
from wallaroo.keys import encode_key
from wallaroo.trace import OpenWindow, Trace
from wallaroo.transport import stored
from wallaroo.transport.identity import IDENTITY, CheckpointError, read_identity
from wallaroo.transport.input_log import InputLogError
from wallaroo.transport.resumption import Stream
from wallaroo.transport.stored import StoredWindow, stored_entities, stored_windows

_NEW = Path("/sim/new")
_ROOM = (0, 300, 9_000, None, None, None)
"""Bytes of the disk that are left for a checkpoint that is written anew; `None`: enough."""


def position() -> int:
    """Return where the stored state stands; 0: there is none."""
    return ReferenceCheckpoint(DIRECTORY).position() if _is_there() else 0


def check(wanted: Trace, partitions: int | None) -> None:
    """Check that the stored state is what a bounded run has in the end (recover-1).

    Raises:
        Broken: it is not.
    """
    checkpoint = ReferenceCheckpoint(DIRECTORY)
    checkpoint.verify()
    state, made = checkpoint.state(), wanted.outputs
    found = {
        "entities": [*stored_entities(state, partitions or 1)],
        "windows": {*map(_place_of, stored_windows(state))},
        "outputs": dict(state.outputs),
        "streams": dict(state.streams),
    }
    expected = {
        "entities": [*wanted.entities],
        "windows": {*map(_place_of, wanted.windows)},
        "outputs": {sink: len(made[sink]) for sink in state.outputs},
        "streams": {
            sink: Stream(one.first, b"".join(made[sink])[one.first :])
            for sink, one in state.streams.items()
        },
    }
    for name, there in found.items():
        if there != expected[name]:
            raise Broken(
                f"recover-1: {name} stored at {state.position} are {there}, not {expected[name]}"
            )


def rewrite(disk: Disk, chance: Random) -> None:
    """Write the checkpoint anew, and put it in the old one's place, if there is room for it."""
    if not _is_there():
        return
    with contextlib.ExitStack() as stack:
        for name in ("copystat", "copymode"):
            stack.enter_context(mock.patch.object(shutil, name))
        # Not by the engine's name: to look for installed engines takes longer than all the rest.
        stack.enter_context(mock.patch.object(stored, "open_stored", _of_the_engine))
        room = chance.choice(_ROOM)
        disk.room = None if room is None else disk.used() + room
        identity = read_identity(DIRECTORY / IDENTITY)
        try:
            stored.rewrite(DIRECTORY, identity, _NEW, identity)
        except InputLogError:
            pass  # a later write has outlived an earlier one: the next start says so
        except CheckpointError:
            if room is None:
                raise
        else:
            DIRECTORY.rename(f"/sim/old.{chance.random()}")
            _NEW.rename(DIRECTORY)
            os.sync()
        disk.room = None


def _of_the_engine(directory: Path, _engine: str) -> ReferenceCheckpoint:
    return ReferenceCheckpoint(directory)


def _is_there() -> bool:
    return (DIRECTORY / ENGINE / FILE).exists()


def _place_of(window: StoredWindow | OpenWindow) -> tuple[Any, ...]:
    return window.step, encode_key(window.key), window.start, window.end
