"""Whether the files that Spark has written to a checkpoint are what they were.

Beside each file lies one with the checksums of its parts (Hadoop's format): the word ``crc`` and a
zero byte, the size of a part, and a CRC-32 for each part, as big-endian numbers. Spark compares
those of the files that it reads, and takes a file without checksums as it is.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

_HEADER = struct.Struct(">4sI")
_MAGIC = b"crc\0"


def damaged_files(part: Path) -> Iterator[tuple[Path, int]]:
    """Yield Spark's files that are damaged, and the byte from which on.

    A file that is missing is not found: nobody knows whether it is needed. A file that a run has
    just deleted, or is writing, counts as whole.

    Args:
        part: Spark's part of a checkpoint.
    """
    for sums in sorted(part.rglob(".*.crc")):
        path = sums.with_name(sums.name.removeprefix(".").removesuffix(".crc"))
        place = _first_damage(path, sums)
        if place is not None and _first_damage(path, sums) == place:
            yield path, place


def misfit(place: int) -> str:
    """Return what is said of a file that is damaged from byte `place` on."""
    return f"its checksum does not fit from byte {place} on"


def _first_damage(path: Path, sums: Path) -> int | None:
    try:
        told, content = sums.read_bytes(), path.read_bytes()
    except FileNotFoundError:
        return None
    if len(told) < _HEADER.size or not told.startswith(_MAGIC):
        return None  # Spark does not compare them either
    size = max(1, _HEADER.unpack_from(told)[1])
    expected = told[_HEADER.size :]
    for number, at in enumerate(range(0, len(content), size)):
        if struct.pack(">I", zlib.crc32(content[at : at + size])) != expected[4 * number :][:4]:
            return at
    parts = -(-len(content) // size)
    return None if len(expected) <= 4 * parts else len(content)
