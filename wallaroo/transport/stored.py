"""A checkpoint on disk, as `wallaroo checkpoint` shows it, whichever engine has written it.

An engine whose checkpoints can be looked at has a method ``stored(directory)``, which returns a
`StoredCheckpoint`. Nothing is changed, and a run may be using the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from wallaroo.trace import Entity
from wallaroo.transport.input_log import InputLogError
from wallaroo.transport.log_files import read
from wallaroo.transport.migrating import Change


@dataclass(frozen=True)
class LogPart:
    """The input log of a checkpoint.

    Args:
        first: number of the first record that it holds.
        following: number after the last.
        size: bytes of its files.
        torn: what is wrong at its end, if an append was cut off there; a restart drops it.
    """

    first: int
    following: int
    size: int
    torn: str | None


def look_at_log(directory: Path) -> LogPart:
    """Return what an input log holds, after reading all of it.

    Raises:
        InputLogError: it is damaged.
    """
    try:
        segments, torn = read(directory)
    except OSError as error:
        raise InputLogError(
            f"the input log {directory} cannot be read: {error.strerror}"
        ) from error
    if not segments:
        return LogPart(0, 0, 0, None)
    size = sum([segment.size for segment in segments])
    said = None if torn is None else f"{segments[-1].path}: {torn}"
    return LogPart(segments[0].first, segments[-1].next, size, said)


@dataclass(frozen=True)
class Overview:
    """What a checkpoint holds.

    Args:
        position: number of the first record whose effect is not in the state.
        at: when the state was stored, in nanoseconds since 1970; `None`: never yet.
        sizes: bytes of its parts, by name.
        entities: their number by state partition; `None`: the engine cannot tell.
        windows: number of open windows' parts by step.
        outputs: number of outputs that came of the records before the position, by sink.
    """

    position: int
    at: int | None
    sizes: Mapping[str, int]
    entities: Mapping[str, int] | None
    windows: Mapping[str, int] = field(default_factory=dict)
    outputs: Mapping[str, int] = field(default_factory=dict)


class StoredCheckpoint(Protocol):
    """An engine's part of a checkpoint."""

    def position(self) -> int:
        """Return the number of the first record whose effect is not in the state.

        Raises:
            WallarooError: it is damaged.
        """

    def overview(self) -> Overview:
        """Return what it holds.

        Raises:
            WallarooError: it is damaged.
        """

    def entities(self) -> Iterator[Entity]:
        """Yield the entities, their states as canonical structure.

        Raises:
            WallarooError: it is damaged, or the engine cannot tell.
        """

    def verify(self) -> str:
        """Read everything, and return what only the engine itself can read; empty: nothing.

        Raises:
            WallarooError: something is damaged.
        """

    def migrate(self, target: Path, change: Change) -> int:
        """Write a new checkpoint whose states are what `change` makes of these.

        Args:
            target: a directory that does not exist.
            change: the user's function.

        Returns:
            The number of states.

        Raises:
            WallarooError: it cannot be written, or the engine cannot migrate.
        """
