"""Directories and files for their owner alone, whatever the umask: frames and state are in them."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

_DIRECTORY = 0o700
_FILE = 0o600
_OTHERS_WRITE = 0o022


def make_private(directory: Path) -> None:
    """Make a directory for its owner alone, with its parents, which follow the umask.

    One that is there stays as it is.

    Raises:
        OSError: it cannot be made.
    """
    directory.mkdir(mode=_DIRECTORY, parents=True, exist_ok=True)


def opener(path: str, flags: int) -> int:
    """Open a file, made for its owner alone: the `opener` that `open` takes."""
    return os.open(path, flags, _FILE)


def open_to_others(directory: Path) -> str | None:
    """Say what lets others write into a directory, with what to do; `None`: nothing does.

    Raises:
        OSError: it is not there, or cannot be looked at.
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
