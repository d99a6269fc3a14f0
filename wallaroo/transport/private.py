"""Directories and files that only their owner can use: they hold users' frames and state."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from wallaroo.transport.durable import sync_way_to

_DIRECTORY = 0o700
_FILE = 0o600
_OTHERS_WRITE = 0o022


def make_private(directory: Path) -> None:
    """Make a directory that only its owner can use, and that survives a power failure.

    Parents are made with the umask. An existing directory is not changed.

    Raises:
        OSError: it cannot be made.
    """
    directory.mkdir(mode=_DIRECTORY, parents=True, exist_ok=True)
    sync_way_to(directory)


def opener(path: str, flags: int) -> int:
    """Open a file so that, if it is new, only its owner can use it; for ``open(opener=…)``."""
    return os.open(path, flags, _FILE)


def open_to_others(directory: Path) -> str | None:
    """Return why others can write into a directory, and what to do; `None` if they cannot.

    Raises:
        OSError: it does not exist, or its permissions cannot be read.
    """
    found = directory.stat()
    if found.st_uid != os.geteuid():
        return (
            f"{directory} belongs to user {found.st_uid}, not to the one who runs this "
            f"({os.geteuid()}). Take a directory of your own"
        )
    if found.st_mode & _OTHERS_WRITE:
        return (
            f"others can write into {directory}. Unless they may have, keep them out with: "
            f"chmod -R go-rwx {shlex.quote(str(directory))}"
        )
    return None
