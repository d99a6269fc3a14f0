"""Temporary directories that are removed with their owners, even after kill -9.

Each contains a marker file, which the owner's processes keep locked. If the lock is free, all of
them have ended without removing the directory (kill -9); the next run removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

from wallaroo.transport.identity import IDENTITY

_KINDS = ("run", "spark")
_MARK = "wallaroo-removes-this-directory"

_SOCKETS_PATH = 100  # bytes of it at most, on every system
_INSIDE = "wallaroo-spark-12345678/feed12345678"  # a socket of ours

SHORT = "/tmp"  # noqa: S108 - each directory or socket in it gets a name that nobody else has
"""A folder in which sockets can be made, whatever the usual one is."""


class TemporaryDirectory:
    """A temporary directory, until it is closed.

    Args:
        kind: its purpose, a part of its name.

    Attributes:
        path: the directory.
        lock: a descriptor that child processes may inherit; the directory is in use until they
            have ended too.
    """

    def __init__(self, kind: str) -> None:
        assert kind in _KINDS
        self.path = Path(tempfile.mkdtemp(prefix=f"wallaroo-{kind}-", dir=_place()))
        # It gets its name once it is locked, so no other process ever sees it unlocked.
        partial = self.path / f"{_MARK}.new"
        self.lock = os.open(partial, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        partial.rename(self.path / _MARK)

    def close(self) -> None:
        """Remove it; a second call does nothing."""
        if self.lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self.lock)
            self.lock = -1


def temporary_parent(path: Path) -> Path | None:
    """Return the temporary directory that `path` is or is in; `None` if there is none."""
    path = path.resolve()
    return next((folder for folder in (path, *path.parents) if (folder / _MARK).exists()), None)


def remove_abandoned() -> None:
    """Remove the directories of this user's runs that were killed."""
    for kind in _KINDS:
        for path in Path(_place()).glob(f"wallaroo-{kind}-*"):
            with contextlib.suppress(OSError):  # another user's, in use, or just being removed
                _remove_if_free(path)


def has_room_for(folder: str | Path, socket: str) -> bool:
    """Return whether a folder's path is so short that a socket of this name can be made in it."""
    return len(os.fsencode(folder)) + len(f"/{socket}") <= _SOCKETS_PATH


def _place() -> str:
    """Return where the directories are made; in a container of YARN not where others are."""
    usual = tempfile.gettempdir()
    return usual if has_room_for(usual, _INSIDE) else SHORT


def _remove_if_free(path: Path) -> None:
    # A directory that contains a checkpoint is never removed, whatever its name.
    if path.stat().st_uid != os.getuid() or (path / IDENTITY).exists():
        return
    lock = os.open(path / _MARK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)
