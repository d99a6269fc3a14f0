"""Whether the bad block at a log's end is half written or damaged.

A crash tears the last append, and behind it there is nothing, or what the file system left there:
zeros after a power cut. So a whole block behind a bad one means that something has changed the bad
one since, and frames that were acknowledged would be lost with it.

Where the next block begins, only the bad one could tell, and it may be its length that is wrong.
So every byte behind it is looked at. A payload may hold a copy of a log's blocks, and that must not
be taken for one; these hold for ours alone:

- It lies behind the bad block's own end, if the lengths in the bad block's header agree with each
  other: a torn one's do.
- Its sequence number fits: between it and the bad block there were as many bytes as the frames in
  between take at least.

After a power cut a file system may have kept a later append and lost an earlier one, neither of
them synced. That looks like damage, and is refused too: the log cannot know, and a person can.
"""

from __future__ import annotations

import mmap
import re
import struct
from pathlib import Path

from wallaroo.transport.segment import FRAME_BYTES, SEQUENCE_AT, Block, block_at, is_whole


def block_behind(path: Path, offset: int, expected: int) -> Block | None:
    """Return the first whole block at or behind a bad one, if there is one.

    Args:
        path: the file.
        offset: where the bad block begins.
        expected: the sequence number it should begin with.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        bad = block_at(data, offset)
        if bad is not None and is_whole(data, bad):
            return bad  # with a number that belongs elsewhere
        start = offset if bad is None else bad.end
        most = expected + (len(data) - offset) // FRAME_BYTES
        # The numbers that are possible have most of their eight bytes in common.
        different = ((expected ^ most).bit_length() + 7) // 8
        common = re.escape(struct.pack(">Q", expected)[: 8 - different])
        number = re.compile(common + b".{%d}" % different + rb"(?!\0{4})", re.DOTALL)
        position = start + SEQUENCE_AT
        while found := number.search(data, position):
            position = found.start() + 1
            block = block_at(data, found.start() - SEQUENCE_AT)
            if block is not None:
                between = (block.offset - offset) // FRAME_BYTES
                if expected <= block.first <= expected + between and is_whole(data, block):
                    return block
    return None
