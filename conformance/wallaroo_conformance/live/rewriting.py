"""Checkpoints written anew, as ``wallaroo checkpoint DIR --partitions M --to ENGINE`` does it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from wallaroo.topology import Application
from wallaroo.trace import Entity
from wallaroo.transport.identity import IDENTITY, read_identity
from wallaroo.transport.stored import open_stored, rewrite, stored_entities

OTHER = "reference"
"""The engine that goes on with another one's checkpoint; where that is itself, partitions change.
"""


def home_of(checkpoint: Path) -> str:
    """Return the name of the engine that a checkpoint belongs to."""
    return read_identity(checkpoint / IDENTITY).engine


def write_anew(
    old: Path, new: Path, engine: str, partitions: int, application: Application
) -> None:
    """Write a checkpoint anew for an engine.

    Raises:
        WallarooError: it cannot be.
    """
    identity = read_identity(old / IDENTITY)
    moved = replace(identity, engine=engine, partitions=partitions)
    rewrite(old, identity, new, moved, application=application)


def entities_in(checkpoint: Path) -> Sequence[Entity]:
    """Return the entities of a checkpoint.

    Raises:
        WallarooError: they cannot be read.
    """
    identity = read_identity(checkpoint / IDENTITY)
    state = open_stored(checkpoint, identity.engine).state()
    return stored_entities(state, identity.partitions)


def files_of(directory: Path) -> Mapping[str, bytes]:
    """Return the files of a checkpoint by their names in it."""
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in paths}
