"""A new checkpoint beside an old one: all but the states is copied, of whichever engine."""

from __future__ import annotations

import contextlib
import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from wallaroo.keys import Key
from wallaroo.transport.checkpoint import LOCK, CheckpointDirectory
from wallaroo.transport.identity import CheckpointError
from wallaroo.transport.private import make_private, sync_directory
from wallaroo.transport.shadows import state_of

Change: TypeAlias = Callable[[str, Key, Any], Any]
"""Takes a state partition's name, a key and a state; returns the new state.

Where the application has its own `serialize`, states are bytes: what that has made."""

_PROTOCOL = 5  # of pickle, as both engines store states


@contextlib.contextmanager
def copied_beside(directory: Path, target: Path, engine: str) -> Iterator[Path]:
    """Copy a checkpoint without the engine's own part, which the block writes.

    No run can use the checkpoint meanwhile. The copy gets its name only if the block succeeds.

    Args:
        directory: the checkpoint.
        target: a directory that does not exist.
        engine: the name of the engine's part.

    Yields:
        The copy, under another name.

    Raises:
        CheckpointError: the target exists or cannot be written, or the checkpoint is in use.
    """
    partial = target.with_name(target.name + ".new")
    if target.exists():
        raise CheckpointError(f"{target} exists already: move it elsewhere")
    old = CheckpointDirectory(directory, engine)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        make_private(partial)
        for one in directory.iterdir():
            if one.is_dir() and one != old.own_part:
                shutil.copytree(one, partial / one.name)
            elif one.is_file() and one.name != LOCK:
                shutil.copy(one, partial / one.name)
        yield partial
        os.sync()  # every file of the copy is on the disk before its name is
        partial.rename(target)
        sync_directory(target.parent)
    except OSError as error:
        raise CheckpointError(f"{target} cannot be written: {error}") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # it is still there if something failed
        old.close()


def changed(change: Change, partition: str, key: Key, data: bytes, *, coded: bool) -> bytes:
    """Return what `change` makes of a stored state, as it is stored.

    Args:
        change: the user's function.
        partition: the state partition's name.
        key: the state's key.
        data: the state.
        coded: the application's `serialize` has made it: the function takes and returns its bytes.

    Raises:
        CheckpointError: it cannot be loaded or pickled, or the function raised.
    """
    try:
        new = change(partition, key, data if coded else state_of(data))
        if not coded:
            return pickle.dumps(new, _PROTOCOL)
        if not isinstance(new, bytes):
            raise TypeError(
                "the application has its own serialize, so the new state must be bytes, not "
                f"{new!r:.80}"
            )
    except Exception as error:
        raise CheckpointError(
            f"state partition {partition!r}, key {key!r:.80} cannot be migrated: "
            f"{type(error).__name__}: {error}"
        ) from error
    return new
