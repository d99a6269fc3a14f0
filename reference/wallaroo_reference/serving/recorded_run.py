"""The input log of a run that is recorded and has no checkpoint."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from wallaroo.topology import Application
from wallaroo.transport.generators import LoggedSource
from wallaroo.transport.input_log import InputLog
from wallaroo.transport.recording import Recording
from wallaroo_reference.checkpoints.recovery import ENGINE, Entry


class RecordedRun:
    """A new recording. `close` it.

    Args:
        directory: where it is made.
        application: what is run.
        partitions: number of partitions.
        file_bytes: size of a file.

    Attributes:
        log: the input log; it is never full, and nothing of it is deleted.

    Raises:
        CheckpointError: it cannot be made there.
        InputLogError: its input log cannot be made.
    """

    def __init__(
        self, directory: Path, application: Application, *, partitions: int, file_bytes: int
    ) -> None:
        self._recording = Recording(directory, ENGINE, application, partitions, checkpoint=None)
        place = self._recording.input_log
        try:
            self.log = InputLog.open(place, sys.maxsize, file_bytes=file_bytes, recording=place)
        except BaseException:
            self._recording.close()
            raise

    def sync(self) -> int:
        """Sync the log, and drop the files that are complete; see `InputLog.sync`.

        Raises:
            InputLogError: the system could not.
        """
        durable = self.log.sync()
        self.log.drop_before(durable)
        return durable

    def later(self) -> Iterator[Entry]:
        """Yield nothing: there was no run before this one."""
        return iter(())

    def generators(self) -> Mapping[str, LoggedSource]:
        """Return nothing: every generator begins."""
        return {}

    def close(self) -> None:
        """Close the log, and give up the lock."""
        self.log.close()
        self._recording.close()
