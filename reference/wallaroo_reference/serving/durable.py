"""The parts of a run with an input log: journal, outbox, checkpoints, and their threads.

The way of a frame: it is appended to the input log and processed at once; its outputs wait in the
outbox until the log is synced; then they go to their sinks. From time to time a checkpoint stores
the state, and the log drops the records before it. A run that is only recorded makes no
checkpoints, and keeps its log.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence

from wallaroo.metrics.figures import DISK_IS_FULL, LOG_IS_FULL, KeptFigures
from wallaroo.metrics.registry import Registry
from wallaroo.records import Tick
from wallaroo.topology import SinkId
from wallaroo.transport.edges import Edges
from wallaroo.transport.kafka.edges import KafkaEdges
from wallaroo.transport.threads import JobThread, Post
from wallaroo_reference.checkpoints.on_disk import OnDisk
from wallaroo_reference.checkpoints.recovery import Recovery
from wallaroo_reference.machine import Machine
from wallaroo_reference.serving.checkpointing import Checkpoints
from wallaroo_reference.serving.feeder import Feeder
from wallaroo_reference.serving.journal import Journal
from wallaroo_reference.serving.outbox import Outbox

_LOOK = 0.002  # seconds between looks whether all is on disk

_WHY = {  # why sources are not read, by the reason of the pause; the first that holds is shown
    "disk": DISK_IS_FULL,
    "log": LOG_IS_FULL,
    "replay": "what an earlier run has received is processed first",
}


class Durable:
    """The durable side of a run. Methods belong to the loop's thread, unless they say otherwise.

    Args:
        on_disk: the open checkpoint, or what records a run without one; it is closed with this.
        machine: the machine, which has been restored.
        edges: the run's edges; paused until what the log holds is processed.
        post: calls a function in the loop's thread.
        interval: seconds from one checkpoint to the next.
        clock: returns the time, in nanoseconds since 1970.
        timed: see `Feeder`.
        failed: called with an error's text if the run cannot go on.
        kafka: the sources and sinks of Kafka.

    Attributes:
        journal: receives first.
        feeder: gets from the journal what is in the log.
    """

    def __init__(
        self,
        on_disk: OnDisk,
        machine: Machine,
        edges: Edges,
        post: Post,
        *,
        interval: float,
        clock: Callable[[], int],
        timed: bool,
        failed: Callable[[str], None],
        kafka: KafkaEdges,
    ) -> None:
        self._clock = clock
        self._on_disk = on_disk
        self._log = on_disk.log
        self._edges = edges
        self._up = contextlib.ExitStack()  # what is to be closed, the last opened first
        self._up.callback(on_disk.close)
        self._up.callback(kafka.close)
        to_log, to_store = [JobThread(f"wallaroo-{name}", post) for name in ("log", "checkpoint")]
        self._up.callback(to_store.close)
        self._up.callback(to_log.close)
        self._outbox = Outbox(
            edges.sinks,
            edges.dead_letters,
            lambda: machine.sequence,
            self._log.durable_sequence,
            failed,
        )
        self._up.callback(self._outbox.abandon)
        self._kafka = kafka
        self.feeder = Feeder(
            machine,
            self._outbox.sinks,
            self._outbox.add,
            edges,
            failed=failed,
            clock=clock,
            timed=timed,
            topics=kafka.topics,
            ticked=self._log_ticks,
        )
        self.feeder.logged.update(on_disk.logged())
        self._checkpoints: Checkpoints | None = None
        if isinstance(on_disk, Recovery):
            self._checkpoints = Checkpoints(
                on_disk,
                machine,
                self.feeder,
                kafka,
                self._outbox,
                edges,
                to_store,
                interval=interval,
                clock=clock,
                failed=failed,
                on_stored=self._log_was_shortened,
            )
            self._up.callback(self._checkpoints.abandon)
            self.feeder.restartable = True
        self.journal = Journal(
            self._log,
            self.feeder,
            self._outbox,
            edges,
            to_log,
            on_disk.sync,
            topics=kafka.topics,
            whole=on_disk.whole,
            failed=failed,
            log_is_full=self._log_is_full,
        )
        self._up.callback(self.journal.abandon)
        edges.pause("replay")

    @property
    def details(self) -> Mapping[str, int | float | str]:
        """Figures of the run's progress; in any thread."""
        if self._checkpoints is None:
            return {}
        return {"checkpoints": self._checkpoints.stored, "log_bytes": self._log.size}

    @property
    def made(self) -> Mapping[SinkId, int]:
        """Number of outputs made in this run, by sink."""
        return self._outbox.made()

    def copy_figures(self, metrics: Registry) -> None:
        """Copy the figures of the log and the checkpoint; in any thread."""
        log, checkpoints = self._log, self._checkpoints
        reasons = self._edges.paused_by
        metrics.held_back = next((why for reason, why in _WHY.items() if reason in reasons), "")
        kept = metrics.kept = metrics.kept or KeptFigures()
        kept.log_bytes = log.size
        kept.log_records = log.next_sequence - log.first_sequence
        kept.log_written = log.written
        if checkpoints is not None and isinstance(self._on_disk, Recovery):
            kept.checkpoint_written = checkpoints.written
            kept.checkpoint_bytes = self._on_disk.checkpoint.size()
            kept.restarts = self._on_disk.checkpoint.restarts

    def start(self, caught_up: Callable[[], None]) -> None:
        """Process what the log holds, in the running loop, then have the sources read.

        Args:
            caught_up: called in between.
        """

        def processed() -> None:
            self._edges.complete()
            self.journal.receive_records(self._kafka.go_on(self._clock()))
            caught_up()
            if self._log.full:
                self._edges.pause("log")
                self._log_is_full()
            self._edges.resume("replay")

        if self._checkpoints is not None:
            self._checkpoints.start()
        self.feeder.begin_with(self._on_disk.later(self._kafka), processed)

    async def idle(self) -> None:
        """Wait until all that was taken is on disk, and its outputs have left the outbox."""
        while not self.journal.idle:
            await asyncio.sleep(_LOOK)

    async def last_checkpoint(self) -> None:
        """Make a checkpoint of all that was processed, if there are any."""
        if self._checkpoints is not None:
            await self._checkpoints.last()

    def close(self) -> None:
        """Stop, and close what is on disk; the log is not synced."""
        self._up.close()

    def _log_ticks(self, ticks: Sequence[Tick]) -> None:
        self.journal.receive_records(ticks)

    def _log_was_shortened(self) -> None:
        self.journal.room_was_made()

    def _log_is_full(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.soon()
