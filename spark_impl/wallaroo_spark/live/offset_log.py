"""The log of a run whose sources are all of Kafka: Spark's own offset log (kafka-1).

Spark writes the offset of a micro-batch to its checkpoint before the micro-batch begins. With it
stands what the micro-batch holds: runs of offsets, ticks, ends. So there is nothing else to write:
what is in no offset of Spark's has had no effect, and is planned anew after a crash; the records
themselves are in their topics. Spark does not sync its files, so that is done here (kafka-15).
"""

from __future__ import annotations

import base64
import os
import struct
import threading
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from wallaroo.records import Record
from wallaroo.transport.identity import RESTORE, CheckpointError
from wallaroo.transport.input_log import InputLog, InputLogError
from wallaroo.transport.log_format import (
    Group,
    LoggedRun,
    RecordKind,
    in_groups,
    offsets_group,
    offsets_of,
)
from wallaroo.transport.private import sync_directory

Log: TypeAlias = "InputLog | OffsetLog"
"""The log of a run."""

RECORDS = "records"
"""The entry of Spark's offset with the records of its micro-batch."""


class OffsetLog:
    """Records by number, as an `wallaroo.transport.input_log.InputLog` has them, in memory.

    Args:
        folder: where Spark writes its offsets; `None`: to a file system that keeps what is closed,
            or for this run alone.
        first: number of the first record.
        latest_at: arrival time of the record before it.

    Attributes:
        first_sequence: number of the first record that is held.
        next_sequence: number of the next record.
        latest_at: arrival time of the latest record, in nanoseconds since 1970.
        path: nowhere.
        written: when records were last made durable: Spark writes them.
        size: bytes on disk.
        full: whether to stop reading; who plans offsets is told how many there may be.
    """

    path = ""
    written: float | None = None
    size = 0
    full = False

    def __init__(self, folder: Path | None, first: int = 0, latest_at: int = 0) -> None:
        self._folder = folder
        self.first_sequence = self.next_sequence = first
        self.latest_at = latest_at
        self._runs: deque[LoggedRun] = deque()
        self._lock = threading.Lock()

    @classmethod
    def restored(
        cls, folder: Path | None, first: int, offset: Mapping[str, Any] | None
    ) -> OffsetLog:
        """Return the log that a run has left.

        Args:
            folder: as for the log.
            first: number of the first record that Spark has not committed.
            offset: what Spark has kept of the last micro-batch that it has planned.

        Raises:
            CheckpointError: it cannot be read.
        """
        offset = offset or {"next": first}
        try:
            planned = offset.get("planned", offset["next"])
            log = cls(folder, offset.get("first", first) if planned > first else first)
            if planned > first:
                for name, source, at, numbers, text in offset[RECORDS]:
                    kind, payload = RecordKind[name], base64.b64decode(text)
                    offsets = kind is RecordKind.OFFSETS
                    payloads = offsets_of(payload, numbers) if offsets else [payload]
                    log._append([(kind, source, at, payloads)])
            if log.next_sequence != planned:
                raise ValueError(f"it ends at {log.next_sequence}")
            log._runs, log.first_sequence = deque(log.runs(first, planned)), first
            log.latest_at = max(log.latest_at, int(offset.get("at", 0)))
        except (ValueError, KeyError, TypeError, struct.error) as error:
            raise CheckpointError(
                f"Spark's offset of the records up to {offset.get('next')} does not say what they "
                f"are ({error!r:.80}). {RESTORE}"
            ) from error
        return log

    @property
    def durable_sequence(self) -> int:
        """Records before this one may be planned; `sync` makes them durable then."""
        return self.next_sequence

    def append(self, source: str, payloads: Sequence[bytes], at: int = 0) -> int:
        """Refuse frames: there is no source of them."""
        raise AssertionError(f"{source}: {len(payloads)} frames at {at} in a log of offsets")

    def append_records(self, records: Iterable[Record]) -> int:
        """Add records, and return `next_sequence` after them."""
        return self._append(in_groups(records))

    def append_offsets(self, source: str, partition: int, first: int, last: int, at: int) -> int:
        """Add a run of offsets, and return `next_sequence` after it."""
        return self._append([offsets_group(source, partition, first, last, at)])

    def sync(self) -> int:
        """Make what Spark has planned durable, and return `durable_sequence`.

        Raises:
            InputLogError: the system could not.
        """
        if self._folder is None:
            return self.next_sequence
        try:
            offsets = [path for path in self._folder.iterdir() if path.name.isdecimal()]
            with max(offsets, key=lambda path: int(path.name)).open("rb") as last:
                os.fsync(last.fileno())
            sync_directory(self._folder)
        except OSError as error:
            raise InputLogError(f"{self._folder} cannot be synced: {error.strerror}") from error
        return self.next_sequence

    def runs(self, from_sequence: int, to_sequence: int) -> list[LoggedRun]:
        """Return the records with ``from_sequence <= sequence < to_sequence``, in runs."""
        with self._lock:
            runs = list(self._runs)
        parts = [
            run
            if from_sequence <= run.first and run.first + len(run.payloads) <= to_sequence
            else run.part(from_sequence, to_sequence)
            for run in runs
        ]
        return [part for part in parts if part.payloads]

    def end_within(
        self, from_sequence: int, *, max_bytes: int, max_records: int | None = None
    ) -> int:
        """Return where a micro-batch ends that begins there: behind all that is planned."""
        del max_bytes, max_records
        return max(from_sequence, self.next_sequence)

    def kept(self, start: int, end: int) -> dict[str, Any]:
        """Return what Spark is to keep of the records between a micro-batch's first and `end`."""
        runs = self.runs(start, end)
        forms = [
            [run.kind.name, run.source, run.at, len(run.payloads), _text(run.payloads[0])]
            for run in runs
        ]
        at = runs[-1].at if runs else self.latest_at
        return {"first": start, "at": at, RECORDS: forms}

    def drop_before(self, sequence: int) -> None:
        """Forget the records before one; a run is forgotten whole."""
        with self._lock:
            while self._runs and self._runs[0].first + len(self._runs[0].payloads) <= sequence:
                run = self._runs.popleft()
                self.first_sequence = run.first + len(run.payloads)

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _append(self, groups: Sequence[Group]) -> int:
        with self._lock:
            for kind, source, at, payloads in groups:
                self.latest_at = max(self.latest_at, at)
                # Each record but offsets stands alone, so that the first payload says all.
                alike = [payloads] if kind is RecordKind.OFFSETS else [[one] for one in payloads]
                for some in alike:
                    self._runs.append(
                        LoggedRun(source, self.next_sequence, some, kind, self.latest_at)
                    )
                    self.next_sequence += len(some)
            return self.next_sequence


def _text(payload: bytes) -> str:
    return base64.b64encode(payload).decode()
