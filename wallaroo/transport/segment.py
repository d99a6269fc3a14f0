"""One file of an input log: which records it holds, and reading them (bytes: `blocks`)."""

from __future__ import annotations

import os
import struct
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate, pairwise
from pathlib import Path

from wallaroo.transport.blocks import (
    FORMAT,
    KINDS,
    START,
    CorruptSegmentError,
    Format,
    Head,
    read_block,
    read_head,
    read_header,
    read_lengths,
)
from wallaroo.transport.log_records import Run

_INDEX_EVERY = 64 * 1024  # bytes of file for each entry of the index


class Segment:
    """A file of the log, of the format that is written unless `scan` finds another.

    Args:
        path: the file.
        first: sequence of its first record.
        at: arrival time of the last record before it.

    Attributes:
        form: the file's format.
        next: sequence after its last record.
        before: arrival time of the last record before the file.
        latest_at: arrival time of the last record in it or before it.
        writable: records may be added; not to a file of an older format.
        size: bytes of the file.
    """

    def __init__(self, path: Path, first: int, at: int = 0) -> None:
        self.path = path
        self.first = first
        self.next = first
        self.before = self.latest_at = at
        self.form: Format = FORMAT
        self.writable = True
        self.size = START
        self._index: list[tuple[int, int]] = [(first, START)]

    @property
    def empty(self) -> bool:
        """Whether it holds no records."""
        return self.next == self.first

    def added(self, count: int, size: int, at: int) -> None:
        """Count a block of `count` records and `size` bytes that was written at the end."""
        if self.size - self._index[-1][1] >= _INDEX_EVERY:
            self._index.append((self.next, self.size))
        self.next += count
        self.size += size
        self.latest_at = at

    def scan(self) -> None:
        """Find the blocks of a file that is on disk.

        Raises:
            CorruptSegmentError: the block at `offset` is bad; the blocks before it are counted.
        """
        file_size = self.path.stat().st_size
        self.next = self.first
        with self.path.open("rb") as file:
            self.form, self.before = read_header(file.read(START), self.first)
            self.writable = self.form is FORMAT
            self.latest_at = self.before
            self.size = self.form.start
            self._index = [(self.first, self.size)]
            while self.size < file_size:
                head, _, following = read_block(file.fileno(), self.size, file_size, self.form)
                first, count, _, kind, at = head
                if first != self.next:
                    raise CorruptSegmentError(
                        self.size, f"record {first} where {self.next} belongs"
                    )
                if kind >= len(KINDS):
                    raise CorruptSegmentError(self.size, f"records of the unknown kind {kind}")
                if at < self.latest_at:
                    raise CorruptSegmentError(self.size, f"time {at} after {self.latest_at}")
                self.added(count, following - self.size, at)

    def runs(self, start: int, stop: int) -> Iterator[Run]:
        """Yield the records with `start <= sequence < stop`, one run for each block.

        Raises:
            CorruptSegmentError: the file was changed after it was written.
        """
        end = self.size
        fd = os.open(self.path, os.O_RDONLY)
        try:
            for offset, _ in self._blocks(fd, start, stop, end):
                head, body, _ = read_block(fd, offset, end, self.form)
                yield _run(head, body, self.form.inner.size, start, stop)
        finally:
            os.close(fd)

    def sizes(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield (sequence, payload's length in bytes) of the records `start <= sequence < stop`."""
        end = self.size
        fd = os.open(self.path, os.O_RDONLY)
        try:
            for offset, head in self._blocks(fd, start, stop, end):
                lengths = read_lengths(fd, offset, head, self.form)
                for sequence, length in enumerate(lengths, head[0]):
                    if start <= sequence < stop:
                        yield sequence, length
        finally:
            os.close(fd)

    def _blocks(self, fd: int, start: int, stop: int, end: int) -> Iterator[tuple[int, Head]]:
        """Yield (offset, head) of the blocks that hold records of `start <= sequence < stop`."""
        place = bisect_right(self._index, start, key=lambda entry: entry[0]) - 1
        offset = self._index[max(place, 0)][1]
        while offset < end:
            head, following = read_head(fd, offset, self.form)
            if head[0] >= stop:
                return
            if head[0] + head[1] > start:
                yield offset, head
            offset = following


def _run(head: Head, body: bytes, names_at: int, start: int, stop: int) -> Run:
    first, count, name_bytes, kind, at = head
    position = names_at + name_bytes
    source = body[names_at:position].decode()
    lengths = struct.unpack_from(f">{count}I", body, position)
    places = list(accumulate(lengths, initial=position + 4 * count))
    low, high = max(start - first, 0), min(stop - first, count)
    payloads = [body[begin:end] for begin, end in pairwise(places[low : high + 1])]
    return Run(source, first + low, payloads, KINDS[kind], at)
