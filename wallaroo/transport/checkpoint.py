"""A run's checkpoint directory, of every engine: its owner, its identity, one run at a time.

It holds an identity (`wallaroo.transport.identity`), a lock, the input log, and the engine's own
part.

The parts of a checkpoint carry stamps (`wallaroo.transport.stamps`), and a part that does not
belong is refused (recover-3). A run that begins writes its stamp into all of them, one after the
other, and may be killed between any two. So the identity lists the runs whose stamps a part may
carry: first those that were found and the new one, and in the end the new one alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from wallaroo.topology import Application
from wallaroo.transport.identity import (
    IDENTITY,
    RESTORE,
    CheckpointError,
    Identity,
    describe_topology,
    identify,
    identity_of,
    refuse_file,
    trust,
    write_identity,
)
from wallaroo.transport.log_directory import LogEnds
from wallaroo.transport.private import make_private, opener, sync_directory
from wallaroo.transport.stamps import Stamp, born
from wallaroo.transport.threads import in_child

REPLACING = "replacing"
"""A directory in it with parts that are to replace those of their names."""

LOCK = "lock"
"""The file in a checkpoint's directory that a run keeps locked."""
INPUT = "input"
"""The directory of the input log in it."""

_LOCK_TIMEOUT = 20.0  # seconds to wait for the end of an earlier run that was just killed
_SAY_AFTER = 1.0  # seconds of this wait after which it is told

_log = logging.getLogger("wallaroo.transport")


class CheckpointDirectory:
    """A checkpoint's directory, locked by this run while it is open.

    Args:
        directory: the directory; if it is missing it is made, and only its owner can use it.
        engine: the engine that uses it; its own part in it has that name.

    Attributes:
        directory: the directory.
        own_part: the path of the engine's own part.
        lock: a descriptor that a child process may inherit; the directory stays locked until the
            child has ended too.

    Raises:
        CheckpointError: others can write it, or it is in use.
        UsageError: it is a file.
        OSError: it cannot be made, locked or read.
    """

    def __init__(self, directory: Path, engine: str) -> None:
        self.directory = directory
        self.own_part = directory / engine
        self.lock = -1
        self._engine = engine
        self._identity: Identity
        self._topology: list[str]
        self._found: set[str] = set()  # what the runs drew that wrote the parts
        try:
            try:
                make_private(directory)
            except FileExistsError:
                refuse_file(directory)
                raise
            trust(directory)
            self.lock = opener(str(directory / LOCK), os.O_RDWR | os.O_CREAT)
            in_child(self.close)
            self._take_lock()
            self._replace()
            for part in (self.own_part, self.input_log):
                if part.is_dir():
                    trust(part)
        except BaseException:
            self.close()
            raise

    @property
    def input_log(self) -> Path:
        """The directory of the input log."""
        return self.directory / INPUT

    @property
    def is_new(self) -> bool:
        """Whether it is empty, so that it belongs to no application yet.

        Raises:
            CheckpointError: there is something in it.
        """
        if (self.directory / IDENTITY).exists():
            return False
        if self.own_part.exists() or any(self.input_log.glob("*.log")):
            raise CheckpointError(
                f"{self.directory} holds a checkpoint without {IDENTITY}, so nobody knows whose "
                "it is; restore that file, or take an empty directory"
            )
        return True

    @property
    def born(self) -> Stamp:
        """A stamp of the checkpoint, once it is identified."""
        return self._identity.stamp

    @property
    def restarts(self) -> int:
        """Number of earlier runs on the checkpoint, once a run has begun."""
        return self._identity.stamp.number - 1

    def identify(
        self, application: Application, partitions: int | None, *, default: int = 1
    ) -> Identity:
        """Return whose the checkpoint is, which may have another topology; nothing is written.

        Args:
            application: the application that wants to use it.
            partitions: the number that is asked for; `None`: what it was made with.
            default: the number of a new one where none is asked for.

        Raises:
            CheckpointError: its identity is damaged or missing, or it belongs to something else.
        """
        self._topology = describe_topology(application)
        if self.is_new:
            self._identity = identity_of(self._engine, application, partitions or default, born())
        else:
            path = self.directory / IDENTITY
            self._identity = identify(path, self._engine, application, partitions)
        return self._identity

    def refuse_other(self, part: Path, stamp: Stamp) -> None:
        """Refuse a part that does not belong to this checkpoint (recover-3).

        Raises:
            CheckpointError: it does not.
        """
        self._identity.refuse_other(part, stamp)
        self._found.add(stamp.run)

    def begin_run(self) -> Stamp:
        """Write down that a run begins, after all parts were looked at; return its stamp.

        From now on the checkpoint has the topology of the application that it was identified for.

        Raises:
            CheckpointError: it cannot be written.
        """
        stamp = self._identity.stamp.next_run()
        runs = sorted({*self._found, stamp.run})
        self._identity = replace(self._identity, stamp=stamp, runs=runs, topology=self._topology)
        write_identity(self.directory / IDENTITY, self._identity)
        return stamp

    def all_stamped(self) -> None:
        """Write down that all parts carry the stamp that `begin_run` has returned.

        Raises:
            CheckpointError: it cannot be written.
        """
        self._identity = replace(self._identity, runs=[self._identity.stamp.run])
        write_identity(self.directory / IDENTITY, self._identity)

    @contextlib.contextmanager
    def replaced(self) -> Iterator[Path]:
        """Make the checkpoint one of the application, whose topology is another: all, or nothing.

        Yields:
            A directory. What the block puts there replaces the parts of these names.

        Raises:
            CheckpointError: it cannot be written.
        """
        partial = self.directory / f"{REPLACING}.new"
        identity = replace(self._identity, topology=self._topology)
        try:
            shutil.rmtree(partial, ignore_errors=True)
            make_private(partial)
            yield partial
            write_identity(partial / IDENTITY, identity)
            os.sync()  # all of it is on the disk before its name is
            partial.rename(self.directory / REPLACING)
            sync_directory(self.directory)
            self._replace()
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint {self.directory} cannot be written: {error.strerror}"
            ) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)  # it is still there if something failed
        self._identity = identity

    def refuse_other_records(self, log: LogEnds, processed: int, given: int) -> None:
        """Refuse an input log that is older or newer than the engine's part.

        Args:
            log: the log.
            processed: number of the first record whose effect is not stored.
            given: the engine has been given the records before this one.

        Raises:
            CheckpointError: it is.
        """
        if log.first > processed:
            raise self.half_deleted(
                f"its input begins at record {log.first}, and its state knows those before "
                f"{processed} only"
            )
        if log.following < given:
            raise self.half_deleted(
                f"its input ends before record {log.following}, and those before {given} have been "
                "processed"
            )

    def half_deleted(self, why: str) -> CheckpointError:
        """Return the error for a checkpoint of which a part is missing."""
        return CheckpointError(f"the checkpoint {self.directory} is half deleted: {why}. {RESTORE}")

    def close(self) -> None:
        """Give up the lock."""
        if self.lock >= 0:
            os.close(self.lock)
            self.lock = -1

    def size(self) -> int:
        """Return the bytes of the engine's own part; those that vanish meanwhile do not count."""
        found = 0
        for folder, _, names in os.walk(self.own_part):
            for name in names:
                with contextlib.suppress(OSError):
                    found += (Path(folder) / name).stat().st_size
        return found

    def _replace(self) -> None:
        """Put parts into their places, if this run, or one that was killed, has begun to."""
        replacing = self.directory / REPLACING
        shutil.rmtree(f"{replacing}.new", ignore_errors=True)  # of a run that was killed before
        if not replacing.is_dir():
            return
        for part in replacing.iterdir():
            place = self.directory / part.name
            if place.is_dir():
                shutil.rmtree(place)
            part.rename(place)
        sync_directory(self.directory)
        replacing.rmdir()
        sync_directory(self.directory)

    def _take_lock(self) -> None:
        began = time.monotonic()
        told = False
        while True:
            try:
                fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waited = time.monotonic() - began
                if waited > _LOCK_TIMEOUT:
                    raise CheckpointError(
                        f"the checkpoint {self.directory} is in use by another run. Stop that run, "
                        "or take another directory"
                    ) from None
                if waited >= _SAY_AFTER and not told:
                    told = True
                    _log.info(
                        "the checkpoint %s is in use by another run; waiting for its end, %.0f s "
                        "at most",
                        self.directory,
                        _LOCK_TIMEOUT,
                    )
                time.sleep(0.05)
            else:
                return


def say_where_it_begins(place: Path | str, next_sequence: int) -> None:
    """Log whether a run goes on from a checkpoint, and with which record.

    Args:
        place: the checkpoint's.
        next_sequence: number of the next record that it receives.
    """
    if next_sequence:
        _log.info("%s: resumed at record %s", place, f"{next_sequence:,}")
    else:
        _log.info("%s: a new checkpoint, without a record so far", place)


@contextlib.contextmanager
def unused(directory: Path) -> Iterator[bool]:
    """Yield whether no run uses a checkpoint; then none can begin while the block runs."""
    try:
        fd = os.open(directory / LOCK, os.O_RDONLY | os.O_NONBLOCK)  # it may be a FIFO
    except FileNotFoundError:
        yield True
        return
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(fd)
