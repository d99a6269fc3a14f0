"""The figures of a live run's state, log and checkpoint, copied before each tick."""

from __future__ import annotations

from wallaroo.metrics.figures import (
    DISK_IS_FULL,
    LOG_IS_FULL,
    KeptFigures,
    KeyFigures,
    PartitionFigures,
)
from wallaroo.metrics.registry import Registry
from wallaroo.topology import Application
from wallaroo_spark.live.checkpoint import Checkpoint
from wallaroo_spark.live.delivery import Holding
from wallaroo_spark.live.parts import LiveRun
from wallaroo_spark.worker.plan import plan

_SIZE = 30.0  # seconds between looks at the checkpoint's size


class Figures:
    """Copies what a run knows to its figures, until closed.

    Args:
        metrics: the figures.
        application: the application.
        checkpoint: the run's.
        run: the run.
    """

    def __init__(
        self, metrics: Registry, application: Application, checkpoint: Checkpoint, run: LiveRun
    ) -> None:
        self._metrics = metrics
        self._application = application
        self._groups = plan(application).groups
        self._checkpoint = checkpoint
        self._run = run
        self._size_due = 0.0
        for group in self._groups:
            numbers = group.divided(checkpoint.partitions)
            for name in group.partitions:
                metrics.partitions[name] = PartitionFigures(numbers)
            for index in group.windows:
                metrics.windows[index].keys = KeyFigures(numbers)
        metrics.before_tick(self._copy)

    def close(self) -> None:
        """Copy what is known at the end, and stop."""
        self._metrics.after_last_tick(self._copy)

    def _copy(self) -> None:
        """Copy what is known now; in any thread.

        If several state partitions or window steps are held together, each has no figure of its
        own. After a restart nothing is known of partition numbers that have had no message since.
        """
        metrics = self._metrics
        with metrics.lock:
            for id_, sink in metrics.sinks.items():
                if not self._run.edges.sinks[id_].pending:
                    sink.oldest = None
        metrics.backlog = max(0, self._run.backlog)
        held = self._run.delivery.held_by_group
        for group in self._groups:
            holding = held.get(group.index, Holding())
            complete = len(holding.numbers) == group.divided(self._checkpoint.partitions)
            counted = complete or not self._checkpoint.restarts
            if len(group.members) == 1 and group.partitions:
                partition = metrics.partitions[group.partitions[0]]
                partition.entities = holding.entities if counted else None
            if len(group.windows) == 1:
                windows = metrics.windows[group.windows[0]]
                windows.open = holding.windows if counted else None
        for index, windows_of_step in metrics.windows.items():
            name = getattr(self._application.nodes[index], "name", "")
            late = list(self._run.delivery.late.items())
            windows_of_step.late = {what: count for (step, what), count in late if step == name}
        self._tell_of_disk(metrics)

    def _tell_of_disk(self, metrics: Registry) -> None:
        log, kept = self._run.feed.log, metrics.kept or KeptFigures()
        full = LOG_IS_FULL if self._run.feed.full else ""
        metrics.held_back = DISK_IS_FULL if self._run.intake.waiting else full
        kept.log_bytes = log.size
        kept.log_records = log.next_sequence - log.first_sequence
        kept.log_written = log.written
        kept.checkpoint_written = self._run.feed.committed_at
        kept.restarts = self._checkpoint.restarts
        now = metrics.monotonic()
        if now >= self._size_due:  # Spark's part has thousands of files
            kept.checkpoint_bytes = self._checkpoint.size()
            self._size_due = now + _SIZE
        metrics.kept = kept
