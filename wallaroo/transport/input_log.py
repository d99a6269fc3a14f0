"""A durable, bounded log of what an engine receives: the records of `wallaroo.records`.

An engine that must survive kill -9 appends each record here before it counts as received, reads
batches of records, and drops those it has committed::

    log = InputLog.open(directory, max_bytes=256 << 20)
    log.append("words", payloads, at)    # frames, from log.next_sequence on; not yet durable
    log.append_records(records)          # the same for records of any kind: Value, Tick, End
    log.sync()                           # now it is: log.durable_sequence == log.next_sequence
    log.runs(from_sequence, to_sequence) # [Run(source, first, payloads, kind, at), …]
    log.end_within(from_sequence, max_bytes=…, max_records=…)  # where a batch should end
    log.drop_before(sequence)            # the records before it are not needed any more
    log.full                             # stop reading sockets until dropping has made room

- Records are numbered 0, 1, 2, … across all sources, and on from there after a restart.
- Arrival times never decrease along the log (time-1), across restarts too: a record that arrives
  before `latest_at` gets that time. What is read from the log has the times that count.
- The `value` of a `Value` is bytes here: the caller encodes and decodes it.
- `first_sequence <= durable_sequence <= next_sequence`. `drop_before` deletes whole files, so
  `first_sequence` may stay below what was dropped; such records can be read until they are deleted.
- The bound is soft: `append` never refuses what was already received. The caller looks at `full`
  after each append and stops reading, so the log exceeds its bound by what was read before that.
- Each run begins a file of its own, which carries its stamp (`wallaroo.transport.stamps`).
- After kill -9 every record that was synced is there. A half-written block at the end is
  dropped whole, with a warning that says how many bytes. Damage anywhere else is an error; so is
  a bad block at the end with a whole block after it (`wallaroo.transport.log_file`).
- Directory and files are for their owner alone.
- A write that fails raises `InputLogError`, `InputLogFullError` on a full or read-only disk, takes
  none of that append's records, and leaves the log as it was: a later append may succeed. A failed
  sync is final, because it is unknown from then on what is on disk.
- The log survives a disk that is full to the last byte: a reserve of a few KB is enough to begin a
  new file, and then the one before can be deleted.
- With `recording`, every file has a second name in that directory, and stays there when it is
  dropped: so a run is recorded without being written twice (`wallaroo.transport.recording`).
- One process at a time: it holds the lock of the checkpoint or recording that the log is part of
  (`wallaroo.transport.checkpoint`). Inside it any thread may call anything. `sync` does not hold up
  `append` or `runs`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from wallaroo.records import Record
from wallaroo.text import counted
from wallaroo.transport.log_directory import (
    Admit,
    InputLogError,
    SecondNames,
    admit_any,
    create_behind,
    give_up_reserve,
    keep_reserve,
    recover,
)
from wallaroo.transport.log_file import LogFile
from wallaroo.transport.log_format import (
    DamagedBlockError,
    Group,
    LoggedRun,
    RecordKind,
    encode_block,
    in_groups,
    offsets_group,
)
from wallaroo.transport.private import make_private, sync_directory, told_as

__all__ = ["InputLog", "InputLogError", "InputLogFullError", "LoggedRun", "RecordKind"]

_MAX_BLOCK = 4 << 20  # payload bytes of a block; a larger append becomes several
_FRAME = RecordKind.FRAME
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
FILES = 8
"""Files of a full log, about: an eighth of the log is deleted at a time."""


class InputLogFullError(InputLogError):
    """The disk is full or read-only; the log is as before. A later append may succeed."""


class InputLog:
    """Records on disk; the module's docstring gives the rules. Made by `open`.

    Attributes:
        written: when records were last made durable, in seconds since 1970; `None`: not yet.
        sources: the sources that there are; a record of another is read as a tick, which is nothing
            but time that has passed. `None`: there are all that have records.
    """

    def __init__(
        self,
        path: Path,
        max_bytes: int,
        file_bytes: int,
        files: list[LogFile],
        names: SecondNames | None,
    ) -> None:
        self.path = path
        self._names = names
        self.max_bytes = max_bytes
        self._file_bytes = file_bytes
        self._files = files
        self._lock = threading.Lock()  # guards everything below and the list above
        self._fd = os.open(files[-1].path, os.O_WRONLY | os.O_APPEND)
        self._durable = files[-1].next
        self._broken: str | None = None
        self.written: float | None = None
        self.sources: frozenset[str] | None = None
        self._starved = False  # the disk had no room for the last append

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        max_bytes: int,
        *,
        file_bytes: int | None = None,
        recording: Path | None = None,
        admit: Admit = admit_any,
    ) -> InputLog:
        """Open the log in the directory `path`, create it if it is missing, and repair its end.

        Args:
            path: a directory of its own.
            max_bytes: from this size on the log is `full`.
            file_bytes: size of a file; by default an eighth of `max_bytes`.
            recording: a directory on the same file system in which all files stay; it may be
                `path`.
            admit: is given what the log holds, and returns the stamp of this run. What it raises
                refuses the log before anything on disk is changed. Once it has returned, this
                process must have the lock.

        Raises:
            InputLogError: the directory cannot be used, or a file is damaged anywhere but at the
                log's end.
        """
        directory = Path(path)
        with told_as(InputLogError, f"the input log {directory} cannot be opened"):
            make_private(directory)
            files = recover(directory, admit)
            names = None if recording is None else SecondNames(recording, directory, files)
            keep_reserve(directory)
            return cls(directory, max_bytes, file_bytes or max_bytes // FILES, files, names)

    @property
    def broken(self) -> bool:
        """Whether it does nothing more: nobody knows what is on the disk (recover-1)."""
        return self._broken is not None

    @property
    def first_sequence(self) -> int:
        """Sequence of the first record that is still held, or `next_sequence` if there is none."""
        return self._files[0].first

    @property
    def next_sequence(self) -> int:
        """Sequence the next record gets."""
        return self._files[-1].next

    @property
    def latest_at(self) -> int:
        """Arrival time of the latest record, in nanoseconds since 1970; 0 if there was none."""
        return self._files[-1].latest_at

    @property
    def durable_sequence(self) -> int:
        """Records before this one survive kill -9 and a power failure."""
        return self._durable

    @property
    def size(self) -> int:
        """Bytes of all files."""
        with self._lock:
            return sum([file.size for file in self._files])

    @property
    def full(self) -> bool:
        """Whether to stop reading until `drop_before` has made room."""
        return self.size >= self.max_bytes

    def append(self, source: str, payloads: Sequence[bytes], at: int = 0) -> int:
        """Write frames of one source, in order, and return `next_sequence` after them.

        Args:
            source: the source's name.
            payloads: the frames.
            at: when they arrived, in nanoseconds since 1970; `latest_at` if that is later.

        Raises:
            InputLogError: they cannot be written; none of them was taken.
            ValueError: `at` is 2⁶³ or more.
        """
        return self._append([(_FRAME, source, at, payloads)])

    def append_records(self, records: Iterable[Record]) -> int:
        """Write records, in order, all or none; return `next_sequence` after them.

        Args:
            records: of any kind. The `value` of a `Value` is bytes. Of an `End` with an error, at
                most 1,000 characters of the type and 4,000 of the text are kept.

        Raises:
            InputLogError: they cannot be written; none of them was taken.
            TypeError: a value is not bytes.
            ValueError: an arrival time is 2⁶³ or more.
        """
        return self._append(in_groups(records))

    def append_offsets(self, source: str, partition: int, first: int, last: int, at: int) -> int:
        """Write a run of offsets, whose records stay in their topic; return `next_sequence`.

        Args:
            source: the source's name.
            partition: of its topic.
            first: the first offset.
            last: the last one; each takes a number, whether it holds a record or not (kafka-1).
            at: as for `append`.

        Raises:
            InputLogError: it cannot be written; it was not taken.
            ValueError: `at` is 2⁶³ or more.
        """
        return self._append([offsets_group(source, partition, first, last, at)])

    def _append(self, groups: list[Group]) -> int:
        with self._lock:
            self._check()
            file = self._files[-1]
            if file.size >= self._file_bytes and not file.empty:
                file = self._roll()
            first, latest = file.next, file.latest_at
            blocks, added = [], []
            for kind, source, at, payloads in groups:
                if at > latest:
                    latest = at
                    if at >> 63:  # beyond every time that there is (time-2)
                        raise ValueError(f"an arrival time of {at} ns is not below 2**63")
                for part in _parts(payloads):
                    block = encode_block(first, kind, source, latest, part)
                    blocks.append(block)
                    added.append((len(part), len(block), latest))
                    first += len(part)
            self._write(file, b"".join(blocks), first - file.next)
            for count, size, at in added:
                file.added(count, size, at)
            return file.next

    def sync(self) -> int:
        """Make durable what was appended before this call; return the new `durable_sequence`.

        Raises:
            InputLogError: the system could not; the log takes nothing from then on.
        """
        with self._lock:
            self._check()
            reached = self._files[-1].next
            if reached == self._durable:
                return reached
            fd = os.dup(self._fd)  # a roll may close the other meanwhile
        try:
            os.fsync(fd)
        except OSError as error:
            raise self._not_synced(error) from error
        finally:
            os.close(fd)
        with self._lock:
            self._check()  # of two syncs at a time the system may tell one alone that it failed
            self._durable = max(self._durable, reached)
            self.written = time.time()
            return self._durable

    def runs(self, from_sequence: int, to_sequence: int) -> list[LoggedRun]:
        """Return the records with ``from_sequence <= sequence < to_sequence``, in runs.

        Raises:
            InputLogError: the log does not hold all of them: some are dropped or not yet appended.
        """
        runs: list[LoggedRun] = []
        for file in self._covering(from_sequence, to_sequence):
            try:
                runs += file.runs(from_sequence, to_sequence)
            except (OSError, DamagedBlockError) as error:
                raise _unreadable(file, error) from error
        held = sum([len(run.payloads) for run in runs])
        if held != to_sequence - from_sequence:
            raise InputLogError(
                f"the input log {self.path} holds {held} of the records "
                f"{from_sequence} to {to_sequence}"
            )
        if self.sources is None:
            return runs
        there = self.sources | {""}
        return [run if run.source in there else run.as_ticks for run in runs]

    def end_within(
        self, from_sequence: int, *, max_bytes: int | None = None, max_records: int | None = None
    ) -> int:
        """Return where a batch that begins at `from_sequence` ends, at `durable_sequence` at most.

        Args:
            from_sequence: the batch's first record.
            max_bytes: of payloads; the first record goes in even if it alone is larger.
            max_records: number of records, 1 or more.

        Raises:
            InputLogError: the log cannot be read.
        """
        stop = self._durable
        if max_records is not None:
            stop = min(stop, from_sequence + max_records)
        if max_bytes is None or stop <= from_sequence:
            return max(stop, from_sequence)
        total = 0
        for file in self._covering(from_sequence, stop):
            try:
                with contextlib.closing(file.lengths(from_sequence, stop)) as blocks:
                    for first, lengths in blocks:
                        size = sum(lengths)
                        if total + size <= max_bytes:
                            total += size
                            continue
                        for sequence, length in enumerate(lengths, first):
                            total += length
                            if total > max_bytes and sequence > from_sequence:
                                return sequence
            except (OSError, DamagedBlockError) as error:
                raise _unreadable(file, error) from error
        return stop

    def drop_before(self, sequence: int) -> None:
        """Delete the files in which every record lies before `sequence`; those kept elsewhere stay.

        Raises:
            InputLogError: `sequence` is not durable yet, or a file cannot be deleted.
        """
        with self._lock:
            self._check()
            if sequence > self._durable:
                raise InputLogError(
                    f"the input log {self.path} cannot drop the records before {sequence}: "
                    f"only the records before {self._durable} are durable"
                )
            last = self._files[-1]
            if last.next <= sequence and not last.empty:
                self._replace(last)
            while len(self._files) > 1 and self._files[0].next <= sequence:
                try:
                    if self._names is None or not self._names.in_place:
                        self._files[0].path.unlink(missing_ok=True)
                    # Each by itself: if a later one vanished first, the log would have a hole.
                    sync_directory(self.path)
                except OSError as error:
                    raise InputLogError(
                        f"the input log's file {self._files[0].path} cannot be deleted: "
                        f"{error.strerror}"
                    ) from error
                del self._files[0]
            keep_reserve(self.path)

    def close(self) -> None:
        """Close the files, without a sync."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                self._fd = -1
                self._broken = f"the input log {self.path} is closed"

    def _check(self) -> None:
        if self._broken is not None:
            raise InputLogError(self._broken)

    def _covering(self, start: int, stop: int) -> list[LogFile]:
        with self._lock:
            self._check()
            return [s for s in self._files if s.first < stop and s.next > start]

    def _write(self, file: LogFile, data: bytes, records: int) -> None:
        """Append `data` to the last file, or leave the file as it was."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            try:
                if len(view) < len(data):  # a read-only disk takes nothing, and no repair either
                    os.ftruncate(self._fd, file.size)
            except OSError as worse:
                self._broken = f"the input log {self.path} cannot be repaired: {worse.strerror}"
            raise self._refusal(error, f"not taken: {counted(records, 'record')}") from error
        self._starved = False

    def _refusal(self, error: OSError, what: str) -> InputLogError:
        self._starved = error.errno in _NO_ROOM
        kind = InputLogFullError if self._starved else InputLogError
        return kind(f"the input log {self.path} cannot be written: {error.strerror}; {what}")

    def _not_synced(self, error: OSError) -> InputLogError:
        """Refuse all records from now on: it is unknown what is on the disk."""
        self._broken = f"the input log {self.path} could not be synced: {error.strerror}"
        return InputLogError(self._broken)

    def _replace(self, last: LogFile) -> None:
        """Begin a new file, if the last one is worth deleting."""
        if last.size >= self._file_bytes or self._starved:
            try:
                self._roll()
            except InputLogFullError:  # there is no room even for a new file
                give_up_reserve(self.path)
                with contextlib.suppress(InputLogFullError):
                    self._roll()

    def _roll(self) -> LogFile:
        """Begin a new file; the file before it is made durable first."""
        file = self._files[-1]
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise self._not_synced(error) from error
        fresh: LogFile | None = None
        try:
            fresh = create_behind(file, file.head.stamp)
            if self._names is not None:
                self._names.add(fresh)
        except OSError as error:
            if fresh is not None:
                self._take_back(fresh)
            raise self._refusal(error, "its records were not taken") from error
        try:  # from here on there is a file that later ones must not contradict
            sync_directory(self.path)
            fd = os.open(fresh.path, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise self._not_synced(error) from error
        os.close(self._fd)
        self._fd = fd
        self._durable = file.next
        self._files.append(fresh)
        return fresh

    def _take_back(self, fresh: LogFile) -> None:
        """Delete a file that has been begun: records go on behind the one before it."""
        try:
            fresh.path.unlink()
            sync_directory(self.path)
        except OSError as error:
            raise self._not_synced(error) from error


def _unreadable(file: LogFile, error: Exception) -> InputLogError:
    return InputLogError(f"the input log's file {file.path}: {error}")


def _parts(payloads: Sequence[bytes]) -> list[Sequence[bytes]]:
    """Return `payloads` in parts of bounded size, each of one payload or more."""
    sizes = list(map(len, payloads))
    if sum(sizes) <= _MAX_BLOCK:
        return [payloads] if payloads else []
    parts: list[Sequence[bytes]] = []
    start = total = 0
    for index, size in enumerate(sizes):
        if total + size > _MAX_BLOCK and index > start:
            parts.append(payloads[start:index])
            start, total = index, 0
        total += size
    return [*parts, payloads[start:]]
