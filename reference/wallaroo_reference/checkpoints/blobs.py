"""Many cells as one blob of bytes: a row of a checkpoint's file.

A blob holds the cells' names and values, one after the other, behind the lengths of all::

    u32 number of cells · u32 length of each name · u32 length of each value · names · values

All numbers are big-endian. A value's length of 2³² - 1 says that the cell is gone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import TypeAlias

Cell: TypeAlias = "tuple[bytes, bytes | None]"
"""A cell's name and value; `None`: it is gone."""

BLOB = 256 * 1024
"""Bytes of cells from which a blob is full."""
LONGEST = (1 << 32) - 2
"""Bytes of the longest value."""

_GONE = LONGEST + 1
_COUNT = struct.Struct(">I")


class DamagedBlobError(ValueError):
    """Bytes that are not a blob."""


def encode(cells: Sequence[Cell]) -> bytes:
    """Return the blob of some cells."""
    names = [name for name, _ in cells]
    values = [value for _, value in cells]
    lengths = [_GONE if value is None else len(value) for value in values]
    return b"".join(
        [
            struct.pack(f">I{2 * len(cells)}I", len(cells), *map(len, names), *lengths),
            *names,
            *[value for value in values if value is not None],
        ]
    )


def decode(blob: bytes) -> list[Cell]:
    """Return the cells of a blob.

    Raises:
        DamagedBlobError: its lengths do not fit.
    """
    try:
        (count,) = _COUNT.unpack_from(blob)
        lengths = struct.unpack_from(f">{2 * count}I", blob, _COUNT.size)
    except struct.error:
        raise DamagedBlobError("its lengths are cut off") from None
    sizes = [*lengths[:count], *[0 if length == _GONE else length for length in lengths[count:]]]
    places = list(accumulate(sizes, initial=_COUNT.size + 8 * count))
    if places[-1] != len(blob):
        raise DamagedBlobError("its lengths do not fit")
    pieces: list[bytes | None] = [blob[start:end] for start, end in pairwise(places)]
    if _GONE in lengths[count:]:
        for index, length in enumerate(lengths[count:], count):
            if length == _GONE:
                pieces[index] = None
    return list(zip(pieces[:count], pieces[count:], strict=True))  # type: ignore[arg-type]  # names are bytes


def divided(cells: Sequence[Cell]) -> Iterator[bytes]:
    """Yield blobs of bounded size that hold `cells` in order; each holds one cell or more."""
    start = size = 0
    for index, (name, value) in enumerate(cells):
        size += len(name) + len(value or b"")
        if size >= BLOB:
            yield encode(cells[start : index + 1])
            start, size = index + 1, 0
    if start < len(cells):
        yield encode(cells[start:])
