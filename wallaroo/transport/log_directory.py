"""The directory of an input log: its files, the repair of a torn end, their second names.

Only the owner can read or write the files, whatever the umask.

A log that is recorded is kept whole: each of its files has a second name, in another directory. The
two names are hard links, so the records are written and synced once. When the log drops the file,
the second name stays.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from wallaroo.errors import WallarooError
from wallaroo.transport.log_file import LogFile, block_after_bad_one
from wallaroo.transport.log_format import START, DamagedBlockError, FileHead, LoggedRun
from wallaroo.transport.private import opener, sync_directory, write_whole
from wallaroo.transport.stamps import UNSTAMPED, Stamp

_SUFFIX = ".log"
_RESERVE = "reserve"
_RESERVE_BYTES = 8192
_AT_ONCE = 1 << 20  # bytes

_log = logging.getLogger("wallaroo.input_log")


class InputLogError(WallarooError):
    """The input log cannot be opened, written, or read; says which file and why."""


class LogEnds(NamedTuple):
    """Where an input log begins and ends.

    Args:
        first: sequence of its first record.
        following: sequence behind its last one.
        last: its last file; `None`: it has none.
        stamp: the stamp of that file; those before it belong to it.
    """

    first: int = 0
    following: int = 0
    last: Path | None = None
    stamp: Stamp = UNSTAMPED

    def stamps(self) -> list[tuple[Path, Stamp]]:
        """Return the file that says whose the log is, and what it says."""
        return [] if self.last is None else [(self.last, self.stamp)]


Admit: TypeAlias = Callable[[LogEnds], Stamp]
"""Refuses an input log, or returns the stamp of the run that goes on with it."""


def admit_any(_ends: LogEnds) -> Stamp:
    """Take any log, as one that belongs to no checkpoint."""
    return UNSTAMPED


def create(directory: Path, head: FileHead) -> LogFile:
    """Make an empty file whose contents survive a power failure; its name does not yet."""
    path = directory / f"{head.first:020d}{_SUFFIX}"
    write_whole(path, head.to_bytes())
    return LogFile(path, head)


def create_behind(last: LogFile, stamp: Stamp) -> LogFile:
    """Make an empty file behind another one, as `create`; an empty one it replaces."""
    head = FileHead(last.next, last.latest_at, stamp, last.head.stamp.run)
    if last.empty:
        head = last.head._replace(stamp=stamp)
    return create(last.path.parent, head)


def keep_reserve(directory: Path) -> None:
    """Reserve disk space for one more file, if there is room: see `give_up_reserve`."""
    path = directory / _RESERVE
    try:
        if not path.is_file() or path.stat().st_size < _RESERVE_BYTES:
            path.unlink(missing_ok=True)  # to open a FIFO would wait for ever
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


def recover(directory: Path, admit: Admit) -> list[LogFile]:
    """Return the files on disk, after dropping a torn end and beginning a file of this run.

    Args:
        directory: the log's.
        admit: what it raises refuses the log as it is: nothing on disk has been changed.

    Raises:
        InputLogError: something is damaged or missing.
    """
    files, torn = read(directory)
    stamp = admit(ends(files))
    for partial in directory.glob("*.new"):
        partial.unlink()
    if torn is not None:
        _drop_torn_end(files[-1], torn)
    if not files:
        files = [create(directory, FileHead(0, stamp=stamp))]
    else:
        last = files[-1]
        _write_again(last.path)
        files[len(files) - last.empty :] = [create_behind(last, stamp)]
    sync_directory(directory)  # a process that was killed may not have done it
    return files


def ends(files: Sequence[LogFile]) -> LogEnds:
    """Return where the log of these files begins and ends."""
    if not files:
        return LogEnds()
    last = files[-1]
    return LogEnds(files[0].first, last.next, last.path, last.head.stamp)


def read(directory: Path) -> tuple[list[LogFile], DamagedBlockError | None]:
    """Return the files on disk, and what is wrong at the end of the last, if it is torn there.

    Nothing is changed.

    Raises:
        InputLogError: something else is damaged, or missing.
    """
    paths = sorted(directory.glob(f"*{_SUFFIX}"))
    files: list[LogFile] = []
    bad: DamagedBlockError | None = None
    for path in paths:
        if not path.stem.isdecimal():
            raise InputLogError(f"{path} is not a file of an input log; move it elsewhere")
        if not path.is_file():  # to open a FIFO would wait for ever
            raise InputLogError(f"{path} is not a regular file. Restore it from a copy")
        file = LogFile(path, FileHead(int(path.stem)))
        before, bad = bad, None
        try:
            file.scan()
        except DamagedBlockError as error:
            if not error.offset:
                raise _damaged(path, error) from error
            bad = error
        if files:
            _refuse_gap(files[-1], before, file)
        files.append(file)
    return files, None if bad is None else _torn(files[-1], bad)


def runs_of(files: Iterable[LogFile], start: int, until: int) -> Iterator[LoggedRun]:
    """Yield the records of files from number `start` to before `until`, one run for each block.

    Raises:
        InputLogError: a file was changed meanwhile.
    """
    for file in files:
        try:
            yield from file.runs(start, until)
        except (OSError, DamagedBlockError) as error:
            raise InputLogError(f"the input log's file {file.path}: {error}") from error


def _damaged(path: Path, error: DamagedBlockError) -> InputLogError:
    return InputLogError(f"the input log's file {path} is damaged: {error}. Restore it from a copy")


def _refuse_gap(before: LogFile, bad: DamagedBlockError | None, file: LogFile) -> None:
    """Refuse a file that does not go on where the file before it ends.

    That one may have a bad end, `bad`: a run has dropped it, and a power failure brought it back.

    Raises:
        InputLogError: it does not.
    """
    directory, stamp = file.path.parent, before.head.stamp
    if (file.head.stamp.checkpoint, file.head.run_before) != (stamp.checkpoint, stamp.run):
        raise InputLogError(
            f"the input log {directory} is mixed: {file.path.name}, which {file.head.stamp} wrote, "
            f"does not go on behind {before.path.name}, which {stamp} wrote: one of them is from "
            "elsewhere, or from a copy that went on apart. Restore the whole checkpoint from one "
            "copy"
        )
    if file.first != before.next:
        if bad is not None:
            raise _damaged(before.path, bad) from bad
        raise InputLogError(
            f"the input log {directory} is damaged: records {before.next} to {file.first} are "
            f"missing before {file.path.name}"
        )
    if file.head.at != before.latest_at:
        raise InputLogError(
            f"the input log {directory} is damaged: {file.path.name} begins at the time "
            f"{file.head.at}, and the file before it ends at {before.latest_at}"
        )


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


def _torn(last: LogFile, error: DamagedBlockError) -> DamagedBlockError | None:
    """Return what is wrong at the end of a log; `None`: it was being written just then.

    Raises:
        InputLogError: the block is damaged, not half written: a whole block follows it.
    """
    path = last.path
    found = block_after_bad_one(path, error.offset, last.next)
    if found is None:
        return error
    try:  # a run may be appending to it: what was half written a moment ago may be whole
        last.scan()
    except DamagedBlockError as now:
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


def _drop_torn_end(last: LogFile, error: DamagedBlockError) -> None:
    """Truncate a half-written block at the end; `error` says where it begins."""
    path = last.path
    dropped = path.stat().st_size - error.offset
    os.truncate(path, error.offset)
    _log.warning(
        "the input log %s ends in an append that was cut off; its %d bytes are dropped",
        path.parent,
        dropped,
    )


class SecondNames:
    """Where the files of an input log stay.

    Args:
        directory: where they stay; it exists.
        log: the log's own directory.
        files: the log's files.

    Attributes:
        in_place: it is the log's own directory, where files stay until a user deletes them.

    Raises:
        InputLogError: other records are there, or some that the log has dropped are not.
        OSError: the files cannot be given a name there.
    """

    def __init__(self, directory: Path, log: Path, files: Sequence[LogFile]) -> None:
        self._directory = directory
        self.in_place = directory.samefile(log)
        if self.in_place:
            return
        first = files[0]
        known = self._target(first).exists()
        if first.first and not known:
            raise InputLogError(
                f"the records before {first.first} are neither in the input log {log} nor in "
                f"{directory}, so they cannot be recorded. Begin anew with an empty checkpoint, or "
                "run without --record"
            )
        try:
            for file in files:
                self._link(file)
            sync_directory(directory)
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise InputLogError(
                    f"{directory} is on another file system than the input log {log}, which is "
                    "recorded by hard links. Take a directory beside the checkpoint"
                ) from error
            raise

    def add(self, file: LogFile) -> None:
        """Give a new file its second name, which survives a power failure.

        Raises:
            OSError: it cannot.
        """
        if not self.in_place:
            # An attempt before may have left a file of that name, without records.
            self._target(file).unlink(missing_ok=True)
            os.link(file.path, self._target(file))
            sync_directory(self._directory)

    def _link(self, file: LogFile) -> None:
        target = self._target(file)
        if target.exists() and not target.samefile(file.path):
            if target.stat().st_size > START:
                raise InputLogError(
                    f"{target} is not the file {file.path}: {self._directory} holds the records "
                    "of another run. Take another directory"
                )
            # A crash left it without records; there must be a file of that name at any time.
            partial = target.with_suffix(".new")
            partial.unlink(missing_ok=True)
            os.link(file.path, partial)
            partial.rename(target)
        if not target.exists():
            os.link(file.path, target)

    def _target(self, file: LogFile) -> Path:
        return self._directory / file.path.name
