"""The files of an input log: their lock, their creation, and the repair of a torn end.

Only their owner can read or write them, whatever the umask.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shlex
from pathlib import Path

from wallaroo.errors import WallarooError
from wallaroo.transport.blocks import CorruptSegmentError, file_header
from wallaroo.transport.private import (
    make_private,
    open_to_others,
    opener,
    sync_directory,
    write_whole,
)
from wallaroo.transport.segment import Segment
from wallaroo.transport.torn_end import block_behind

_SUFFIX = ".log"
_RESERVE = "reserve"
_RESERVE_BYTES = 8192
_AT_ONCE = 1 << 20  # bytes

_log = logging.getLogger("wallaroo.input_log")


class InputLogError(WallarooError):
    """The input log cannot be opened, written, or read; says which file and why."""


def locked(directory: Path) -> int:
    """Lock the log in `directory`, which is created if missing; return the lock's descriptor.

    Raises:
        InputLogError: Another process has locked it, or others than its owner may write to it.
        OSError: The directory cannot be made or read.
    """
    make_private(directory)
    if problem := open_to_others(directory):
        raise InputLogError(f"the input log cannot be trusted: {problem}")
    fd = opener(str(directory / "lock"), os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(fd)
        raise InputLogError(f"the input log {directory} is in use by another process") from None
    except OSError:
        os.close(fd)
        raise
    return fd


def create(directory: Path, first: int, at: int) -> Segment:
    """Make an empty file whose contents survive a power failure; its name does not yet.

    Args:
        directory: the log's.
        first: sequence of the file's first record.
        at: arrival time of the last record before it.
    """
    path = directory / f"{first:020d}{_SUFFIX}"
    write_whole(path, file_header(first, at))
    return Segment(path, first, at)


def keep_reserve(directory: Path) -> None:
    """Reserve disk space for one more file, if there is room: see `give_up_reserve`."""
    path = directory / _RESERVE
    try:
        if not path.exists() or path.stat().st_size < _RESERVE_BYTES:
            with open(path, "wb", opener=opener) as file:
                file.write(os.urandom(_RESERVE_BYTES))  # random: it cannot be stored compressed
                file.flush()
                os.fsync(file.fileno())
    except OSError:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def give_up_reserve(directory: Path) -> None:
    """Free the reserve on a full disk: a new file must begin before the last can be deleted."""
    with contextlib.suppress(OSError):
        (directory / _RESERVE).unlink(missing_ok=True)


def recover(directory: Path) -> list[Segment]:
    """Return the segments on disk, at least one, after dropping a torn end.

    Raises:
        InputLogError: something is damaged or missing.
    """
    for partial in directory.glob("*.new"):
        partial.unlink()
    segments, torn = read(directory)
    if torn is not None:
        _drop_torn_end(segments[-1], torn)
    if segments:
        _write_again(segments[-1].path)
    else:
        segments.append(create(directory, 0, 0))
    sync_directory(directory)  # a process that was killed may not have done it
    return segments


def read(directory: Path) -> tuple[list[Segment], CorruptSegmentError | None]:
    """Return the segments on disk, and what is wrong at the end of the last, if it is torn there.

    Nothing is changed.

    Raises:
        InputLogError: something else is damaged, or missing.
    """
    paths = sorted(directory.glob(f"*{_SUFFIX}"))
    segments: list[Segment] = []
    torn = None
    for path in paths:
        if not path.stem.isdecimal():
            raise InputLogError(f"{path} is not a file of an input log; move it elsewhere")
        segment = Segment(path, int(path.stem))
        if segments and segment.first != segments[-1].next:
            raise InputLogError(
                f"the input log {directory} is damaged: records {segments[-1].next} to "
                f"{segment.first} are missing before {path.name}"
            )
        try:
            segment.scan()
        except CorruptSegmentError as error:
            if path is not paths[-1] or not error.offset:
                raise InputLogError(
                    f"the input log's file {path} is damaged: {error}. Restore it from a copy"
                ) from error
            torn = _torn(segment, error)
        if segments and segment.writable and segment.before != segments[-1].latest_at:
            raise InputLogError(
                f"the input log {directory} is damaged: {path.name} begins at the time "
                f"{segment.before}, and the file before it ends at {segments[-1].latest_at}"
            )
        segments.append(segment)
    return segments, torn


def _write_again(path: Path) -> None:
    """Make what was read from a file durable, by writing the same bytes once more.

    They may be in the page cache only. A sync alone is not enough: if a sync has failed before, the
    system believes that those pages are written, and the next sync succeeds without writing them.
    """
    with path.open("r+b") as file:
        while data := file.read(_AT_ONCE):
            file.seek(-len(data), os.SEEK_CUR)
            file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _torn(last: Segment, error: CorruptSegmentError) -> CorruptSegmentError | None:
    """Return what is wrong at the end of a log; `None`: it was being written just then.

    Raises:
        InputLogError: the block is damaged, not half written: a whole block follows it.
    """
    path = last.path
    found = block_behind(path, error.offset, last.next, last.form)
    if found is None:
        return error
    try:  # a run may be appending to it: what was half written a moment ago may be whole
        last.scan()
    except CorruptSegmentError as now:
        if now.offset != error.offset:
            return now
    else:
        return None
    raise InputLogError(
        f"the input log's file {path} is damaged: {error}, and whole records lie behind it, "
        f"from byte {found.offset} (record {found.first}) on. Restore the file from a copy; or "
        f"give up every record from {last.next} on with: "
        f"truncate -s {error.offset} {shlex.quote(str(path))}"
    ) from error


def _drop_torn_end(last: Segment, error: CorruptSegmentError) -> None:
    """Truncate a half-written block at the end; `error` says where it begins."""
    path = last.path
    dropped = path.stat().st_size - error.offset
    os.truncate(path, error.offset)
    _log.warning(
        "the input log %s ends in an append that was cut off; its %d bytes are dropped",
        path.parent,
        dropped,
    )
