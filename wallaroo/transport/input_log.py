"""A durable, bounded log of the frames received: (sequence, source, payload).

An engine that must survive kill -9 appends each frame here before it counts as received, reads
batches of frames, and drops those it has committed::

    log = InputLog.open(directory, max_bytes=256 << 20)
    log.append("words", payloads)        # numbered from log.next_sequence on; not yet durable
    log.sync()                           # now it is: log.durable_sequence == log.next_sequence
    log.read(from_sequence, to_sequence) # [Record(sequence, source, payload), …]
    log.runs(from_sequence, to_sequence) # the same as [Run(source, first, payloads), …]
    log.end_within(from_sequence, max_bytes=…, max_records=…)  # where a batch should end
    log.drop_before(sequence)            # the frames before it are not needed any more
    log.full                             # stop reading sockets until dropping has made room

- Frames are numbered 0, 1, 2, … across all sources, and on from there after a restart.
- `first_sequence <= durable_sequence <= next_sequence`. `drop_before` deletes whole segments, so
  `first_sequence` may stay below what was dropped; such frames can be read until they are deleted.
- The bound is soft: `append` never refuses what was already received. The caller looks at `full`
  after each append and stops reading, so the log exceeds its bound by what was read before that.
- After kill -9 every frame that was synced is there. A half-written append at the end is
  dropped whole, with a warning that says how many bytes. Damage anywhere else is an error; so is
  a bad block at the end with a whole block after it (`wallaroo.transport.torn_end`).
- Directory and files are for their owner alone; a directory that others can write is refused.
- A write that fails raises `InputLogError`, `InputLogFullError` on a full disk, takes none of that
  append's frames, and leaves the log as it was: a later append may succeed. A failed sync is final,
  because nobody can know any more what is on the disk.
- The log survives a disk that is full to the last byte: a reserve of a few KB is enough to begin a
  new file, and then the one before can be deleted.
- One process at a time (a lock file); inside it any thread may call anything. `sync` does not hold
  up `append` or `read`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from wallaroo.transport.log_files import (
    InputLogError,
    create,
    give_up_reserve,
    keep_reserve,
    locked,
    recover,
)
from wallaroo.transport.segment import (
    START,
    CorruptSegmentError,
    Record,
    Run,
    Segment,
    encode_block,
)

__all__ = ["InputLog", "InputLogError", "InputLogFullError", "Record", "Run"]

_MAX_BLOCK = 4 << 20  # payload bytes of a block; a larger append becomes several
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
_SEGMENTS = 8  # files of a full log, about: an eighth of the log is deleted at a time


class InputLogFullError(InputLogError):
    """The disk has no room for an append; the log is as before. A later append may succeed."""


class InputLog:
    """Frames on disk; the module's docstring gives the rules. Made by `open`."""

    def __init__(
        self, path: Path, max_bytes: int, segment_bytes: int, lock_fd: int, segments: list[Segment]
    ) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self._segment_bytes = segment_bytes
        self._lock_fd = lock_fd
        self._segments = segments
        self._lock = threading.Lock()  # guards everything below and the list above
        self._fd = os.open(segments[-1].path, os.O_WRONLY | os.O_APPEND)
        self._durable = segments[-1].next
        self._broken: str | None = None
        self._starved = False  # the disk had no room for the last append

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], max_bytes: int, *, segment_bytes: int | None = None
    ) -> InputLog:
        """Open the log in the directory `path`, create it if it is missing, and repair its end.

        Args:
            path: a directory of its own.
            max_bytes: from this size on the log is `full`.
            segment_bytes: size of a file; by default an eighth of `max_bytes`.

        Raises:
            InputLogError: the directory cannot be used, others can write into it, another process
                has the log open, or a file is damaged anywhere but at the log's end.
        """
        directory = Path(path)
        try:
            lock_fd = locked(directory)
        except OSError as error:
            raise InputLogError(
                f"the input log {directory} cannot be opened: {error.strerror}"
            ) from error
        try:
            segments = recover(directory)
            keep_reserve(directory)
            return cls(
                directory, max_bytes, segment_bytes or max_bytes // _SEGMENTS, lock_fd, segments
            )
        except BaseException as error:
            os.close(lock_fd)
            if isinstance(error, OSError):
                raise InputLogError(
                    f"the input log {directory} cannot be opened: {error.strerror}"
                ) from error
            raise

    @property
    def first_sequence(self) -> int:
        """Sequence of the first frame that is still held, or `next_sequence` if there is none."""
        return self._segments[0].first

    @property
    def next_sequence(self) -> int:
        """Sequence the next frame gets."""
        return self._segments[-1].next

    @property
    def durable_sequence(self) -> int:
        """Frames before this one survive kill -9 and a power failure."""
        return self._durable

    @property
    def size(self) -> int:
        """Bytes of all files."""
        with self._lock:
            return sum([segment.size for segment in self._segments])

    @property
    def full(self) -> bool:
        """Whether to stop reading until `drop_before` has made room."""
        return self.size >= self.max_bytes

    def append(self, source: str, payloads: Sequence[bytes]) -> int:
        """Write frames of one source, in order, and return `next_sequence` after them.

        Raises:
            InputLogError: they cannot be written; none of them was taken.
        """
        with self._lock:
            self._check()
            segment = self._segments[-1]
            if segment.size > START and segment.size >= self._segment_bytes:
                segment = self._roll()
            first, counts, blocks = segment.next, [], []
            for part in _parts(payloads):
                blocks.append(encode_block(first, source, part))
                counts.append(len(part))
                first += len(part)
            self._write(segment, b"".join(blocks), first - segment.next)
            for count, block in zip(counts, blocks, strict=True):
                segment.added(count, len(block))
            return segment.next

    def sync(self) -> int:
        """Make durable what was appended before this call; return the new `durable_sequence`.

        Raises:
            InputLogError: the system could not; the log takes nothing from then on.
        """
        with self._lock:
            self._check()
            reached = self._segments[-1].next
            if reached == self._durable:
                return reached
            fd = os.dup(self._fd)  # a roll may close the other meanwhile
        try:
            os.fsync(fd)
        except OSError as error:
            self._broken = f"the input log {self.path} could not be synced: {error.strerror}"
            raise InputLogError(self._broken) from error
        finally:
            os.close(fd)
        with self._lock:
            self._durable = max(self._durable, reached)
            return self._durable

    def runs(self, from_sequence: int, to_sequence: int) -> list[Run]:
        """Return the frames with ``from_sequence <= sequence < to_sequence``, in runs.

        Raises:
            InputLogError: the log does not hold all of them: some are dropped or not yet appended.
        """
        runs: list[Run] = []
        for segment in self._covering(from_sequence, to_sequence):
            try:
                runs += segment.runs(from_sequence, to_sequence)
            except (OSError, CorruptSegmentError) as error:
                raise InputLogError(f"the input log's file {segment.path}: {error}") from error
        held = sum([len(run.payloads) for run in runs])
        if held != to_sequence - from_sequence:
            raise InputLogError(
                f"the input log {self.path} holds {held} of the frames "
                f"{from_sequence} to {to_sequence}"
            )
        return runs

    def read(self, from_sequence: int, to_sequence: int) -> list[Record]:
        """Return the same frames as `runs`, one by one.

        Raises:
            InputLogError: as `runs`.
        """
        return [
            Record(sequence, run.source, payload)
            for run in self.runs(from_sequence, to_sequence)
            for sequence, payload in enumerate(run.payloads, run.first)
        ]

    def end_within(
        self, from_sequence: int, *, max_bytes: int | None = None, max_records: int | None = None
    ) -> int:
        """Return where a batch that begins at `from_sequence` ends, at `durable_sequence` at most.

        Args:
            from_sequence: the batch's first frame.
            max_bytes: of payloads; the first frame goes in even if it alone is larger.
            max_records: number of frames, 1 or more.
        """
        stop = self._durable
        if max_records is not None:
            stop = min(stop, from_sequence + max_records)
        if max_bytes is None or stop <= from_sequence:
            return max(stop, from_sequence)
        total = 0
        for segment in self._covering(from_sequence, stop):
            for sequence, length in segment.sizes(from_sequence, stop):
                total += length
                if total > max_bytes and sequence > from_sequence:
                    return sequence
        return stop

    def drop_before(self, sequence: int) -> None:
        """Delete the files in which every frame lies before `sequence`.

        Raises:
            InputLogError: `sequence` is not durable yet, or a file cannot be deleted.
        """
        with self._lock:
            self._check()
            if sequence > self._durable:
                raise InputLogError(
                    f"the input log {self.path} cannot drop the frames before {sequence}: "
                    f"only the frames before {self._durable} are durable"
                )
            last = self._segments[-1]
            if last.next <= sequence and last.size > START:
                self._let_go_of(last)
            while len(self._segments) > 1 and self._segments[0].next <= sequence:
                try:
                    self._segments[0].path.unlink(missing_ok=True)
                except OSError as error:
                    raise InputLogError(
                        f"the input log's file {error.filename} cannot be deleted: {error.strerror}"
                    ) from error
                del self._segments[0]
            keep_reserve(self.path)

    def close(self) -> None:
        """Close the files and release the lock, without a sync."""
        with self._lock:
            if self._fd >= 0:
                os.close(self._fd)
                os.close(self._lock_fd)
                self._fd = -1
                self._broken = f"the input log {self.path} is closed"

    def _check(self) -> None:
        if self._broken is not None:
            raise InputLogError(self._broken)

    def _covering(self, start: int, stop: int) -> list[Segment]:
        with self._lock:
            self._check()
            return [s for s in self._segments if s.first < stop and s.next > start]

    def _write(self, segment: Segment, data: bytes, frames: int) -> None:
        """Append `data` to the last file, or leave the file as it was."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            try:
                os.ftruncate(self._fd, segment.size)
            except OSError as worse:
                self._broken = f"the input log {self.path} cannot be repaired: {worse.strerror}"
            raise self._refusal(error, f"{frames} frames") from error
        self._starved = False

    def _refusal(self, error: OSError, what: str) -> InputLogError:
        self._starved = error.errno in _NO_ROOM
        kind = InputLogFullError if self._starved else InputLogError
        return kind(
            f"the input log {self.path} cannot be written: {error.strerror}; {what} were not taken"
        )

    def _let_go_of(self, last: Segment) -> None:
        """Begin a new file, if the last one is worth deleting."""
        if last.size >= self._segment_bytes or self._starved:
            try:
                self._roll()
            except InputLogFullError:  # there is no room even for a new file
                give_up_reserve(self.path)
                with contextlib.suppress(InputLogFullError):
                    self._roll()

    def _roll(self) -> Segment:
        """Begin a new file; the file before it is made durable first."""
        segment = self._segments[-1]
        try:
            os.fsync(self._fd)
            fresh = create(self.path, segment.next)
            fd = os.open(fresh.path, os.O_WRONLY | os.O_APPEND)
        except OSError as error:
            raise self._refusal(error, "its frames") from error
        os.close(self._fd)
        self._fd = fd
        self._durable = segment.next
        self._segments.append(fresh)
        return fresh


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
