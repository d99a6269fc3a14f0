"""The parts of a run with an input log: journal, outbox, checkpoints, and their threads.

The way of a frame: it is appended to the input log and processed at once; its outputs wait in the
outbox until the log is synced; then they go to their sinks. From time to time a checkpoint stores
the state, and the log drops the records before it. A run that is only recorded makes no
checkpoints, and keeps its log.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping

from wallaroo.metrics.figures import DISK_IS_FULL, LOG_IS_FULL, KeptFigures
from wallaroo.metrics.registry import Registry
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
        feeder: gets from the journal what is in the log.
        outbox: takes what the feeder hands on.
        edges: the run's edges; paused until what the log holds is processed.
        kafka: the sources and sinks of Kafka; closed with this.
        post: calls a function in the loop's thread.
        interval: seconds from one checkpoint to the next.
        clock: returns the time, in nanoseconds since 1970.
        failed: called with an error's text if the run cannot go on.

    Attributes:
        journal: receives first.
    """

    def __init__(
        self,
        on_disk: OnDisk,
        machine: Machine,
        feeder: Feeder,
        outbox: Outbox,
        edges: Edges,
        kafka: KafkaEdges,
        post: Post,
        *,
        interval: float,
        clock: Callable[[], int],
        failed: Callable[[str], None],
    ) -> None:
        self._clock = clock
        self._on_disk = on_disk
        self._log = on_disk.log
        self._feeder = feeder
        self._edges = edges
        self._kafka = kafka
        self._up = contextlib.ExitStack()  # what is to be closed, the last opened first
        self._up.callback(on_disk.close)
        self._up.callback(kafka.close)
        to_log, to_store = [JobThread(f"wallaroo-{name}", post) for name in ("log", "checkpoint")]
        self._up.callback(to_store.close)
        self._up.callback(to_log.close)
        self._up.callback(outbox.abandon)
        self._checkpoints: Checkpoints | None = None
        if isinstance(on_disk, Recovery):
            self._checkpoints = Checkpoints(
                *(on_disk, machine, feeder, kafka, outbox, edges, to_store),
                interval=interval,
                clock=clock,
                failed=failed,
            )
            self._up.callback(self._checkpoints.abandon)
        self.journal = Journal(
            *(on_disk, feeder, outbox, edges, to_log, kafka.topics, self._checkpoints),
            failed=failed,
        )
        self._up.callback(self.journal.abandon)
        edges.pause("replay")

    @property
    def details(self) -> Mapping[str, int | float | str]:
        """Figures of the run's progress; in any thread."""
        if self._checkpoints is None:
            return {}
        return {"checkpoints": self._checkpoints.stored, "log_bytes": self._log.size}

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
                if self._checkpoints is not None:
                    self._checkpoints.soon()
            self._edges.resume("replay")

        if self._checkpoints is not None:
            self._checkpoints.start()
        self._feeder.begin_with(self._on_disk.later(self._kafka), processed)

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
