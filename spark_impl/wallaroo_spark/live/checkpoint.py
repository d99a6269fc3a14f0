"""A run's checkpoint directory with Spark's part in it (`wallaroo.transport.checkpoint`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from wallaroo.overriding import override
from wallaroo.topology import Application
from wallaroo.transport.checkpoint import CheckpointDirectory
from wallaroo.transport.identity import IDENTITY, CheckpointError, Identity, damaged
from wallaroo.transport.log_directory import LogEnds
from wallaroo.transport.private import make_private, told_as
from wallaroo.transport.stamps import Stamp
from wallaroo_spark.live.layout import LAYOUT, layout_of, write_layout
from wallaroo_spark.live.offset_log import RECORDS, OffsetLog
from wallaroo_spark.live.remote import Remote
from wallaroo_spark.live.spark_part import (
    clear_unbegun,
    read_spark_part,
    refuse_irregular_files,
    settle,
    url_of,
)
from wallaroo_spark.live.stamped import read_stamped, stamp_again, write_stamped

RESUME = "resume"
"""The file with what a restart has to know."""
SINKS = "sinks"
"""The file that says how many partitions topics of Kafka sinks had at first."""
STAMP = "stamp"
"""The file in Spark's part that says whose it is."""
ENGINE = "spark"


class Checkpoint(CheckpointDirectory):
    """A checkpoint's directory, locked by this run while it is open.

    Args:
        directory: the directory; if it is missing it is made, and only its owner can use it.
        application: the application it belongs to.
        partitions: number of partitions; `None`: the number it was made with, or for a new one
            `default_partitions`.
        default_partitions: number of partitions of a new checkpoint.
        offsets_only: it needs no input log: all that it logs are offsets of Kafka.
        remote: it is at this URL, and the directory holds the copy of its small files.

    Attributes:
        identity: whose it is; it may have another topology than the application.
        partitions: number of partitions.
        layout: what `begin` writes into the file of that name.
        offsets_only: Spark's offsets are its log. It has no input log, as a run that is recorded
            has one, or one with other sources.

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
        offsets_only: bool = False,
        remote: Remote | None = None,
    ) -> None:
        self._remote = remote
        with told_as(CheckpointError, f"the checkpoint {directory} cannot be written"):
            try:
                super().__init__(directory, ENGINE)
                refuse_irregular_files(self.spark)
                self._spark_part = read_spark_part(self.spark)
                self.layout = layout_of(application)
                self.identity = self._identified(application, partitions, default_partitions)
                self.partitions = self.identity.partitions
                for part, stamp in stamps_in(directory):
                    self.refuse_other(part, stamp)
                no_input = not any(self.input_log.glob("*.log"))
                self.offsets_only = offsets_only and no_input
                if self.spark.exists() and no_input and not offsets_only:
                    # Before an empty log is made: a copy that is restored would mix with it.
                    raise self._without_input()
            except BaseException:
                self.close()
                raise

    @property
    def spark(self) -> Path:
        """The directory of Spark's part."""
        return self.own_part

    @property
    def spark_url(self) -> str:
        """Where Spark's part is."""
        if self._remote is not None:
            return f"{self._remote.url}/{ENGINE}"
        return url_of(self.spark)

    @property
    def resume(self) -> Path:
        """The file with what a restart has to know."""
        return self.directory / RESUME

    @property
    def sinks(self) -> Path:
        """The file that says how many partitions topics of Kafka sinks had at first."""
        return self.directory / SINKS

    @property
    def position(self) -> int:
        """The number of the first record whose effect Spark has not committed."""
        return self._spark_part.committed

    @contextlib.contextmanager
    @override
    def replaced(self) -> Iterator[Path]:
        with super().replaced() as new:
            yield new
        self._spark_part = read_spark_part(self.spark)

    @override
    def begin_run(self) -> Stamp:
        stamp = super().begin_run()
        self.publish()
        return stamp

    def publish(self) -> None:
        """Write to the checkpoint's URL, if it has one, what this run has changed.

        Raises:
            CheckpointError: it cannot be written.
        """
        if self._remote is not None:
            self._remote.publish()

    @override
    def size(self) -> int:
        return super().size() if self._remote is None else self._remote.size()

    def refuse_at_url(self, what: str) -> None:
        """Refuse to read or write all states of a checkpoint at a URL.

        Raises:
            CheckpointError: it is at a URL.
        """
        if self._remote is not None:
            raise CheckpointError(
                f"{what}, and only those of a checkpoint on a disk are read for that. Copy "
                f"{self._remote.url} to a directory (hadoop fs -get), run the application on the "
                "directory once, and copy it back"
            )

    def offset_log(self, *, outlives: bool) -> OffsetLog:
        """Return the log that stands in Spark's offsets.

        Args:
            outlives: the checkpoint outlives the run, so it has to be durable.

        Raises:
            CheckpointError: it cannot be read.
        """
        part = self._spark_part
        folder = self.spark / "offsets" if outlives and self._remote is None else None
        return OffsetLog.restored(folder, part.committed, part.offset)

    def refuse_unfinished(self) -> None:
        """Refuse to write Spark's part anew while its last micro-batch is in it alone.

        Raises:
            CheckpointError: Spark has not committed all that it has planned.
        """
        if self._spark_part.in_offsets_alone:
            raise self.unfinished_because("what is in it stands in Spark's part alone")

    @property
    def planned(self) -> int:
        """Spark has been given all records before this one."""
        return self._spark_part.planned

    @property
    def unfinished(self) -> bool:
        """Whether Spark has not committed all that it has planned: outputs may have left."""
        return self._spark_part.planned > self._spark_part.committed

    def unfinished_because(self, why: str) -> CheckpointError:
        """Return what is said of a change that has to wait for the last micro-batch."""
        return CheckpointError(
            f"the last micro-batch of {self.directory} is not committed, and {why}. Run the "
            "application as it was before on the checkpoint, and stop it in order; if it ends at a "
            "dead letter, with --on-error skip"
        )

    def check_input(self, log: LogEnds) -> None:
        """Refuse a checkpoint whose input log or Spark's part was deleted, or is another's.

        Call it before anything is received: otherwise new frames would get numbers that Spark has
        already processed.

        Raises:
            CheckpointError: the input log is another's, or begins after, or ends before, what Spark
                has processed.
        """
        for file, stamp in log.stamps():
            self.refuse_other(file, stamp)
        self.refuse_other_records(log, self._spark_part.committed, self._spark_part.planned)

    def begin(self) -> None:
        """Make Spark's part, and stamp all parts but the log, which is.

        What a run has left that died before its first micro-batch is deleted. Call it after the log
        is opened: so where Spark's part is, a log has been.

        Raises:
            CheckpointError: it cannot be made.
        """
        with told_as(CheckpointError, f"the checkpoint {self.directory} cannot be written"):
            if self._spark_part.partitions is None:
                clear_unbegun(self.spark)
                if self._remote is not None:
                    self._remote.clear_unbegun()
            make_private(self.input_log)
            make_private(self.spark)  # the files that Spark makes in it follow the umask
            settle(self.spark, self.spark_url)
            stamp = self.born
            write_stamped(self.spark / STAMP, stamp, None)
            write_layout(self.directory / LAYOUT, self.layout, stamp)
            stamp_again(self.resume, stamp)
            stamp_again(self.sinks, stamp)
            self.publish()
            self.all_stamped()
            self.publish()

    def check_new(self, missing: Path) -> None:
        """Refuse a checkpoint that lacks a part although Spark has committed something.

        Raises:
            CheckpointError: Spark has committed something.
        """
        if self._spark_part.committed:
            raise self.half_deleted(f"{missing.name} is missing")

    def _without_input(self) -> CheckpointError:
        if RECORDS in (self._spark_part.offset or {}):
            return CheckpointError(
                f"the log of {self.directory} stands in Spark's part, since all its sources were "
                "topics of Kafka. A run that is recorded, or has other sources, needs an input "
                "log: begin it with an empty directory"
            )
        return self.half_deleted("it has no input")

    def _identified(
        self, application: Application, partitions: int | None, default_partitions: int
    ) -> Identity:
        identity = self.identify(application, partitions, default=default_partitions)
        made_with = self._spark_part.partitions
        if made_with not in (None, identity.partitions):
            raise damaged(
                self.directory / IDENTITY,
                f"it says {identity.partitions} partitions, and Spark's part has {made_with}",
            )
        return identity


def stamps_in(directory: Path) -> Iterator[tuple[Path, Stamp]]:
    """Yield Spark's part of a checkpoint, and the files beside it, and whose they say they are.

    Raises:
        CheckpointError: one cannot be read or is damaged. A damaged layout is left out: each run
            writes it.
    """
    part = directory / ENGINE
    for path in (part / STAMP, directory / LAYOUT, directory / RESUME, directory / SINKS):
        try:
            yield path, read_stamped(path)[0]
        except FileNotFoundError:
            if path.parent == part and read_spark_part(part).partitions is not None:
                raise damaged(path, "it is missing") from None
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
        except ValueError as error:
            if path.name != LAYOUT:
                raise damaged(path, str(error)) from error
