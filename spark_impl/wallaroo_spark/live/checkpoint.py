"""A run's checkpoint directory: its identity, Spark's checkpoint, the input log, and a lock.

A checkpoint belongs to one application, one topology and one number of partitions. A run with
another one is refused, and the error says what differs. State is unpickled from it, which can run
any code. So only its owner may use it, and a directory that others can write is refused.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from wallaroo.topology import Application
from wallaroo.transport.private import make_private, open_to_others, opener
from wallaroo_spark.jvm.temporary import IDENTITY
from wallaroo_spark.live.identity import CheckpointError, identify, write_identity
from wallaroo_spark.live.spark_part import read_spark_part

_LOCK = "lock"
_LOCK_TIMEOUT = 20.0  # seconds to wait for the end of an earlier run that was just killed


class Checkpoint:
    """A checkpoint's directory, locked by this run while it is open.

    Args:
        directory: the directory; if it is missing it is made, and only its owner can use it.
        application: the application it belongs to.
        partitions: number of partitions; `None`: the number it was made with, or for a new one
            `default_partitions`.
        default_partitions: number of partitions of a new checkpoint.

    Attributes:
        partitions: number of partitions.
        lock: a descriptor that a child process may inherit; the directory stays locked until the
            child has ended too.

    Raises:
        CheckpointError: it cannot be written, others can write it, it is in use, damaged, or
            belongs to something else.
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
        self.lock = -1
        try:
            make_private(directory)
            _trust(directory)
            self.lock = opener(str(directory / _LOCK), os.O_RDWR | os.O_CREAT)
            self._take_lock()
            for part in (self.spark, self.input_log):
                if part.exists():
                    _trust(part)
                    part.chmod(0o700)  # earlier versions let others read it
            self._spark_part = read_spark_part(self.spark)
            if self._spark_part.planned and not any(self.input_log.glob("*.log")):
                # Refused before an empty log is made: a copy that is restored would mix with it.
                raise self._ends_before(0)
            self.partitions = self._identify(application, partitions, default_partitions)
            make_private(self.spark)  # the files that Spark makes in it follow the umask
        except OSError as error:
            self.close()
            raise CheckpointError(
                f"the checkpoint {directory} cannot be written: {error.strerror}"
            ) from error
        except BaseException:
            self.close()
            raise

    @property
    def spark(self) -> Path:
        """The directory of Spark's part."""
        return self.directory / "spark"

    @property
    def input_log(self) -> Path:
        """The directory of the input log."""
        return self.directory / "input"

    @property
    def resume(self) -> Path:
        """The file that says how things stood."""
        return self.directory / "resume"

    def close(self) -> None:
        """Give up the lock."""
        if self.lock >= 0:
            os.close(self.lock)
            self.lock = -1

    def check_input(self, first_sequence: int, next_sequence: int) -> None:
        """Refuse a checkpoint whose input log or Spark's part was deleted.

        Call it before anything is received: otherwise new frames would get numbers that Spark has
        already processed.

        Args:
            first_sequence: the input log's first sequence.
            next_sequence: the input log's next sequence.

        Raises:
            CheckpointError: the input log begins after, or ends before, what Spark has processed.
        """
        committed, planned = self._spark_part.committed, self._spark_part.planned
        if first_sequence > committed:
            raise self._half_deleted(
                f"its input begins at frame {first_sequence}, and Spark has committed those before "
                f"{committed} only. Restore {self.spark}"
            )
        if next_sequence < planned:
            raise self._ends_before(next_sequence)

    def check_new(self, missing: Path) -> None:
        """Refuse a checkpoint that lacks a part which it must have once Spark has committed.

        Raises:
            CheckpointError: Spark has.
        """
        if self._spark_part.committed:
            raise self._half_deleted(f"{missing.name} is missing. Restore {missing}")

    def _ends_before(self, next_sequence: int) -> CheckpointError:
        return self._half_deleted(
            f"its input ends before frame {next_sequence}, and Spark has been given those before "
            f"{self._spark_part.planned}. Restore {self.input_log}"
        )

    def _half_deleted(self, why: str) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint {self.directory} is half deleted: {why} from a copy, or begin anew "
            "with an empty directory"
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
        path = self.directory / IDENTITY
        found = identify(path, application, partitions, self._spark_part.partitions)
        if found is not None:
            return found
        if self.spark.exists():
            raise CheckpointError(
                f"{self.directory} holds a checkpoint without {IDENTITY}, so nobody knows whose "
                "it is; restore that file, or take an empty directory"
            )
        write_identity(path, application, partitions or default_partitions)
        return partitions or default_partitions


def _trust(directory: Path) -> None:
    if problem := open_to_others(directory):
        raise CheckpointError(
            f"the checkpoint cannot be trusted, since state is unpickled from it: {problem}"
        )
