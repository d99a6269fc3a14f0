"""Decides whether a bad block at a log's end is half written or damaged.

After a crash the last append may be half written. Then nothing follows it, or, after a power
failure, zeros from the file system. If a whole block follows a bad block, the bad block was written
completely and was damaged later: to drop it would lose acknowledged records.

The length in the bad block may be wrong, so it does not tell where the next block begins, and the
search looks at every byte after it. A payload may itself contain copies of blocks, which must not
count. A block of the log itself meets both conditions:

- It begins after the end of the bad block, if the lengths in the bad block's header agree with each
  other, as in a half-written block they do.
- Its sequence number is possible: between it and the bad block there are at least as many bytes as
  the records in between need.

After a power failure a file system may have kept a later append and lost an earlier one, neither of
them synced. That looks like damage and is refused too: a person has to decide.
"""

from __future__ import annotations

import mmap
import re
import struct
from pathlib import Path

from wallaroo.transport.blocks import (
    RECORD_BYTES,
    SEQUENCE_AT,
    Block,
    Format,
    block_at,
    is_whole,
)


def block_behind(path: Path, offset: int, expected: int, form: Format) -> Block | None:
    """Return the first whole block at or after the bad one, if there is one.

    Args:
        path: the file.
        offset: where the bad block begins.
        expected: the sequence number it should begin with.
        form: the file's format.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        bad = block_at(data, offset, form)
        if bad is not None and is_whole(data, bad):
            return bad  # whole, but with a wrong sequence number
        start = offset if bad is None else bad.end
        most = expected + (len(data) - offset) // RECORD_BYTES
        # All possible numbers have most of their eight bytes in common.
        different = ((expected ^ most).bit_length() + 7) // 8
        common = re.escape(struct.pack(">Q", expected)[: 8 - different])
        number = re.compile(common + b".{%d}" % different + rb"(?!\0{4})", re.DOTALL)
        position = start + SEQUENCE_AT
        while found := number.search(data, position):
            position = found.start() + 1
            block = block_at(data, found.start() - SEQUENCE_AT, form)
            if block is not None:
                between = (block.offset - offset) // RECORD_BYTES
                if expected <= block.first <= expected + between and is_whole(data, block):
                    return block
    return None
