"""From a micro-batch's rows to sinks, dead letters and the terminal, in the driver.

A batch counts as done for Spark only when its outputs are where they belong: acknowledged by the
peers' kernels, written to the pipe. So what a crash leaves undone is a whole batch, which Spark
runs again with the same result, and a sink sees a stretch at the end repeated, and no gap
(recover-2). A sink that is not there holds up the batch, and the input log fills.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from wallaroo.text import escaped
from wallaroo.topology import Application, SinkId
from wallaroo.transport.dead_letters import DeadLetters
from wallaroo.transport.input_log import Record
from wallaroo.transport.loop_thread import LoopThread
from wallaroo_spark.job import Report
from wallaroo_spark.outbox import End, Finished, Order
from wallaroo_spark.segments import Address
from wallaroo_spark.traces import dead_letters_of, first_end, outputs_of


class OutputSink(Protocol):
    """A `TCPSink` or a `StreamSink`."""

    written: int
    pending: int
    full: bool

    def start(self) -> None:
        """Begin, in the running loop."""

    def write(self, outputs: Sequence[bytes]) -> None:
        """Send outputs."""

    async def drain(self) -> None:
        """Wait until everything is where it belongs."""

    def close(self) -> None:
        """Give up what is still there."""


class RunEndedError(Exception):
    """The run ended at a message of this batch (dead-3, dead-4): Spark must not commit it."""


class Delivery:
    """Takes the rows of one batch after the other.

    Args:
        application: whose sinks.
        sinks: by id.
        loop: the thread they belong to.
        dead_letters: takes these.
        frame: returns the frame with a sequence number.

    Attributes:
        processed: everything before this sequence has been processed and delivered.
        batches: how many there were.
        seconds: how long the last one's delivery took.
        ended: why the run ended at a message, if it did.
        deadly: the call in which workers die; the next batch ends there.
    """

    def __init__(
        self,
        application: Application,
        sinks: Mapping[SinkId, OutputSink],
        loop: LoopThread,
        dead_letters: DeadLetters,
        frame: Callable[[int], Record],
    ) -> None:
        self.processed = 0
        self.batches = 0
        self.seconds = 0.0
        self.ended: str | None = None
        self.deadly: End | None = None
        self._application = application
        self._sinks = sinks
        self._loop = loop
        self._dead_letters = dead_letters
        self._frame = frame
        self._entities: dict[Address, int] = {}

    @property
    def entities(self) -> int:
        """Number of state entities, of the shards that had messages since the start."""
        return sum(self._entities.values())

    def deliver(self, report: Report) -> None:
        """Deliver what a batch gave, and return when it is where it belongs.

        Raises:
            RunEndedError: the run ended in this batch; what came before that is delivered.
        """
        began = time.monotonic()
        for step, line in report.printed:
            print(f"[{step}] {escaped(line)}" if step else line, file=sys.stderr, flush=True)
        finished = report.finished.get(0, Finished())
        if self.deadly is not None:
            finished.ends.append(self.deadly)
        end = first_end(finished)
        if end is not None:
            finished = self._before(finished, end.order)
        for sink, outputs in outputs_of(self._application, finished).items():
            if outputs:
                self._loop.call(self._sinks[sink].write, outputs)
        if finished.letters:
            sequences = {letter.lineage[0] for letter in finished.letters}
            frames = {number: self._frame(number) for number in sequences}
            self._dead_letters.add(
                dead_letters_of(
                    finished,
                    {number: (record.source, record.payload) for number, record in frames.items()},
                )
            )
        self._loop.run(self._drained())
        if end is not None:
            where = f"step {end.step!r}" if end.step else "decoder or encoder"
            message = ".".join(map(str, end.order[0]))
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
        self.seconds = time.monotonic() - began

    async def _drained(self) -> None:
        await asyncio.gather(*[sink.drain() for sink in self._sinks.values()])

    def _before(self, finished: Finished, end: Order) -> Finished:
        """Return what comes before the end, and the dead letter that it is."""
        lengths = dict.fromkeys(self._application.sources, 0)
        for step in self._application.steps:
            lengths[step.pipeline] += 1
        nodes = self._application.nodes

        def order(output: tuple[tuple[int, ...], int, bytes]) -> Order:
            node = nodes[output[1]]
            return (output[0], lengths[node.pipeline], getattr(node, "index", 0))

        return Finished(
            [output for output in finished.outputs if order(output) < end],
            [letter for letter in finished.letters if letter.order <= end],
        )
