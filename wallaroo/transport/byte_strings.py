"""Many byte strings in one piece: payloads of a block of an input log, outputs for a sink.

An object for each costs more than all else that is done with them on their way from the log to a
worker, and from a worker to a peer.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import overload

from wallaroo.overriding import override


class ByteStrings(Sequence[bytes]):
    """Byte strings, none of which is cut out before it is asked for.

    Args:
        lengths: of each, in bytes; 4 bytes for each (`"I"`).
        data: one behind the other.

    Attributes:
        lengths: as given.
        data: as given.
    """

    __slots__ = ("data", "lengths")

    def __init__(self, lengths: array[int], data: bytes) -> None:
        self.lengths = lengths
        self.data = data

    @classmethod
    def of(cls, strings: Sequence[bytes]) -> ByteStrings:
        """Return the same byte strings in one piece."""
        if isinstance(strings, ByteStrings):
            return strings
        return cls(array("I", map(len, strings)), b"".join(strings))

    @classmethod
    def from_table(cls, table: bytes, data: bytes) -> ByteStrings:
        """Return byte strings whose lengths stand in a table of big-endian numbers."""
        lengths = array("I", table)
        if sys.byteorder == "little":
            lengths.byteswap()
        return cls(lengths, data)

    @classmethod
    def joined(cls, parts: Sequence[ByteStrings]) -> ByteStrings:
        """Return the byte strings of several, in their order."""
        lengths = array("I", b"".join([part.lengths for part in parts]))
        return cls(lengths, b"".join([part.data for part in parts]))

    @property
    def size(self) -> int:
        """Number of bytes of all of them."""
        return len(self.data)

    def within(self, size: int) -> int:
        """Return how many lie in the first `size` bytes completely."""
        return bisect_right(list(accumulate(self.lengths)), size)

    @override
    def __len__(self) -> int:
        return len(self.lengths)

    @override
    def __iter__(self) -> Iterator[bytes]:
        data, places = self.data, accumulate(self.lengths, initial=0)
        return iter([data[start:stop] for start, stop in pairwise(places)])

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> ByteStrings: ...
    @override
    def __getitem__(self, at: int | slice) -> bytes | ByteStrings:
        """Return one, or those between two places; this takes time by the number before them."""
        if not isinstance(at, slice):
            at = range(len(self))[at]
            return self[at : at + 1].data
        start, stop, _ = at.indices(len(self))
        first, lengths = sum(self.lengths[:start]), self.lengths[start:stop]
        return ByteStrings(lengths, self.data[first : first + sum(lengths)])

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ByteStrings):
            return NotImplemented
        return (self.lengths, self.data) == (other.lengths, other.data)

    __hash__ = None  # type: ignore[assignment]  # equal by content, as lists are

    def __repr__(self) -> str:
        return f"ByteStrings.of({list(self)})"

    @override
    def __reduce__(self) -> tuple[type[ByteStrings], tuple[array[int], bytes]]:
        return ByteStrings, (self.lengths, self.data)
