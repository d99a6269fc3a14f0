"""One file of an input log: which records it holds, reading them, and how it may end.

After a crash the last append may be half written. Then nothing follows it, or, after a power
failure, zeros from the file system. If a whole block follows a bad block, the bad block was written
completely and was damaged later: to drop it would lose acknowledged records.

After a power failure a file system may have kept a later append and lost an earlier one, neither of
them synced. That looks like damage and is refused too: a person has to decide.
"""

from __future__ import annotations

import mmap
import os
import re
import struct
from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

from wallaroo.transport.log_format import (
    RECORD_BYTES,
    SEQUENCE_AT,
    START,
    Block,
    DamagedBlockError,
    FileHead,
    Head,
    LoggedRun,
    block_at,
    decode_block,
    is_whole,
    read_block,
    read_file_head,
    read_head,
    read_lengths,
)

_INDEX_EVERY = 64 * 1024  # bytes of file for each entry of the index


class LogFile:
    """A file of the log.

    Args:
        path: the file.
        head: what stands at its beginning; `scan` reads all of it but the sequence.

    Attributes:
        head: what stands at its beginning.
        first: sequence of its first record.
        next: sequence after its last record.
        latest_at: arrival time of the last record in it or before it.
        size: bytes of the file.
    """

    def __init__(self, path: Path, head: FileHead) -> None:
        self.path = path
        self.head = head
        self.first = self.next = head.first
        self.latest_at = head.at
        self.size = START
        self._index: list[tuple[int, int]] = [(self.first, START)]

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
            DamagedBlockError: the block at `offset` is bad; the blocks before it are counted.
        """
        file_size = self.path.stat().st_size
        self.next = self.first
        with self.path.open("rb") as file:
            self.head = read_file_head(file.read(START), self.first)
            self.latest_at = self.head.at
            self.size = START
            self._index = [(self.first, self.size)]
            while self.size < file_size:
                head, _, following = read_block(file.fileno(), self.size, file_size)
                if head.first != self.next:
                    raise DamagedBlockError(
                        self.size, f"record {head.first} where {self.next} belongs"
                    )
                if head.at < self.latest_at:
                    raise DamagedBlockError(self.size, f"time {head.at} after {self.latest_at}")
                self.added(head.records, following - self.size, head.at)

    def runs(self, start: int, stop: int) -> Iterator[LoggedRun]:
        """Yield the records with `start <= sequence < stop`, one run for each block.

        Raises:
            DamagedBlockError: the file was changed after it was written.
        """
        end = self.size
        fd = os.open(self.path, os.O_RDONLY)
        try:
            for offset, _ in self._blocks(fd, start, stop, end):
                head, body, _ = read_block(fd, offset, end)
                yield decode_block(head, body, start, stop)
        finally:
            os.close(fd)

    def lengths(self, start: int, stop: int) -> Generator[tuple[int, Sequence[int]]]:
        """Yield how many bytes the records `start <= sequence < stop` have, block by block.

        Before them stands the sequence of the block's first one.
        """
        end = self.size
        fd = os.open(self.path, os.O_RDONLY)
        try:
            for offset, head in self._blocks(fd, start, stop, end):
                first = max(start, head.first)
                lengths = read_lengths(fd, offset, head)
                yield first, lengths[first - head.first : stop - head.first]
        finally:
            os.close(fd)

    def _blocks(self, fd: int, start: int, stop: int, end: int) -> Iterator[tuple[int, Head]]:
        """Yield (offset, head) of the blocks that hold records of `start <= sequence < stop`."""
        place = bisect_right(self._index, start, key=lambda entry: entry[0]) - 1
        offset = self._index[max(place, 0)][1]
        while offset < end:
            head, following = read_head(fd, offset)
            if head.first >= stop:
                return
            if head.first + head.records > start:
                yield offset, head
            offset = following


def block_after_bad_one(path: Path, offset: int, expected: int) -> Block | None:
    """Return the first whole block at or after the bad one, if there is one.

    The length in the bad block may be wrong, so it does not tell where the next block begins, and
    the search looks at every byte after it. A payload may itself contain copies of blocks, which
    must not count. A block of the log itself meets both conditions:

    - It begins after the end of the bad block, if the lengths in the bad block's header agree with
      each other, as in a half-written block they do.
    - Its sequence number is possible: between it and the bad block there are at least as many bytes
      as the records in between need.

    Args:
        path: the file.
        offset: where the bad block begins.
        expected: the sequence number it should begin with.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        bad = block_at(data, offset)
        if bad is not None and is_whole(data, bad):
            return bad  # whole, but with a wrong sequence number
        start = offset if bad is None else bad.end
        most = expected + (len(data) - offset) // RECORD_BYTES
        # All possible numbers have most of their eight bytes in common.
        different = ((expected ^ most).bit_length() + 7) // 8
        common = re.escape(struct.pack(">Q", expected)[: 8 - different])
        number = re.compile(common + b".{%d}" % different + rb"(?!\0{4})", re.DOTALL)
        position = start + SEQUENCE_AT
        while match := number.search(data, position):
            position = match.start() + 1
            block = block_at(data, match.start() - SEQUENCE_AT)
            if block is not None:
                between = (block.offset - offset) // RECORD_BYTES
                if expected <= block.first <= expected + between and is_whole(data, block):
                    return block
    return None
