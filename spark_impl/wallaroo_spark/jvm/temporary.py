"""Temporary directories that end with their owners, and what is left of those that were killed.

Each holds a file that nothing else has, a mark, which its owner's processes keep locked. A
directory whose mark is free has outlived them all (kill -9); whoever starts next removes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_KINDS = ("run", "spark")
IDENTITY = "identity.json"
"""What stands at the top of a checkpoint, whatever its directory is called."""

_MARK = "wallaroo-removes-this-directory"


class TemporaryDirectory:
    """A directory of ours, until it is closed.

    Args:
        kind: what it is for; stands in its name.

    Attributes:
        path: the directory.
        lock: a descriptor that child processes may inherit: it is abandoned only once they have
            ended too.
    """

    def __init__(self, kind: str) -> None:
        assert kind in _KINDS
        self.path = Path(tempfile.mkdtemp(prefix=f"wallaroo-{kind}-"))
        # It gets its name when it is locked: nobody ever meets it free.
        partial = self.path / f"{_MARK}.new"
        self.lock = os.open(partial, os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        partial.rename(self.path / _MARK)

    def close(self) -> None:
        """Remove it; nothing happens the second time."""
        if self.lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self.lock)
            self.lock = -1


def temporary_parent(path: Path) -> Path | None:
    """Return the temporary directory that `path` is, or is in, if there is one."""
    path = path.resolve()
    return next((one for one in (path, *path.parents) if (one / _MARK).exists()), None)


def remove_abandoned() -> None:
    """Remove the directories of this user's runs that were killed."""
    for kind in _KINDS:
        for path in Path(tempfile.gettempdir()).glob(f"wallaroo-{kind}-*"):
            with contextlib.suppress(OSError):  # not ours, in use, or just being removed
                _remove_if_free(path)


def _remove_if_free(path: Path) -> None:
    # Whatever a directory is called: a checkpoint at its top is somebody's.
    if path.stat().st_uid != os.getuid() or (path / IDENTITY).exists():
        return
    lock = os.open(path / _MARK, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)
