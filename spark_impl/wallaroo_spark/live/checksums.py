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
    """Yield Spark's damaged files, each with the place of the first part that is damaged.

    A file that is missing is not found: nobody knows whether it is needed. A file that a run has
    just deleted, or is writing, or was writing when it was killed, counts as whole.

    Args:
        part: Spark's part of a checkpoint.

    Raises:
        OSError: a file cannot be read.
    """
    for sums in sorted(part.rglob(".*.crc")):
        path = sums.with_name(sums.name.removeprefix(".").removesuffix(".crc"))
        if path.suffix == ".tmp":
            continue
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
    sums_end, parts = len(told), -(-len(content) // size)
    if sums_end < _HEADER.size + 4 * parts:
        return None  # the run was killed while it wrote them
    for number, at in enumerate(range(0, len(content), size)):
        begin = _HEADER.size + 4 * number
        if struct.pack(">I", zlib.crc32(content[at : at + size])) != told[begin : begin + 4]:
            return at
    return None if sums_end == _HEADER.size + 4 * parts else len(content)
