"""One file of an input log: blocks of frames, each with a checksum; the last may be half written.

A file is `MAGIC`, the sequence of its first frame (8 bytes), then blocks. A block holds the frames
that one `append` wrote for one source::

    u32 length of what follows the checksum · u32 CRC-32 of it
    u64 sequence of the first frame · u32 number of frames · u16 length of the source's name
    the name, UTF-8 · u32 length of each payload · the payloads

All numbers are big-endian. A block is read whole or not at all, so bytes left by a crash in the
middle of a write are never taken for a frame.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

MAGIC = b"wallaroo input log 1\n"
_FIRST = struct.Struct(">Q")
_OUTER = struct.Struct(">II")
_INNER = struct.Struct(">QIH")
_HEAD = _OUTER.size + _INNER.size
START = len(MAGIC) + _FIRST.size
"""Bytes of a file before its first block."""

SEQUENCE_AT = _OUTER.size
"""The offset in a block of its first frame's sequence."""
FRAME_BYTES = 4
"""The fewest bytes that a frame takes in a block: those of its length."""

_Bytes: TypeAlias = bytes | mmap.mmap

_INDEX_EVERY = 64 * 1024  # bytes of file for each entry of the index


class Record(NamedTuple):
    """A frame in the log."""

    sequence: int
    source: str
    payload: bytes


class Run(NamedTuple):
    """Frames of one source that follow each other in the log; `first` is the first one's."""

    source: str
    first: int
    payloads: list[bytes]


class Block(NamedTuple):
    """A block's header: which frames it holds and how far it reaches in the file."""

    first: int
    frames: int
    offset: int
    end: int


class CorruptSegmentError(Exception):
    """A block is incomplete or its checksum is wrong; `offset` is where it begins."""

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(f"{what} at byte {offset}")
        self.offset = offset


def file_header(first: int) -> bytes:
    """Return the beginning of a file whose first frame has sequence `first`."""
    return MAGIC + _FIRST.pack(first)


def encode_block(first: int, source: str, payloads: Sequence[bytes]) -> bytes:
    """Return the block of `payloads`, the first of which has sequence `first`."""
    name = source.encode()
    lengths = struct.pack(f">{len(payloads)}I", *map(len, payloads))
    inner = _INNER.pack(first, len(payloads), len(name))
    body = b"".join([inner, name, lengths, *payloads])
    return _OUTER.pack(len(body), zlib.crc32(body)) + body


class Segment:
    """A file of the log.

    Args:
        path: the file.
        first: sequence of its first frame.

    Attributes:
        next: sequence after its last frame.
        size: bytes of the file.
    """

    def __init__(self, path: Path, first: int) -> None:
        self.path = path
        self.first = first
        self.next = first
        self.size = START
        self._index: list[tuple[int, int]] = [(first, START)]

    def added(self, count: int, size: int) -> None:
        """Count a block of `count` frames and `size` bytes that was written at the end."""
        if self.size - self._index[-1][1] >= _INDEX_EVERY:
            self._index.append((self.next, self.size))
        self.next += count
        self.size += size

    def scan(self) -> None:
        """Find the blocks of a file that is on disk.

        Raises:
            CorruptSegmentError: the block at `offset` is bad; the blocks before it are counted.
        """
        file_size = self.path.stat().st_size
        with self.path.open("rb") as file:
            header = file.read(START)
            if header != file_header(self.first):
                raise CorruptSegmentError(0, "no header of an input log")
            while self.size < file_size:
                body, _ = _read_block(file.fileno(), self.size, file_size)
                first, count, _ = _INNER.unpack_from(body)
                if first != self.next:
                    raise CorruptSegmentError(self.size, f"frame {first} where {self.next} belongs")
                self.added(count, _OUTER.size + len(body))

    def runs(self, start: int, stop: int) -> Iterator[Run]:
        """Yield the frames with `start <= sequence < stop`, one run for each block.

        Raises:
            CorruptSegmentError: the file was changed after it was written.
        """
        end = self.size
        fd = os.open(self.path, os.O_RDONLY)
        try:
            for block in self._blocks(fd, start, stop, end):
                body, _ = _read_block(fd, block.offset, end)
                yield _run(body, start, stop)
        finally:
            os.close(fd)

    def sizes(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield (sequence, payload's length in bytes) of the frames `start <= sequence < stop`."""
        end = self.size
        fd = os.open(self.path, os.O_RDONLY)
        try:
            for block in self._blocks(fd, start, stop, end):
                head = os.pread(fd, _INNER.size, block.offset + _OUTER.size)
                skip = _HEAD + _INNER.unpack(head)[2]
                table = os.pread(fd, 4 * block.frames, block.offset + skip)
                lengths = struct.unpack(f">{block.frames}I", table)
                for sequence, length in enumerate(lengths, block.first):
                    if start <= sequence < stop:
                        yield sequence, length
        finally:
            os.close(fd)

    def _blocks(self, fd: int, start: int, stop: int, end: int) -> Iterator[Block]:
        place = bisect_right(self._index, start, key=lambda entry: entry[0]) - 1
        offset = self._index[max(place, 0)][1]
        while offset < end:
            head = os.pread(fd, _HEAD, offset)
            if len(head) < _HEAD:
                raise CorruptSegmentError(offset, "a block's header is cut off")
            length, _ = _OUTER.unpack_from(head)
            first, count, _ = _INNER.unpack_from(head, _OUTER.size)
            if first >= stop:
                return
            following = offset + _OUTER.size + length
            if first + count > start:
                yield Block(first, count, offset, following)
            offset = following


def _read_block(fd: int, offset: int, end: int) -> tuple[bytes, int]:
    """Return the body of the block at `offset`, checked, and where the next begins."""
    head = os.pread(fd, _OUTER.size, offset)
    if len(head) < _OUTER.size:
        raise CorruptSegmentError(offset, "a block's header is cut off")
    length, checksum = _OUTER.unpack(head)
    following = offset + _OUTER.size + length
    if length < _INNER.size or following > end:
        raise CorruptSegmentError(offset, "a block is cut off")
    body = os.pread(fd, length, offset + _OUTER.size)
    if len(body) < length or zlib.crc32(body) != checksum:
        raise CorruptSegmentError(offset, "a block's checksum does not fit")
    return body, following


def block_at(data: _Bytes, offset: int) -> Block | None:
    """Return the block that begins at `offset`, if the lengths in its header are consistent.

    It may reach beyond the end of `data`; its checksum is not checked.
    """
    with memoryview(data)[offset:] as view:
        if len(view) < _HEAD:
            return None
        length, _ = _OUTER.unpack_from(view)
        first, count, name_length = _INNER.unpack_from(view, _OUTER.size)
        payloads = _HEAD + name_length + 4 * count
        if not count or payloads > min(len(view), _OUTER.size + length):
            return None
        sizes = struct.unpack_from(f">{count}I", view, _HEAD + name_length)
        end = payloads + sum(sizes)
        return Block(first, count, offset, offset + end) if end == _OUTER.size + length else None


def is_whole(data: _Bytes, block: Block) -> bool:
    """Return whether a block is complete and its checksum is right."""
    with memoryview(data) as view:
        if block.end > len(view):
            return False
        checksum: int = _OUTER.unpack_from(view, block.offset)[1]
        return zlib.crc32(view[block.offset + _OUTER.size : block.end]) == checksum


def _run(body: bytes, start: int, stop: int) -> Run:
    first, count, name_length = _INNER.unpack_from(body)
    position = _INNER.size + name_length
    source = body[_INNER.size : position].decode()
    lengths = struct.unpack_from(f">{count}I", body, position)
    places = list(accumulate(lengths, initial=position + 4 * count))
    low, high = max(start - first, 0), min(stop - first, count)
    payloads = [body[begin:end] for begin, end in pairwise(places[low : high + 1])]
    return Run(source, first + low, payloads)
