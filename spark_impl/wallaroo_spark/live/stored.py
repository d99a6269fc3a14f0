"""The engine's part of a checkpoint, for `wallaroo checkpoint`; no JVM is started for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from wallaroo.errors import WallarooError
from wallaroo.keys import Key
from wallaroo.trace import Entity
from wallaroo.transport.stored import Overview
from wallaroo_spark.live.checkpoint import ENGINE, RESUME
from wallaroo_spark.live.resume import read_resume
from wallaroo_spark.live.spark_part import read_spark_part


class StoredOnSpark:
    """Spark's part of a checkpoint; see `wallaroo.transport.stored.StoredCheckpoint`.

    Args:
        directory: the checkpoint's directory.
    """

    def __init__(self, directory: Path) -> None:
        self._part = directory / ENGINE
        self._resume = directory / RESUME

    def overview(self) -> Overview:
        """See `StoredCheckpoint.overview`."""
        found = read_spark_part(self._part)
        files = [path.stat() for path in self._part.rglob("*") if path.is_file()]
        commits = self._part / "commits"
        done = [path.stat().st_mtime_ns for path in commits.glob("*") if path.name.isdecimal()]
        size = sum([file.st_size for file in files])
        return Overview(found.committed, max(done, default=None), {"state": size}, None)

    def entities(self) -> Iterator[Entity]:
        """Refuse: the states are in files of RocksDB, which only a running Spark can read.

        Raises:
            WallarooError: always.
        """
        raise WallarooError(
            f"the states in {self._part} are in files of RocksDB, which only a running Spark can "
            "read; wallaroo checkpoint shows those of the reference engine"
        )

    def verify(self) -> str:
        """See `StoredCheckpoint.verify`; Spark checks its own files when it reads them."""
        read_spark_part(self._part)
        read_resume(self._resume)
        return f"the states in {self._part}, which Spark checks when a run reads them"

    def migrate(self, target: Path, change: Callable[[str, Key, Any], Any]) -> int:
        """Refuse, as `entities` does.

        Raises:
            WallarooError: always.
        """
        raise WallarooError(
            f"the states in {self._part} are in files of RocksDB, which only a running Spark can "
            f"write: they cannot be migrated to {target}"
        )
