"""Checkpoints into which a file of another one was moved (recover-3)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path


def tree(directory: Path) -> Mapping[str, bytes]:
    """Return all files of a checkpoint and what is in them, but the lock, which counts runs."""
    paths = [path for path in directory.rglob("*") if path.is_file() and path.name != "lock"]
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(paths)}


def mixtures(one: Path, other: Path, place: Path) -> Iterator[tuple[str, Path]]:
    """Yield copies of a checkpoint in which one file is another's, with the file's name.

    Args:
        one: the checkpoint.
        other: where the files are from, all that are not alike.
        place: where the copies are made; each replaces the one before.
    """
    ours = tree(one)
    for name, data in tree(other).items():
        if ours.get(name) != data and Path(name).name != "reserve":
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(one, place)
            (place / name).write_bytes(data)
            yield name, place
