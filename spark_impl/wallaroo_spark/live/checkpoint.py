"""A run's checkpoint directory with Spark's part in it (`wallaroo.transport.checkpoint`)."""

from __future__ import annotations

from pathlib import Path

from wallaroo.topology import Application
from wallaroo.transport.checkpoint import IDENTITY, CheckpointDirectory, CheckpointError, damaged
from wallaroo.transport.private import make_private
from wallaroo_spark.live.layout import LAYOUT, layout_of, write_layout
from wallaroo_spark.live.spark_part import clear_unbegun, read_spark_part, settle

RESUME = "resume"
"""The file with what a restart has to know."""
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
        layout: what `begin` writes into the file of that name.

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
            self.layout = layout_of(application)
            if self.spark.exists() and not any(self.input_log.glob("*.log")):
                # Refused before an empty log is made: a copy that is restored would mix with it.
                raise self.half_deleted("it has no input", self.input_log)
            self.partitions = self._identified(application, partitions, default_partitions)
        except OSError as error:
            self.close()
            raise self._not_written(error) from error
        except BaseException:
            self.close()
            raise

    @property
    def spark(self) -> Path:
        """The directory of Spark's part."""
        return self.own_part

    @property
    def resume(self) -> Path:
        """The file with what a restart has to know."""
        return self.directory / RESUME

    def check_input(self, first: int, following: int) -> None:
        """Refuse a checkpoint whose input log or Spark's part was deleted, or is another's.

        Call it before anything is received: otherwise new frames would get numbers that Spark has
        already processed.

        Args:
            first: sequence of the input log's first record.
            following: sequence behind its last record.

        Raises:
            CheckpointError: the input log begins after, or ends before, what Spark has processed.
        """
        committed, planned = self._spark_part.committed, self._spark_part.planned
        if first > committed:
            raise self.half_deleted(
                f"its input begins at frame {first}, but Spark has committed only those before "
                f"{committed}",
                self.spark,
            )
        if following < planned:
            raise self.half_deleted(
                f"its input ends before frame {following}, and Spark has been given those before "
                f"{planned}",
                self.input_log,
            )

    def begin(self) -> None:
        """Make Spark's part. What a run has left that died before its first micro-batch is deleted.

        Call it after the log is opened: so where Spark's part is, a log has been.

        Raises:
            CheckpointError: it cannot be made.
        """
        try:
            if self._spark_part.partitions is None:
                clear_unbegun(self.spark)
            make_private(self.spark)  # the files that Spark makes in it follow the umask
            settle(self.spark, self.spark)
            write_layout(self.directory / LAYOUT, self.layout)
        except OSError as error:
            raise self._not_written(error) from error

    def check_new(self, missing: Path) -> None:
        """Refuse a checkpoint that lacks a part although Spark has committed something.

        Raises:
            CheckpointError: Spark has committed something.
        """
        if self._spark_part.committed:
            raise self.half_deleted(f"{missing.name} is missing", missing)

    def _not_written(self, error: OSError) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint {self.directory} cannot be written: {error.strerror}"
        )

    def _identified(
        self, application: Application, partitions: int | None, default_partitions: int
    ) -> int:
        if self.is_new:
            self.write_identity(ENGINE, application, partitions or default_partitions)
            return partitions or default_partitions
        stored = self.identify(ENGINE, application, partitions)
        made_with = self._spark_part.partitions
        if made_with not in (None, stored):
            raise damaged(
                self.directory / IDENTITY,
                f"it says {stored} partitions, and Spark's part has {made_with}",
            )
        return stored
