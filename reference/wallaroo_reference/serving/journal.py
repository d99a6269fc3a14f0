"""Between the edges and the feeder: appends every record to the input log.

A record is logged before it is processed, and it is on disk soon after: one sync serves all records
that came while the one before it was being done. Connections are closed in order only once what
they sent is on disk (frame-4).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from wallaroo.kafka import KafkaSourceConfig
from wallaroo.overriding import override
from wallaroo.records import Single, Value, records_of
from wallaroo.transport.appending import Appender
from wallaroo.transport.edges import Edges
from wallaroo.transport.logged import to_log
from wallaroo.transport.threads import JobThread
from wallaroo_reference.checkpoints.on_disk import Frames, FromTopic, OnDisk
from wallaroo_reference.serving.checkpointing import Checkpoints
from wallaroo_reference.serving.feeder import Feeder, Intake
from wallaroo_reference.serving.outbox import Outbox

_Entry: TypeAlias = Frames | list[Single] | FromTopic


class Journal(Intake):
    """Logs records, and passes them on. Call its methods in the loop's thread.

    Args:
        on_disk: has the input log.
        feeder: gets the records.
        outbox: gets the number up to which records are on disk.
        edges: paused while the log takes nothing more.
        thread: has the log synced.
        topics: see `Feeder`.
        checkpoints: are made when the log is full, and make room in it; `None`: there are none.
        failed: called with an error's text if the log takes nothing any more, ever.
    """

    def __init__(
        self,
        on_disk: OnDisk,
        feeder: Feeder,
        outbox: Outbox,
        edges: Edges,
        thread: JobThread,
        topics: Mapping[str, KafkaSourceConfig],
        checkpoints: Checkpoints | None,
        *,
        failed: Callable[[str], None],
    ) -> None:
        self._on_disk = on_disk
        self._log = log = on_disk.log
        self._feeder = feeder
        self._outbox = outbox
        self._thread = thread
        self._topics = topics
        self._failed = failed
        self._checkpoints = checkpoints
        self._appender: Appender[_Entry] = Appender(
            self._append, edges, full=lambda: log.full, failed=failed
        )
        if checkpoints is not None:
            checkpoints.when_stored(self._appender.room_made)
        self._closings: deque[tuple[int, Callable[[], None]]] = deque()
        self._syncing = False

    @property
    def waiting(self) -> int:
        """Number of records that have been read and are not in the log."""
        return sum([_numbers(entry) for entry in self._appender.waiting])

    @property
    @override
    def unprocessed(self) -> int:
        return self._feeder.unprocessed + self.waiting

    @property
    def idle(self) -> bool:
        """Whether all that was received is on disk and its outputs are sent, or cannot be."""
        if self._appender.over:
            return True
        durable = self._log.durable_sequence == self._log.next_sequence
        return durable and not self._appender.waiting and self._outbox.empty

    @override
    def receive(self, source: str, payloads: Sequence[bytes], at: int) -> None:
        self._appender.take(Frames(source, payloads, at))

    @override
    def receive_records(self, records: Sequence[Single]) -> None:
        self._appender.take(list(records))

    @override
    def when_sequenced(self, close: Callable[[], None]) -> None:
        if not self._appender.over:
            self._closings.append((self._log.next_sequence + self.waiting, close))
            self._close_some()

    @override
    def receive_run(self, run: FromTopic) -> None:
        self._appender.take(run)

    def abandon(self) -> None:
        """Take nothing more."""
        self._appender.abandon()
        self._closings.clear()

    def _append(self, entry: _Entry) -> None:
        """Log some records, and pass them on."""
        log = self._log
        if isinstance(entry, Frames):
            log.append(entry.source, entry.payloads, entry.at)
            self._sync()
            self._feeder.receive(entry.source, entry.payloads, log.latest_at)
        elif isinstance(entry, FromTopic):
            self._log_run(entry)
            self._sync()
            self._feeder.receive_run(replace(entry, at=log.latest_at))
        else:
            latest = log.latest_at
            entry = [replace(record, at=(latest := max(latest, record.at))) for record in entry]
            entry = [to_log(record) if isinstance(record, Value) else record for record in entry]
            log.append_records(entry)
            self._sync()
            self._feeder.receive_records(entry)
        if log.full and self._checkpoints is not None:
            self._checkpoints.soon()

    def _log_run(self, entry: FromTopic) -> None:
        source, run, at = entry.source, entry.run, entry.at
        if not self._on_disk.whole:
            self._log.append_offsets(source, run.partition, run.first, run.last, at)
            return
        topic = self._topics[source].topic
        self._log.append_records(records_of(source, run, topic, at))

    def _sync(self) -> None:
        if not self._syncing:
            self._syncing = True
            self._thread.submit(self._on_disk.sync, self._synced)

    def _synced(self, result: int | Exception) -> None:
        self._syncing = False
        if self._appender.over:
            return
        if isinstance(result, Exception):
            self._appender.abandon()
            self._failed(str(result))
            self._feeder.abandon()  # what it would still make may not leave
            return
        self._outbox.release(result)
        self._close_some()
        self._feeder.sinks_have_room()
        if self._log.next_sequence > result:
            self._sync()

    def _close_some(self) -> None:
        while self._closings and self._closings[0][0] <= self._log.durable_sequence:
            self._closings.popleft()[1]()


def _numbers(entry: _Entry) -> int:
    if isinstance(entry, FromTopic):
        return entry.run.last + 1 - entry.run.first
    return len(entry.payloads if isinstance(entry, Frames) else entry)
