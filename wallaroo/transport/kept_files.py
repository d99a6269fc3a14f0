"""The files of an input log that is kept whole: each has a second name, in another directory.

A file's two names are hard links, so its records are written and synced once. When the log drops
the file, the second name stays.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from wallaroo.transport.blocks import START
from wallaroo.transport.log_files import InputLogError
from wallaroo.transport.private import sync_directory
from wallaroo.transport.segment import Segment


class KeptFiles:
    """Where the files of an input log stay.

    Args:
        directory: where they stay; it exists.
        log: the log's own directory.
        segments: the log's files.

    Attributes:
        in_place: it is the log's own directory, where files stay if nobody deletes them.

    Raises:
        InputLogError: other records are there, or some that the log has dropped are not.
        OSError: the files cannot be given a name there.
    """

    def __init__(self, directory: Path, log: Path, segments: Sequence[Segment]) -> None:
        self._directory = directory
        self.in_place = directory.samefile(log)
        if self.in_place:
            return
        first = segments[0]
        known = self._target(first).exists()
        if first.first and not known:
            raise InputLogError(
                f"the records before {first.first} are neither in the input log {log} nor in "
                f"{directory}, so they cannot be recorded. Begin anew with an empty checkpoint, or "
                "run without --record"
            )
        try:
            for segment in segments:
                self._link(segment)
            sync_directory(directory)
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise InputLogError(
                    f"{directory} is on another file system than the input log {log}, which is "
                    "recorded by hard links. Take a directory beside the checkpoint"
                ) from error
            raise

    def add(self, segment: Segment) -> None:
        """Give a new file its second name, which survives a power failure.

        Raises:
            OSError: it cannot.
        """
        if not self.in_place:
            # An attempt before may have left a file of that name, without records.
            self._target(segment).unlink(missing_ok=True)
            os.link(segment.path, self._target(segment))
            sync_directory(self._directory)

    def _link(self, segment: Segment) -> None:
        target = self._target(segment)
        if target.exists() and not target.samefile(segment.path):
            if target.stat().st_size > START:
                raise InputLogError(
                    f"{target} is not the file {segment.path}: {self._directory} holds the records "
                    "of another run. Take another directory"
                )
            target.unlink()  # a crash left it unfinished
        if not target.exists():
            os.link(segment.path, target)

    def _target(self, segment: Segment) -> Path:
        return self._directory / segment.path.name
