"""Directories and files that only their owner can use: they hold users' frames and state.

A file's name is kept by its directory: it survives a power failure once that has been synced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from wallaroo.errors import WallarooError

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


@contextlib.contextmanager
def told_as(kind: type[WallarooError], what: str) -> Iterator[None]:
    """Raise errors of the system inside the block as `kind`: what could not be done, and why.

    Raises:
        WallarooError: there was one.
    """
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror}") from error


def read_regular(path: Path) -> bytes:
    """Return the bytes of a file.

    Raises:
        OSError: it cannot be read, or is a folder, a FIFO or a device, from which to read could
            wait for ever.
    """
    refuse_irregular(path)
    return path.read_bytes()


def refuse_irregular(path: Path) -> None:
    """Refuse what is not a regular file.

    Raises:
        OSError: it is a folder, a FIFO or a device, or is not there.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def write_whole(path: Path, data: bytes) -> None:
    """Write a file for its owner alone, in place of any of that name.

    After a power failure the file before it is there, or the new one whole: which of them is
    certain only after `sync_directory`.

    Raises:
        OSError: it cannot be written; the file before it is unchanged.
    """
    partial = path.with_suffix(".new")
    try:
        with open(partial, "wb", opener=opener) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.rename(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise


def write_durably(path: Path, data: bytes) -> None:
    """Write a file for its owner alone, in place of any of that name; it survives a power failure.

    Raises:
        OSError: it cannot be written, or its name is not certain to survive.
    """
    write_whole(path, data)
    sync_directory(path.parent)


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


def sync_way_to(path: Path) -> None:
    """Make the way to a file or directory survive a power failure: it and its parents may be new.

    A process that was killed may have made them, so it is not certain that they were synced.
    Parents that may not be read are left out.

    Raises:
        OSError: the system could not.
    """
    for parent in path.absolute().parents:
        try:
            sync_directory(parent)
        except PermissionError:
            return  # it is not ours, so neither it nor its parents were made for this run


def open_to_others(directory: Path) -> str | None:
    """Return why others can write into a directory, and what to do; `None` if they cannot.

    Raises:
        OSError: it does not exist, or its permissions cannot be read.
    """
    status = directory.stat()
    if status.st_uid != os.geteuid():
        return (
            f"{directory} belongs to user {status.st_uid}, not to the user who runs this "
            f"({os.geteuid()}). Take a directory of your own"
        )
    if status.st_mode & _OTHERS_WRITE:
        return (
            f"others can write into {directory}. If nobody has changed anything, keep them out "
            f"with: chmod -R go-rwx {shlex.quote(str(directory))}"
        )
    return None
