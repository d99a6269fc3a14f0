"""A run's checkpoint directory with Spark's part in it (`wallaroo.transport.checkpoint`)."""

from __future__ import annotations

from pathlib import Path

from wallaroo.topology import Application
from wallaroo.transport.checkpoint import CheckpointDirectory
from wallaroo.transport.identity import IDENTITY, CheckpointError, damaged
from wallaroo.transport.private import make_private
from wallaroo_spark.live.spark_part import read_spark_part

RESUME = "resume"
"""The file of what a restart has to know."""
ENGINE = "spark"


class Checkpoint(CheckpointDirectory):
    """A checkpoint's directory, locked by this run while it is open.

    Args:
        directory: the directory; if it is missing it is made, and only its owner can use it.
        application: the application it belongs to.
        partitions: number of partitions; `None`: the number it was made with, or for a new one
            `default_partitions`.
        default_partitions: number of partitions of a new checkpoint.

    Attributes:
        partitions: number of partitions.

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
        try:
            super().__init__(directory, ENGINE)
            self._spark_part = read_spark_part(self.spark)
            if self._spark_part.planned and not any(self.input_log.glob("*.log")):
                # Refused before an empty log is made: a copy that is restored would mix with it.
                raise self._ends_before(0)
            self.partitions = self._identified(application, partitions, default_partitions)
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
        return self.own_part

    @property
    def resume(self) -> Path:
        """The file that says how things stood."""
        return self.directory / RESUME

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
            raise self.half_deleted(
                f"its input begins at frame {first_sequence}, and Spark has committed those before "
                f"{committed} only",
                self.spark,
            )
        if next_sequence < planned:
            raise self._ends_before(next_sequence)

    def check_new(self, missing: Path) -> None:
        """Refuse a checkpoint that lacks a part which it must have once Spark has committed.

        Raises:
            CheckpointError: Spark has.
        """
        if self._spark_part.committed:
            raise self.half_deleted(f"{missing.name} is missing", missing)

    def _ends_before(self, next_sequence: int) -> CheckpointError:
        return self.half_deleted(
            f"its input ends before frame {next_sequence}, and Spark has been given those before "
            f"{self._spark_part.planned}",
            self.input_log,
        )

    def _identified(
        self, application: Application, partitions: int | None, default_partitions: int
    ) -> int:
        if self.is_new:
            self.write_identity(ENGINE, application, partitions or default_partitions)
            return partitions or default_partitions
        found = self.identify(ENGINE, application, partitions)
        made_with = self._spark_part.partitions
        if made_with not in (None, found):
            raise damaged(
                self.directory / IDENTITY,
                f"it says {found} partitions, and Spark's part has {made_with}",
            )
        return found
