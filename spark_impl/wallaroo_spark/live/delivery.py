"""From a micro-batch's rows to sinks, dead letters and the terminal, in the driver.

A batch is done for Spark only when its outputs are delivered: acknowledged by the peers' kernels,
or written to the pipe. So after a crash Spark runs a whole batch again, with the same result, and a
sink sees the end of its outputs repeated, without a gap (recover-2). While a sink is not there, the
batch waits, and the input log fills.
"""

from __future__ import annotations

from collections.abc import Callable

from wallaroo.records import Frame
from wallaroo.topology import Application
from wallaroo.transport.dead_letters import DeadLetterFileError
from wallaroo.transport.edges import Edges
from wallaroo.transport.loop_thread import LoopThread
from wallaroo.transport.stop_clock import unless
from wallaroo.user_code.output import show
from wallaroo_spark.plans.reports import dead_letters_of, ended_of, first_end, outputs_of
from wallaroo_spark.wire.job import Report
from wallaroo_spark.wire.outbox import End, Finished
from wallaroo_spark.wire.shards import Address


class RunEndedError(Exception):
    """The run ended at a message of this batch (dead-3, dead-4): Spark must not commit it."""


class Delivery:
    """Delivers the rows of one batch after the other.

    Args:
        application: the application.
        edges: its sinks.
        loop: the thread of the edges.
        frame: returns the frame with a sequence number.

    Attributes:
        processed: everything before this sequence has been processed and delivered.
        batches: number of batches delivered.
        ended: why the run ended, if it ended in a batch.
        killing_call: the call in which workers die; the next batch ends there.
        abandoned: do not wait for sinks any more; the current batch fails and is not committed.
    """

    def __init__(
        self,
        application: Application,
        edges: Edges,
        loop: LoopThread,
        frame: Callable[[int], Frame],
    ) -> None:
        self.processed = 0
        self.batches = 0
        self.ended: str | None = None
        self.killing_call: End | None = None
        self.abandoned = False
        self._application = application
        self._edges = edges
        self._loop = loop
        self._frame = frame
        self._entities: dict[Address, int] = {}

    @property
    def entities(self) -> int:
        """Number of state entities, of the shards that had messages since the start."""
        return sum(self._entities.values())

    def deliver(self, report: Report) -> None:
        """Deliver the results of a batch, and return when all of them are delivered.

        Raises:
            RunEndedError: the run ended in this batch; everything before its end is delivered.
            DeadLetterFileError: the dead letters cannot be written.
        """
        for line in report.printed:
            show(line)
        finished = report.finished.get(0, Finished())
        if self.killing_call is not None:
            finished.ends.append(self.killing_call)
        end = first_end(finished)
        stop = None if end is None else end.order
        for sink, outputs in outputs_of(self._application, finished, stop).items():
            if outputs:
                self._loop.call(self._edges.sinks[sink].write, outputs)
        letters = [letter for letter in finished.letters if stop is None or letter.order <= stop]
        if letters:
            sequences = {letter.lineage[0] for letter in letters}
            frames = {number: self._frame(number) for number in sequences}
            dead = dead_letters_of(
                self._application,
                letters,
                {number: (record.source, record.payload) for number, record in frames.items()},
            )
            try:
                self._edges.dead_letters.add(dead)
            except DeadLetterFileError as error:
                self.ended = str(error)
                raise
        if not self._loop.run(unless(lambda: self.abandoned, self._edges.drain())):
            raise RunEndedError("a sink did not take its outputs before the stop was given up")
        if end is not None:
            where = f"step {end.step!r}" if end.step else ended_of(end).where
            message = ".".join(map(str, end.lineage))
            cause = (
                "a dead letter (--on-error stop)"
                if end.kind == "on-error"
                else f"{end.error_type or 'the death of the worker process'} in user code"
            )
            self.ended = f"{cause} at {where} of pipeline {end.pipeline!r}, message {message}"
            raise RunEndedError(self.ended)
        self._entities.update(report.counts)
        if report.span is not None:
            self.processed = report.span[1]
        self.batches += 1
