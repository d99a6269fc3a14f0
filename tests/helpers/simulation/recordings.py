"""Runs an input log that is recorded: after every crash the recording has all that the log had."""

from __future__ import annotations

from pathlib import Path

from simulation.logs import MOST, PATH, SEGMENT, LogRun
from simulation.world import Broken
from wallaroo.transport.input_log import InputLog, InputLogError
from wallaroo.transport.log_directory import read
from wallaroo.transport.private import make_private

_KEPT = Path("/sim/recording/input")


class RecordingRun(LogRun):
    """A run of a plan."""

    def _opened(self) -> InputLog:
        try:
            make_private(_KEPT)
        except OSError as error:  # as `Recording` does
            raise InputLogError(str(error)) from error
        return InputLog.open(PATH, MOST, file_bytes=SEGMENT, recording=_KEPT)

    def _read(self) -> None:
        super()._read()
        last = self._log.next_sequence
        try:
            segments, _ = read(_KEPT)
            runs = [run for segment in segments for run in segment.runs(0, last)]
        except OSError as error:
            raise InputLogError(str(error)) from error
        except InputLogError as error:
            raise Broken(f"the recording cannot be read: {error}") from error
        found = [record for run in runs for record in run.records()]
        if found != self.held[:last]:
            raise Broken(f"the recording has {len(found)} of {last} records, or others")
