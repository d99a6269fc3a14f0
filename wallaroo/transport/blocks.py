"""The bytes of an input log's file: a header, then blocks of records, each with a checksum.

The header::

    21 bytes magic · u32 CRC-32 of what follows
    u64 sequence of the file's first record · u64 arrival time of the last record before it

A block holds records of one kind, one source and one arrival time, which one append wrote::

    u32 length of what follows the checksum · u32 CRC-32 of it
    u64 sequence of the first record · u32 number of records · u16 length of the source's name
    u8 kind · u64 arrival time
    the name, UTF-8 · u32 length of each payload · the payloads

All numbers are big-endian; times are nanoseconds since 1970. A block is read whole or not at all,
so bytes left by a crash in the middle of a write are never taken for a record.

This is format 2. Format 1 held frames without times: its header is a magic and the first sequence,
its blocks have no kind and no time. Such files are still read; nothing is added to them. Damage to
a header cannot turn one format into the other: where format 2 has the checksum, format 1 has the
sequence, and that is also the file's name.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, TypeAlias

_MAGIC = b"wallaroo input log 2\n"
_MAGIC_1 = b"wallaroo input log 1\n"
_CHECKSUM = struct.Struct(">I")
_FIRST = struct.Struct(">Q")
_FIRST_AND_TIME = struct.Struct(">QQ")
_OUTER = struct.Struct(">II")
_INNER = struct.Struct(">QIHBQ")

START = len(_MAGIC) + _CHECKSUM.size + _FIRST_AND_TIME.size
"""Bytes of a file before its first block."""
SEQUENCE_AT = _OUTER.size
"""The offset in a block of its first record's sequence."""
RECORD_BYTES = 4
"""The fewest bytes that a record takes in a block: those of its length."""

Bytes: TypeAlias = bytes | mmap.mmap


class Kind(IntEnum):
    """What the records of a block are; the number stands in the file."""

    FRAME = 0
    VALUE = 1
    TICK = 2
    END = 3


KINDS = tuple(Kind)


Head: TypeAlias = tuple[int, int, int, int, int]
"""A block's first sequence, number of records, bytes of the source's name, kind, arrival time."""


@dataclass(frozen=True)
class Format:
    """How a file is laid out.

    Args:
        start: bytes before the first block.
        inner: layout of a block's `Head`.
        missing: what that layout does not hold of it.

    Attributes:
        head_bytes: bytes of a block before the source's name.
    """

    start: int
    inner: struct.Struct
    missing: tuple[int, ...]
    head_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "head_bytes", _OUTER.size + self.inner.size)

    def head(self, data: bytes | memoryview, offset: int = 0) -> Head:
        """Return what stands in `data` from `offset` on."""
        head: Head = self.inner.unpack_from(data, offset) + self.missing
        return head


FORMAT = Format(START, _INNER, ())
"""The format that is written."""
FORMAT_1 = Format(len(_MAGIC_1) + _FIRST.size, struct.Struct(">QIH"), (Kind.FRAME, 0))


class Block(NamedTuple):
    """Which records a block holds and how far it reaches in the file."""

    first: int
    records: int
    offset: int
    end: int


class CorruptSegmentError(Exception):
    """A block is incomplete or its checksum is wrong; `offset` is where it begins."""

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(f"{what} at byte {offset}")
        self.offset = offset


def file_header(first: int, at: int) -> bytes:
    """Return the beginning of a file.

    Args:
        first: sequence of its first record.
        at: arrival time of the last record before it.
    """
    body = _FIRST_AND_TIME.pack(first, at)
    return _MAGIC + _CHECKSUM.pack(zlib.crc32(body)) + body


def read_header(data: bytes, first: int) -> tuple[Format, int]:
    """Return a file's format and the arrival time of the last record before it.

    Args:
        data: at least `START` bytes from the file's beginning, or the whole file.
        first: the sequence that its name says.

    Raises:
        CorruptSegmentError: this is not the beginning of such a file.
    """
    if data[: FORMAT_1.start] == _MAGIC_1 + _FIRST.pack(first):
        return FORMAT_1, 0
    if len(data) >= START:
        at: int = _FIRST_AND_TIME.unpack_from(data, START - _FIRST_AND_TIME.size)[1]
        if data[:START] == file_header(first, at):
            return FORMAT, at
    raise CorruptSegmentError(0, "no header of an input log")


def encode_block(first: int, kind: Kind, source: str, at: int, payloads: Sequence[bytes]) -> bytes:
    """Return the block of `payloads`, the first of which has sequence `first`."""
    name = source.encode()
    lengths = struct.pack(f">{len(payloads)}I", *map(len, payloads))
    inner = _INNER.pack(first, len(payloads), len(name), kind, at)
    body = b"".join([inner, name, lengths, *payloads])
    return _OUTER.pack(len(body), zlib.crc32(body)) + body


def read_head(fd: int, offset: int, form: Format) -> tuple[Head, int]:
    """Return the head of the block at `offset`, unchecked, and where the next block begins.

    Raises:
        CorruptSegmentError: the file ends before.
    """
    data = os.pread(fd, form.head_bytes, offset)
    if len(data) < form.head_bytes:
        raise CorruptSegmentError(offset, "a block's header is cut off")
    length: int = _OUTER.unpack_from(data)[0]
    return form.head(data, _OUTER.size), offset + _OUTER.size + length


def read_block(fd: int, offset: int, end: int, form: Format) -> tuple[Head, bytes, int]:
    """Return head and body of the block at `offset`, checked, and where the next block begins.

    Args:
        fd: the file.
        offset: where the block begins.
        end: where the file's blocks end.
        form: the file's format.

    Raises:
        CorruptSegmentError: it is incomplete, or not what was written.
    """
    outer = os.pread(fd, _OUTER.size, offset)
    if len(outer) < _OUTER.size:
        raise CorruptSegmentError(offset, "a block's header is cut off")
    length, checksum = _OUTER.unpack(outer)
    following = offset + _OUTER.size + length
    if length < form.inner.size or following > end:
        raise CorruptSegmentError(offset, "a block is cut off")
    body = os.pread(fd, length, offset + _OUTER.size)
    if len(body) < length or zlib.crc32(body) != checksum:
        raise CorruptSegmentError(offset, "a block's checksum does not fit")
    return form.head(body), body, following


def read_lengths(fd: int, offset: int, head: Head, form: Format) -> tuple[int, ...]:
    """Return the lengths in bytes of the payloads of the block at `offset`, unchecked."""
    _, count, name_bytes, _, _ = head
    table = os.pread(fd, 4 * count, offset + form.head_bytes + name_bytes)
    return struct.unpack(f">{count}I", table)


def block_at(data: Bytes, offset: int, form: Format) -> Block | None:
    """Return the block that begins at `offset`, if the lengths in its header are consistent.

    It may reach beyond the end of `data`; its checksum is not checked.
    """
    with memoryview(data)[offset:] as view:
        if len(view) < form.head_bytes:
            return None
        length: int = _OUTER.unpack_from(view)[0]
        first, count, name_bytes, _, _ = form.head(view, _OUTER.size)
        lengths = form.head_bytes + name_bytes
        payloads = lengths + 4 * count
        if not count or payloads > min(len(view), _OUTER.size + length):
            return None
        end = payloads + sum(struct.unpack_from(f">{count}I", view, lengths))
        if end != _OUTER.size + length:
            return None
        return Block(first, count, offset, offset + end)


def is_whole(data: Bytes, block: Block) -> bool:
    """Return whether a block is complete and its checksum is right."""
    with memoryview(data) as view:
        if block.end > len(view):
            return False
        checksum: int = _OUTER.unpack_from(view, block.offset)[1]
        return zlib.crc32(view[block.offset + _OUTER.size : block.end]) == checksum
