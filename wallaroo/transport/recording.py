"""A recorded run: its whole input log, kept for `wallaroo rerun` and `wallaroo explain`.

A recording has the layout of a checkpoint without an engine's part: an identity, a lock, and the
input log. A run writes it with ``--record``; with ``--checkpoint`` too, the files of the
checkpoint's log get second names in it (`wallaroo.transport.log_directory`).

To read one, or a checkpoint whose log is whole, changes nothing; a run may be using it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from wallaroo.errors import UsageError, WallarooError
from wallaroo.topology import Application
from wallaroo.transport.changed_topology import NOTHING_ACCEPTED, Accepted
from wallaroo.transport.checkpoint import INPUT, CheckpointDirectory
from wallaroo.transport.identity import (
    IDENTITY,
    CheckpointError,
    Identity,
    describe_topology,
    identify,
    read_identity,
    refuse_file,
    refuse_others,
    trust,
    write_identity,
)
from wallaroo.transport.input_log import InputLogError
from wallaroo.transport.log_directory import ends, read, runs_of
from wallaroo.transport.log_format import LoggedRun
from wallaroo.transport.private import make_private, told_as


class Recording:
    """The directory of ``--record``, locked by this run while it is open.

    Args:
        directory: the directory; if it is missing it is made, and only its owner can use it.
        identity: whose the input is: that of the run's checkpoint, or of one that it would have.
        application: what is run; its topology may be another than the checkpoint's.
        checkpoint: the directory of the run's checkpoint, with which a recording goes on; `None`:
            there is none, so a recording that has records is refused.
        accepted: whether another topology is accepted.

    Raises:
        CheckpointError: it cannot be written, others can write it, it is in use or damaged, or
            belongs to something else.
        UsageError: it is the checkpoint.
    """

    def __init__(
        self,
        directory: Path,
        identity: Identity,
        application: Application,
        *,
        checkpoint: Path | None,
        accepted: Accepted = NOTHING_ACCEPTED,
    ) -> None:
        self._accepted = accepted
        if checkpoint is not None and directory.absolute() == checkpoint.absolute():
            raise UsageError(
                f"--record and --checkpoint name one directory, {directory}. Take another one for "
                f"the recording, such as {directory}.recorded"
            )
        with told_as(CheckpointError, f"the recording {directory} cannot be written"):
            self._directory = CheckpointDirectory(directory, identity.engine)
            try:
                make_private(self.input_log)
                self._identify(application, identity, goes_on=checkpoint is not None)
            except BaseException:
                self.close()
                raise

    @property
    def input_log(self) -> Path:
        """The directory of the input log."""
        return self._directory.input_log

    def close(self) -> None:
        """Give up the lock."""
        self._directory.close()

    def _identify(self, application: Application, input_of: Identity, *, goes_on: bool) -> None:
        path = self._directory.directory / IDENTITY
        ours = replace(input_of, topology=describe_topology(application), runs=(), recording=True)
        theirs = None
        if not self._directory.is_new:
            theirs = identify(path, ours.engine, application, ours.partitions, recording=True)
        if theirs is not None and theirs.stamp.checkpoint == ours.stamp.checkpoint and goes_on:
            if theirs.topology != ours.topology:
                if not self._accepted.topology:
                    raise CheckpointError(
                        f"the recording {path.parent} belongs to another topology. Take another "
                        "directory, or go on with it with --accept-topology"
                    )
                write_identity(path, ours)
            return
        files, _ = read(self.input_log)
        if ends(files).following:
            raise CheckpointError(
                f"{path.parent} holds the recording of another run. Take another directory"
            )
        write_identity(path, ours)


class RecordedLog:
    """A whole input log on disk, of a recording or a checkpoint, to be read.

    Args:
        directory: what ``--record`` or ``--checkpoint`` named.
        whole: it must begin with the first record.

    Attributes:
        identity: whose it is.
        first: number of its first record.
        following: number after the last record.
        torn: what is wrong at its end, if an append was cut off there, as by a crash.

    Raises:
        WallarooError: there is no input log, others can write it, it is damaged, or its first
            records were deleted.
    """

    def __init__(self, directory: Path, *, whole: bool = True) -> None:
        refuse_file(directory)
        try:
            trust(directory)
            self.identity = read_identity(directory / IDENTITY)
            trust(directory / INPUT)
            self._files, torn = read(directory / INPUT)
            log = ends(self._files)
            refuse_others(directory, self.identity, log.stamps())
        except FileNotFoundError as error:
            raise UsageError(
                f"{directory} holds neither a recording nor a checkpoint: there is no "
                f"{error.filename}"
            ) from None
        except OSError as error:
            raise InputLogError(f"{error.filename} cannot be read: {error.strerror}") from error
        if not self._files:
            raise WallarooError(f"{directory} holds no input log: {INPUT} has no files")
        self.first = self._files[0].first
        if whole and self.first:
            raise WallarooError(
                f"the input log in {directory} begins at record {self.first:,}: those before it "
                "were deleted when a checkpoint had their effect. Begin with its stored state: "
                f"--from {directory}. Or record a run from its beginning with: wallaroo run … "
                "--record DIR"
            )
        self.following = log.following
        self.torn = None if torn is None else f"{self._files[-1].path}: {torn}"

    def runs(self, start: int, until: int) -> Iterator[LoggedRun]:
        """Yield the records from number `start` to before `until`, one run for each block.

        Raises:
            InputLogError: a file was changed meanwhile.
        """
        return runs_of(self._files, start, until)
