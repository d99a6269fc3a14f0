"""What makes names survive a power failure: a file's name is kept by its folder, not by the file."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def sync_directory(directory: Path) -> None:
    """Make the names in a directory survive a power failure: what was created, renamed, removed.

    Raises:
        OSError: the system could not.
    """
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot sync directories
            raise
    finally:
        os.close(fd)


def sync_way_to(directory: Path) -> None:
    """Make the way to a directory survive a power failure: it and its parents may be new.

    A process that was killed may have made them, so what is there is no sign that it was synced.
    Parents that may not be read are left out.

    Raises:
        OSError: the system could not.
    """
    for parent in directory.absolute().parents:
        try:
            sync_directory(parent)
        except PermissionError:
            return  # it is not ours, so neither it nor what lies above it was made for this
