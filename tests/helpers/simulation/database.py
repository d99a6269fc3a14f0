"""SQLite, which is trusted to do a transaction or not: in memory, and a file's content at a commit.

What a crash can do is to come before a commit or after it. A commit under ``synchronous=FULL`` is
on the disk when it returns; under less it is there once the file is synced by another commit.
"""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from simulation.disk import File, Folder
from simulation.world import Crash

if TYPE_CHECKING:
    from simulation.machine import Machine


class Database(sqlite3.Connection):
    """A connection; the database is read from a file's content and written there."""

    _machine: Machine
    _file: File

    def attach(self, machine: Machine, file: File, folder: Folder) -> None:
        """Read the database."""
        self._machine, self._file, self._folder = machine, file, folder
        self._life = machine.world.life
        self._full = True
        if file.data:
            self.deserialize(bytes(file.data))

    def execute(self, sql: str, *arguments: Any) -> sqlite3.Cursor:
        """Run a statement; a commit among them is noticed."""
        self._machine.world.call(f"sql {sql.split(maxsplit=1)[0]}")
        before = self.in_transaction
        words = sql.lower().replace("=", " ").split()
        if words[:2] == ["pragma", "synchronous"] and len(words) > 2:
            self._full = words[2] in ("full", "extra", "2", "3")
        ends = words[0] in ("commit", "end")
        if ends:
            self._may_fail()
        cursor = super().execute(sql, *arguments)
        done = not self.in_transaction and (before or self.isolation_level is None)
        if done and words[0] not in ("rollback", "select", "pragma"):
            self._committed()
        return cursor

    def close(self) -> None:
        """Close; an open transaction is rolled back."""
        super().close()

    def _may_fail(self) -> None:
        full = self._machine.disk.free() == 0
        self._machine.troubled = self._machine.troubled or full
        if self._machine.fails("commit", "") or full:
            super().rollback()
            raise sqlite3.OperationalError("database or disk is full")

    def _committed(self) -> None:
        if self._machine.world.dead or self._machine.world.life != self._life:
            raise Crash
        image = self.serialize()
        if image == self._file.data:
            return
        if self._full:
            self._file.data[:] = image
            self._file.settle()
            self._folder.sync()  # as SQLite does for the log that it makes there
        else:
            self._file.truncate(len(image))
            self._file.write(0, image)
