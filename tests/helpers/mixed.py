"""Checkpoints into which a file of another one was moved (recover-3)."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

_OF_NO_CHECKPOINT = ("lock", "reserve")


def tree(directory: Path) -> Mapping[str, bytes]:
    """Return all files of a directory and what is in them."""
    paths = [path for path in directory.rglob("*") if path.is_file()]
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
        if ours.get(name) != data and Path(name).name not in _OF_NO_CHECKPOINT:
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(one, place)
            (place / name).write_bytes(data)
            yield name, place
