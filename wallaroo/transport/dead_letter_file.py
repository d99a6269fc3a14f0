"""The dead-letter file, and the rotated files beside it (dead-1).

Messages from outside decide how much is written, so the files are bounded. Where the file is full,
it gets the name ``FILE.000001``, then ``FILE.000002``, and so on, and a new one begins; the oldest
are deleted. A crash between any two of these calls leaves files that are read in the same order,
and what a restart writes again (recover-2) stands at their end.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import select
import stat
import threading
from collections.abc import Sequence
from pathlib import Path

from wallaroo.text import escaped
from wallaroo.transport.private import opener, sync_way_to

_FILES = 16  # files that share these bytes
_PATIENCE = 2.0  # seconds to wait for a FIFO's reader; the engine is blocked meanwhile

_log = logging.getLogger("wallaroo.dead_letters")


class DeadLetterFile:
    """Lines that are added to a file, which is rotated. `close` it.

    Only regular files are rotated. If the user moves the file away, the next line begins a new one.

    Args:
        path: the file; if it is new, only its owner can read it.
        most: bytes that it and the rotated files may have together.

    Attributes:
        written: number of lines written.
        deleted: bytes of the rotated files that were deleted to stay below `most`.

    Raises:
        OSError: the file cannot be opened.
    """

    def __init__(self, path: Path, most: int) -> None:
        self.written = 0
        self.deleted = 0
        own_name = not path.absolute().is_relative_to("/dev")  # /dev/stderr may be a file
        self._path = _target(path) if own_name else path
        self._most = most
        self._fd = _opened(self._path)
        self._regular = own_name and stat.S_ISREG(os.fstat(self._fd).st_mode)
        self._named = False  # the names are durable
        self._in_doubt = False  # a sync has failed
        self._lock = threading.Lock()  # `sync` runs in another thread than the rest

    def write(self, lines: Sequence[bytes]) -> None:
        """Add lines; `written` says how many of them are whole in the file if this fails.

        Raises:
            OSError: they cannot be written.
        """
        if not self._regular:
            self._add(lines)
            return
        self._reopen_if_moved()
        full = max(1, self._most // _FILES)
        size = os.fstat(self._fd).st_size
        first = 0
        for number, line in enumerate(lines):
            if size + len(line) > full:
                self._add(lines[first:number])
                first = number
                if size:
                    self._rotate()
                    size = 0
                self._delete_oldest(max(full, len(line)))
            size += len(line)
        self._add(lines[first:])

    def sync(self) -> None:
        """Make durable what was written, and the names; in any thread.

        Raises:
            OSError: the system could not. That is final, because nobody knows what is on the disk
                then.
        """
        with self._lock:
            if self._fd < 0 or not self._regular:
                return
            if self._in_doubt:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            try:
                os.fsync(self._fd)
                if not self._named:
                    sync_way_to(self._path)
                    self._named = True
            except OSError:
                self._in_doubt = True
                raise

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1

    def _reopen_if_moved(self) -> None:
        try:
            there = self._path.stat()
        except FileNotFoundError:
            self._begin_new()
            return
        if not os.path.samestat(there, os.fstat(self._fd)):
            self._begin_new()

    def _rotate(self) -> None:
        last = max([number for number, _ in _rotated(self._path)], default=0)
        with self._lock:  # a sync that is under way does not know of the new name
            self._path.rename(f"{self._path}.{last + 1:06}")
            self._named = False
        # Durable before a new file takes the name: it must not take this one's place on the disk.
        self._begin_new()

    def _begin_new(self) -> None:
        """Take the file of that name, which is another than the open one, or make it."""
        self.sync()  # once it is closed, nobody could
        fd = _opened(self._path)
        with self._lock:
            os.close(self._fd)
            self._fd = fd
            self._named = False

    def _delete_oldest(self, room: int) -> None:
        """Delete rotated files until there is room for so many bytes in the current one."""
        rotated = []
        for _, path in _rotated(self._path):
            with contextlib.suppress(FileNotFoundError):  # the user has just moved it
                rotated.append((path, path.stat().st_size))
        total = sum([size for _, size in rotated])
        for path, size in rotated:
            if total + room <= self._most:
                return
            path.unlink(missing_ok=True)
            total -= size
            self.deleted += size
            _log.warning(
                "the oldest dead letters, %s bytes in %s, are deleted, because all take more than "
                "%s bytes (--dead-letter-bytes)",
                f"{size:,}",
                escaped(str(path)),
                f"{self._most:,}",
            )

    def _add(self, lines: Sequence[bytes]) -> None:
        """Write lines, without a look at the file's size."""
        size = os.fstat(self._fd).st_size
        view = memoryview(b"".join(lines))
        done = 0
        try:
            while view:
                count = _written(self._fd, view)
                done += count
                view = view[count:]
        except OSError:
            whole = 0
            while done and done >= len(lines[whole]):
                done -= len(lines[whole])
                whole += 1
            self.written += whole
            if done:
                # Half a line would break a reader of the file: remove it where that is possible.
                _truncate(self._fd, size + sum(map(len, lines[:whole])))
            raise
        self.written += len(lines)


def files_of(path: Path) -> list[Path]:
    """Return the files that hold the dead letters of a file: the rotated ones, then itself.

    Raises:
        OSError: their directory cannot be read.
    """
    path = _target(path)
    return [*[rotated for _, rotated in _rotated(path)], path]


def _target(path: Path) -> Path:
    """Return what a link leads to: that is what is rotated."""
    return Path(os.path.realpath(path))


def _rotated(path: Path) -> list[tuple[int, Path]]:
    """Return the rotated files with their numbers, the oldest first."""
    named = re.compile(re.escape(path.name) + r"\.([0-9]{6,})", re.ASCII)
    matches = [(named.fullmatch(one.name), one) for one in path.parent.iterdir()]
    return sorted([(int(match[1]), one) for match, one in matches if match])


def _written(fd: int, view: memoryview) -> int:
    """Write as many bytes as the file takes, and return how many; wait a while for a FIFO's reader.

    Raises:
        OSError: it cannot be written, or the FIFO's reader was too slow.
    """
    while True:
        try:
            return os.write(fd, view)
        except BlockingIOError:
            if not select.select([], [fd], [], _PATIENCE)[1]:
                raise OSError(
                    errno.EAGAIN, f"its reader has read nothing for {_PATIENCE:g} s"
                ) from None


def _opened(path: Path) -> int:
    if path.is_fifo():
        try:  # not O_RDWR: this process would count as a FIFO's reader, and never read
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            raise OSError(error.errno, "nobody reads it (a FIFO); start its reader first") from None
    fd = opener(str(path), os.O_RDWR | os.O_CREAT | os.O_APPEND)  # it holds users' payloads
    size = os.fstat(fd).st_size
    if size and os.pread(fd, 1, size - 1) not in (b"\n", b""):
        os.write(fd, b"\n")  # a crash left half a line; the next one must begin on its own
    return fd


def _truncate(fd: int, size: int) -> None:
    try:
        os.ftruncate(fd, size)
    except OSError:  # a pipe or a device cannot be truncated; its reader sees half a line
        return
