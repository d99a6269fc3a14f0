"""A run's checkpoint directory, of every engine: its owner, its identity, one run at a time.

It holds an identity (`wallaroo.transport.identity`), a lock, the input log, and the engine's own
part. A checkpoint belongs to one engine, one application, one topology and one number of
partitions. A run with another one is refused, and the error says what differs. State is unpickled
from it, which can run any code. So only its owner may use it, and a directory that others can write
is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import time
from pathlib import Path

from wallaroo.errors import UsageError
from wallaroo.topology import Application
from wallaroo.transport.forks import in_child
from wallaroo.transport.identity import IDENTITY, CheckpointError, identify, write_identity
from wallaroo.transport.private import make_private, open_to_others, opener

LOCK = "lock"
"""The file in a checkpoint's directory that a run keeps locked."""
INPUT = "input"
"""The directory of the input log in it."""

_LONGEST_COUNT = 18  # digits
_LOCK_TIMEOUT = 20.0  # seconds to wait for the end of an earlier run that was just killed
_SAY_AFTER = 1.0  # seconds of this wait after which it is told

_log = logging.getLogger("wallaroo.transport")


class CheckpointDirectory:
    """A checkpoint's directory, locked by this run while it is open.

    Args:
        directory: the directory; if it is missing it is made, and only its owner can use it.
        own_part: name of the engine's own part in it.

    Attributes:
        directory: the directory.
        own_part: the path of the engine's own part.
        restarts: number of earlier runs that have used the directory.
        lock: a descriptor that a child process may inherit; the directory stays locked until the
            child has ended too.

    Raises:
        CheckpointError: others can write it, or it is in use.
        UsageError: it is a file.
        OSError: it cannot be made, locked or read.
    """

    def __init__(self, directory: Path, own_part: str) -> None:
        self.directory = directory
        self.own_part = directory / own_part
        self.lock = -1
        self.restarts = 0
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
            self._count()
            for part in (self.own_part, self.input_log):
                if part.is_dir():
                    trust(part)
                    part.chmod(0o700)  # earlier versions let others read it
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
        if self.own_part.exists():
            raise CheckpointError(
                f"{self.directory} holds a checkpoint without {IDENTITY}, so nobody knows whose "
                "it is; restore that file, or take an empty directory"
            )
        return True

    def identify(
        self,
        engine: str,
        application: Application,
        partitions: int | None,
        *,
        recording: bool = False,
    ) -> int:
        """Return the number of partitions of a checkpoint, or recording, that is not new.

        Raises:
            CheckpointError: its identity is damaged, or it belongs to something else.
        """
        path = self.directory / IDENTITY
        return identify(path, engine, application, partitions, recording=recording)

    def write_identity(
        self, engine: str, application: Application, partitions: int, *, recording: bool = False
    ) -> None:
        """Write the identity of a new checkpoint, or recording.

        Raises:
            CheckpointError: it cannot be written.
        """
        path = self.directory / IDENTITY
        write_identity(path, engine, application, partitions, recording=recording)

    def half_deleted(self, why: str, missing: Path) -> CheckpointError:
        """Return the error for a checkpoint of which a part is missing."""
        return CheckpointError(
            f"the checkpoint {self.directory} is half deleted: {why}. Restore {missing} from a "
            "copy, or begin anew with an empty directory"
        )

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

    def _count(self) -> None:
        """Count the runs, in the lock file; for figures only, so it need not survive everything."""
        text = os.pread(self.lock, _LONGEST_COUNT, 0)
        self.restarts = int(text) if text.isdigit() else 0
        with contextlib.suppress(OSError):  # no room on the disk
            os.pwrite(self.lock, str(self.restarts + 1).encode(), 0)

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


def refuse_file(directory: Path) -> None:
    """Refuse a file where a directory is meant.

    Raises:
        UsageError: it is a file.
    """
    if directory.is_file():
        raise UsageError(f"{directory} is a file; a checkpoint or a recording is a directory")


def trust(directory: Path) -> None:
    """Refuse a directory that others can write.

    Raises:
        CheckpointError: they can.
        OSError: it does not exist, or its permissions cannot be read.
    """
    if problem := open_to_others(directory):
        raise CheckpointError(
            f"the checkpoint cannot be trusted, since state is unpickled from it: {problem}"
        )
