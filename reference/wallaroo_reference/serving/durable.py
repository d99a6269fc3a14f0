"""The parts of a run with an input log: journal, outbox, checkpoints, and their threads.

The way of a frame: it is appended to the input log and processed at once; its outputs wait in the
outbox until the log is synced; then they go to their sinks. From time to time a checkpoint stores
the state, and the log drops the records before it. A run that is only recorded makes no
checkpoints, and keeps its log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from wallaroo.metrics.figures import DISK_IS_FULL, LOG_IS_FULL, KeptFigures
from wallaroo.metrics.registry import Registry
from wallaroo.records import End, Tick, Value
from wallaroo.topology import SinkId
from wallaroo.trace import DeadLetter
from wallaroo.transport.edges import Edges
from wallaroo.transport.generators import LoggedSource
from wallaroo_reference.checkpoints.recovery import Recovery
from wallaroo_reference.machine import Machine
from wallaroo_reference.serving.checkpointing import Checkpoints
from wallaroo_reference.serving.feeder import Feeder, Outlet
from wallaroo_reference.serving.job_thread import JobThread, Post
from wallaroo_reference.serving.journal import Journal
from wallaroo_reference.serving.outbox import Outbox
from wallaroo_reference.serving.recorded_run import RecordedRun
from wallaroo_reference.serving.valve import Valve

_LOOK = 0.002  # seconds between looks whether all is on disk

_WHY = {  # why sources are not read, by the valve's reason; the first that holds is shown
    "disk": DISK_IS_FULL,
    "log": LOG_IS_FULL,
    "replay": "what an earlier run has received is processed first",
}


class Durable:
    """The durable side of a run. Methods belong to the loop's thread, unless they say otherwise.

    Args:
        on_disk: the open checkpoint, or what records a run without one; it is closed with this.
        machine: the machine, which has been restored.
        edges: the run's edges.
        valve: closed until what the log holds is processed.
        post: calls a function in the loop's thread.
        interval: seconds from one checkpoint to the next.
        clock: returns the time, in nanoseconds since 1970.
        failed: called with an error's text if the run cannot go on.
    """

    def __init__(
        self,
        on_disk: Recovery | RecordedRun,
        machine: Machine,
        edges: Edges,
        valve: Valve,
        post: Post,
        *,
        interval: float,
        clock: Callable[[], int],
        failed: Callable[[str], None],
    ) -> None:
        self._on_disk = on_disk
        self._log = on_disk.log
        self._machine = machine
        self._edges = edges
        self._valve = valve
        self._interval = interval
        self._clock = clock
        self._failed = failed
        self._threads = [JobThread(f"wallaroo-{name}", post) for name in ("log", "checkpoint")]
        self._outbox = Outbox(
            edges.sinks,
            edges.dead_letters,
            lambda: machine.sequence,
            self._log.durable_sequence,
            failed,
        )
        self._feeder: Feeder
        self._journal: Journal
        self._checkpoints: Checkpoints | None = None

    @property
    def sinks(self) -> Mapping[SinkId, Outlet]:
        """The sinks that take the machine's outputs."""
        return self._outbox.sinks

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
        reasons = self._valve.reasons
        metrics.held_back = next((why for one, why in _WHY.items() if one in reasons), "")
        kept = metrics.kept = metrics.kept or KeptFigures()
        kept.log_bytes = log.size
        kept.log_records = log.next_sequence - log.first_sequence
        kept.log_written = log.written
        if checkpoints is not None and not isinstance(self._on_disk, RecordedRun):
            kept.checkpoint_written = checkpoints.written
            kept.checkpoint_bytes = self._on_disk.size
            kept.restarts = self._on_disk.restarts

    @property
    def waiting(self) -> int:
        """Number of records that have been read and are not in the log."""
        return self._journal.waiting

    def serve(self, feeder: Feeder) -> None:
        """Set what feeds the machine; call it before `start`."""
        to_log, to_store = self._threads
        self._feeder = feeder
        feeder.logged.update(self._on_disk.generators())
        sync = self._log.sync
        if isinstance(self._on_disk, RecordedRun):
            sync = self._on_disk.sync
        else:
            self._checkpoints = Checkpoints(
                self._on_disk,
                self._machine,
                feeder,
                self._outbox,
                self._edges.dead_letters,
                to_store,
                interval=self._interval,
                clock=self._clock,
                failed=self._failed,
                on_stored=self._log_was_shortened,
            )
        self._journal = Journal(
            self._log,
            feeder,
            self._outbox,
            self._valve,
            to_log,
            sync,
            failed=self._failed,
            log_is_full=self._log_is_full,
        )
        self._valve.close("replay")

    def start(self, caught_up: Callable[[], None]) -> None:
        """Process what the log holds, in the running loop, then have the sources read.

        Args:
            caught_up: called in between.
        """

        def processed() -> None:
            self._edges.go_on_behind(self._generators())
            caught_up()
            if self._log.full:
                self._valve.close("log")
                self._log_is_full()
            self._valve.open("replay")

        if self._checkpoints is not None:
            self._checkpoints.start()
        self._feeder.begin_with(self._on_disk.later(), processed)

    def deliver(self, source: str, payloads: Sequence[bytes], at: int) -> None:
        """Take frames."""
        self._journal.deliver(source, payloads, at)

    def take(self, records: Sequence[Value | Tick | End]) -> None:
        """Take records that are not frames."""
        self._journal.take(records)

    def add(self, letters: Sequence[DeadLetter]) -> None:
        """Take dead letters."""
        self._outbox.add(letters)

    def when_durable(self, close: Callable[[], None]) -> None:
        """Have `close` called once all that was taken is on disk; never if the run ends."""
        self._journal.when_durable(close)

    async def idle(self) -> None:
        """Wait until all that was taken is on disk, and its outputs have left the outbox."""
        while not self._journal.idle:
            await asyncio.sleep(_LOOK)

    async def last_checkpoint(self) -> None:
        """Make a checkpoint of all that was processed, if there are any."""
        if self._checkpoints is not None:
            await self._checkpoints.last()

    def close(self) -> None:
        """Stop, and close what is on disk; the log is not synced."""
        self._journal.abandon()
        if self._checkpoints is not None:
            self._checkpoints.abandon()
        self._outbox.abandon()
        for thread in self._threads:
            thread.close()
        self._on_disk.close()

    def _log_is_full(self) -> None:
        if self._checkpoints is not None:
            self._checkpoints.soon()

    def _log_was_shortened(self) -> None:
        self._journal.room_was_made()

    def _generators(self) -> dict[str, LoggedSource]:
        """Return what the log says about generators; those that have ended make nothing more."""
        logged = self._feeder.logged
        return {
            name: replace(logged.get(name, LoggedSource()), ended=source.ended)
            for name, source in self._machine.moment().sources.items()
        }
