"""A run's directory: whose it is, Spark's checkpoint and the input log in it, and its lock.

A checkpoint means something to one application, one topology and one number of partitions. These
are written down beside it, in words, and another one is refused by name.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wallaroo.errors import WallarooError
from wallaroo.topology import Application, Sink, Source, Stateful, Step

_FORMAT = 1
_IDENTITY = "identity.json"
_LOCK = "lock"
_LOCK_TIMEOUT = 20.0  # seconds a run before us has to end: it may have been killed just now


class CheckpointError(WallarooError):
    """A checkpoint cannot be used; says which, why, and what to do."""


class Checkpoint:
    """A directory that is ours alone while it is open.

    Args:
        directory: made if it is not there.
        application: whose it is, or becomes.
        partitions: number of partitions; `None`: what it was made with, else `default_partitions`.
        default_partitions: for a new one.

    Attributes:
        partitions: number of partitions.
        lock: a descriptor that a child process may inherit: the directory is free only once that
            has ended too.

    Raises:
        CheckpointError: it cannot be written, is in use, or belongs to something else.
    """

    def __init__(
        self,
        directory: Path,
        application: Application,
        *,
        partitions: int | None,
        default_partitions: int,
    ) -> None:
        self.directory = directory
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self.lock = os.open(directory / _LOCK, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint {directory} cannot be written: {error.strerror}"
            ) from error
        try:
            self._take_lock()
            self.partitions = self._identify(application, partitions, default_partitions)
        except BaseException:
            self.close()
            raise

    @property
    def spark(self) -> Path:
        """Where Spark's part is."""
        return self.directory / "spark"

    @property
    def input_log(self) -> Path:
        """Where the input log is."""
        return self.directory / "input"

    def close(self) -> None:
        """Give up the lock."""
        if self.lock >= 0:
            os.close(self.lock)
            self.lock = -1

    def check_input(self, first_sequence: int) -> None:
        """Refuse a checkpoint that has lost what belongs to the rest of it.

        Args:
            first_sequence: of the input log that was found.

        Raises:
            CheckpointError: the input log was cut back and Spark's part is gone.
        """
        if first_sequence and not (self.spark / "metadata").exists():
            raise CheckpointError(
                f"the checkpoint {self.directory} is half deleted: its input begins at frame "
                f"{first_sequence}, and the state of what came before is gone. Restore "
                f"{self.spark}, or begin anew with an empty directory"
            )

    def _take_lock(self) -> None:
        deadline = time.monotonic() + _LOCK_TIMEOUT
        while True:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise CheckpointError(
                        f"the checkpoint {self.directory} is in use by another run"
                    ) from None
                time.sleep(0.05)
            else:
                return

    def _identify(
        self, application: Application, partitions: int | None, default_partitions: int
    ) -> int:
        path = self.directory / _IDENTITY
        ours = {
            "format": _FORMAT,
            "application": application.name,
            "topology": describe_topology(application),
            "partitions": partitions,
        }
        try:
            theirs = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            if self.spark.exists():
                raise CheckpointError(
                    f"{self.directory} holds a checkpoint without {_IDENTITY}, so nobody knows "
                    "whose it is; restore that file, or take an empty directory"
                ) from None
            ours["partitions"] = partitions or default_partitions
            self._write(path, ours)
            return partitions or default_partitions
        except (OSError, ValueError) as error:
            raise CheckpointError(f"{path} cannot be read: {error}") from error
        made_with: int = theirs["partitions"]
        if partitions is None:
            ours["partitions"] = made_with
        for what, difference in _differences(theirs, ours):
            raise CheckpointError(
                f"the checkpoint {self.directory} belongs to another {what}: {difference}. "
                "Take another directory, or run what it belongs to"
            )
        return made_with

    def _write(self, path: Path, identity: dict[str, Any]) -> None:
        partial = path.with_suffix(".new")
        try:
            with partial.open("w", encoding="utf-8") as file:
                json.dump(identity, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            partial.rename(path)
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint {self.directory} cannot be written: {error.strerror}"
            ) from error


def describe_topology(application: Application) -> list[str]:
    """Return what must not change between runs on one checkpoint, a line for each node."""
    lines = []
    for node in application.nodes:
        if isinstance(node, Source):
            lines.append(f"pipeline {node.pipeline!r}")
        elif isinstance(node, Sink):
            lines.append(f"pipeline {node.pipeline!r}, sink {node.index}")
        elif isinstance(node, Step):
            line = f"pipeline {node.pipeline!r}, step {node.position}: {node.name!r}"
            if isinstance(node.operation, Stateful):
                partition = application.partition[node.operation.partition]
                keyed = "64-bit keys" if partition.u64 else "keys"
                line += f" over state partition {partition.name!r} by {keyed}"
            lines.append(line)
    return lines


def _differences(theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if theirs["format"] != ours["format"]:
        yield "version", f"its format is {theirs['format']}, ours {ours['format']}"
    if theirs["application"] != ours["application"]:
        yield "application", f"{theirs['application']!r}, not {ours['application']!r}"
    if theirs["topology"] != ours["topology"]:
        gone = [line for line in theirs["topology"] if line not in ours["topology"]]
        new = [line for line in ours["topology"] if line not in theirs["topology"]]
        parts = [f"it has {gone[0]}"] if gone else []
        parts += [f"this one has {new[0]}"] if new else []
        yield "topology", "; ".join(parts) or "its steps stand in another order"
    if theirs["partitions"] != ours["partitions"]:
        yield "number of partitions", f"{theirs['partitions']}, not {ours['partitions']}"
