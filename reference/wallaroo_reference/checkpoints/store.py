"""The file of a checkpoint: an SQLite database of blobs of cells, and a head.

One transaction adds the blobs of a checkpoint, deletes those that no longer count, and replaces the
head, which says what counts. So after a crash the file holds the earlier checkpoint or the new one,
whole. If a cell is in several blobs, the last of them counts.

Every record has a checksum, and the head says which blobs there must be. What SQLite's journal
holds is put into the file itself before `write` returns: records may then be dropped from the input
log without depending on the journal.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import struct
import tempfile
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from wallaroo.transport.checkpoint import unused
from wallaroo.transport.identity import CheckpointError, damaged
from wallaroo.transport.private import make_private, opener, refuse_irregular, sync_directory
from wallaroo.transport.stamps import Stamp, from_json
from wallaroo_reference.checkpoints.blobs import Cell, DamagedBlobError, decode
from wallaroo_reference.checkpoints.head import (
    DamagedHeadError,
    Head,
    OtherFormatError,
    head_from,
)

FILE: Final = "state.db"

_TABLES = (
    "CREATE TABLE stamp (id INTEGER PRIMARY KEY CHECK (id = 1), checksum INTEGER, data TEXT)",
    "CREATE TABLE head (id INTEGER PRIMARY KEY CHECK (id = 1), checksum INTEGER, data TEXT)",
    "CREATE TABLE blob (number INTEGER PRIMARY KEY, cells INTEGER, checksum INTEGER, data BLOB)",
)
_NUMBERS = struct.Struct(">QI")
_PATIENCE = 5.0  # seconds to wait for a reader
_DAMAGE = (  # what SQLite says of a file in which a table, a page or an end is not as it was
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CORRUPT,
    sqlite3.SQLITE_NOTADB,
)


class StateFile:
    """A checkpoint's file. One thread at a time may use it.

    Args:
        directory: the engine's own part of a checkpoint; it must exist.
        read_only: only read, and change no file, also not one of SQLite's own; a run may be
            writing. If none is, none can begin meanwhile.
        alone: only read, and the caller knows that no run is writing. A file is changed only if a
            run was killed while SQLite's journal held something.

    Attributes:
        path: the file.

    Raises:
        CheckpointError: the file is damaged.
        sqlite3.Error: it cannot be opened.
    """

    def __init__(self, directory: Path, *, read_only: bool = False, alone: bool = False) -> None:
        self.path = directory / FILE
        try:
            for file in directory.glob(f"{FILE}*"):
                refuse_irregular(file)
        except OSError as error:
            raise CheckpointError(f"{error.filename} cannot be read: {error.strerror}") from error
        with contextlib.ExitStack() as up, self._readable():
            path, mode = self.path, "rw"
            if read_only or alone:
                mode = "ro"  # a run that is writing has made the files that SQLite wants beside it
                alone = alone or up.enter_context(unused(directory.parent))
                if alone and not _in_journal(self.path):
                    mode += "&immutable=1"  # else SQLite makes a file beside it
                elif alone and read_only:
                    path, mode = up.enter_context(_copied(self.path)), "rw"
            self._database = sqlite3.connect(
                f"{path.resolve().as_uri()}?mode={mode}",
                uri=True,
                isolation_level=None,
                check_same_thread=False,
                timeout=_PATIENCE,
            )
            up.callback(self._database.close)
            if not mode.startswith("ro") and path == self.path:
                _prepare(self._database)
                sync_directory(directory)  # the file may have got its name just before a kill
            self._up = up.pop_all()

    @classmethod
    def create(cls, directory: Path, stamp: Stamp) -> StateFile:
        """Make the file of a new checkpoint, for its owner alone, and open it.

        Args:
            directory: the engine's own part of the checkpoint.
            stamp: whose it is.

        Raises:
            CheckpointError: it cannot be made.
        """
        path = directory / FILE
        try:
            make_private(directory)
            partial = path.with_suffix(".new")
            for old in (partial, *directory.glob(f"{partial.name}-*")):
                old.unlink(missing_ok=True)
            with open(partial, "wb", opener=opener):  # SQLite would make it with the umask
                pass
            database = sqlite3.connect(partial, isolation_level=None)
            with contextlib.closing(database):
                _prepare(database)
                for table in _TABLES:
                    database.execute(table)
                _write_stamp(database, stamp)
            partial.rename(path)
            return cls(directory)
        except (OSError, sqlite3.Error) as error:
            raise CheckpointError(
                f"the checkpoint's file {path} cannot be made: {error}"
            ) from error

    def stamp(self) -> Stamp:
        """Return whose the file is.

        Raises:
            CheckpointError: it is damaged.
        """
        with self._readable():
            rows = self._database.execute("SELECT checksum, data FROM stamp").fetchall()
        try:
            ((checksum, text),) = rows
            if not isinstance(text, str) or zlib.crc32(text.encode()) != checksum:
                raise ValueError("the checksum of its stamp does not fit")
            return from_json(json.loads(text))
        except ValueError as error:
            raise damaged(self.path, str(error)) from error

    def write_stamp(self, stamp: Stamp) -> None:
        """Write whose the file is; it is on the disk when this returns.

        Raises:
            sqlite3.Error: it cannot be written.
        """
        _write_stamp(self._database, stamp)
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def head(self) -> Head | None:
        """Return the head; `None`: there was no checkpoint yet.

        Raises:
            CheckpointError: it is damaged, or of another format.
        """
        with self._readable():
            rows = self._database.execute("SELECT checksum, data FROM head").fetchall()
        if not rows:
            return None
        ((checksum, text),) = rows
        try:
            if not isinstance(text, str) or zlib.crc32(text.encode()) != checksum:
                raise DamagedHeadError("its checksum does not fit")
            return head_from(text)
        except OtherFormatError as error:
            raise CheckpointError(
                f"the checkpoint's file {self.path} belongs to another version: {error}. "
                "Take another directory, or run that version"
            ) from error
        except ValueError as error:
            raise damaged(self.path, f"in its head, {error}") from error

    def cells(self, head: Head) -> Generator[tuple[int, list[Cell]], None, None]:
        """Yield the cells of each blob that counts, the newest first, with its place in `head`.

        Raises:
            CheckpointError: a blob is damaged or missing.
        """
        expected = head.next_blob - 1
        with self._readable():
            rows = self._database.execute(
                "SELECT number, cells, checksum, data FROM blob "
                "WHERE number BETWEEN ? AND ? ORDER BY number DESC",
                (head.first_blob, expected),
            )
            for number, cells, checksum, data in rows:
                if number != expected:
                    break
                expected -= 1
                if not isinstance(data, bytes) or _checksum(number, cells, data) != checksum:
                    raise damaged(self.path, f"the checksum of blob {number} does not fit")
                try:
                    yield cells, decode(data)
                except DamagedBlobError as error:
                    raise damaged(self.path, f"in blob {number}, {error}") from error
        if expected != head.first_blob - 1:
            raise damaged(self.path, f"blob {expected} is missing")

    def size(self) -> int:
        """Return the bytes of the file and SQLite's journal."""
        files = [self.path, *self.path.parent.glob(f"{FILE}-wal")]
        return sum([file.stat().st_size for file in files])

    def check(self) -> None:
        """Have SQLite check its file.

        Raises:
            CheckpointError: it is damaged.
        """
        with self._readable():
            ((said, *_), *_) = self._database.execute("PRAGMA integrity_check(1)").fetchall()
        if said != "ok":
            raise damaged(self.path, f"SQLite says: {said}")

    def write(self, head: Head, blobs: Iterable[tuple[int, bytes]]) -> None:
        """Store a checkpoint, on the disk when this returns.

        Args:
            head: its head.
            blobs: those that are new, in order, up to `head.next_blob`, each with the place of its
                cells in `head.cells`.

        Raises:
            sqlite3.Error: it cannot be stored; the checkpoint before it is still valid.
        """
        text = head.to_json()
        rows = list(blobs)
        first = head.next_blob - len(rows)
        database = self._database
        database.execute("BEGIN IMMEDIATE")
        try:
            for number, (cells, data) in enumerate(rows, first):
                database.execute(
                    "INSERT INTO blob VALUES (?, ?, ?, ?)",
                    (number, cells, _checksum(number, cells, data), data),
                )
            database.execute("DELETE FROM blob WHERE number < ?", (head.first_blob,))
            database.execute(
                "INSERT OR REPLACE INTO head VALUES (1, ?, ?)", (zlib.crc32(text.encode()), text)
            )
            database.execute("COMMIT")
        except sqlite3.Error:
            with contextlib.suppress(sqlite3.Error):
                database.execute("ROLLBACK")
            raise
        database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file."""
        self._up.close()

    @contextlib.contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE:  # the rest says how
                raise damaged(self.path, f"SQLite says: {error}") from error
            raise CheckpointError(
                f"the checkpoint's file {self.path} cannot be read: {error}"
            ) from error


def _in_journal(path: Path) -> bool:
    """Whether SQLite's journal holds something that is not in the file yet."""
    return any(journal.stat().st_size for journal in path.parent.glob(f"{FILE}-wal"))


@contextlib.contextmanager
def _copied(path: Path) -> Iterator[Path]:
    """Yield a copy of the file and its journal, which SQLite puts into it."""
    with tempfile.TemporaryDirectory() as name:
        for part in path.parent.glob(f"{FILE}*"):
            shutil.copy(part, name)
        yield Path(name) / FILE


def _prepare(database: sqlite3.Connection) -> None:
    for setting in ("journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=0"):
        database.execute(f"PRAGMA {setting}")


def _write_stamp(database: sqlite3.Connection, stamp: Stamp) -> None:
    text = json.dumps(stamp)
    database.execute(
        "INSERT OR REPLACE INTO stamp VALUES (1, ?, ?)", (zlib.crc32(text.encode()), text)
    )


def _checksum(number: Any, cells: Any, data: bytes) -> int:
    try:
        return zlib.crc32(data, zlib.crc32(_NUMBERS.pack(number, cells)))
    except struct.error:  # a damaged row
        return -1


def latest(
    blobs: Iterable[tuple[int, Sequence[Cell]]], count: int
) -> Iterator[tuple[int, list[tuple[bytes, bytes]]]]:
    """Yield the cells that there are, some at a time, with their place in the head.

    Args:
        blobs: as `StateFile.cells` yields them: of several cells of one name, the first counts.
        count: the number of places.

    Raises:
        IndexError: a blob has another place.
    """
    seen: list[set[bytes]] = [set() for _ in range(count)]
    for place, cells in blobs:
        known, names = seen[place], [name for name, _ in cells]
        fresh = cells if known.isdisjoint(names) else [it for it in cells if it[0] not in known]
        known.update(names)
        yield place, [it for it in fresh if it[1] is not None]  # type: ignore[misc]  # so no None
