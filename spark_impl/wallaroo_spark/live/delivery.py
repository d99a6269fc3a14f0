"""From a micro-batch's rows to sinks, dead letters and the terminal, in the driver.

A batch is done for Spark only when its outputs are delivered: acknowledged by the peers' kernels,
or written to the pipe. So after a crash Spark runs a whole batch again, with the same result, and a
sink sees the end of its outputs repeated, without a gap (recover-2). While a sink is not there, the
batch waits, and the input log fills.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from wallaroo.records import Record
from wallaroo.topology import Application
from wallaroo.trace import Lineage
from wallaroo.transport.dead_letters import DeadLetterFileError
from wallaroo.transport.edges import Edges
from wallaroo.transport.stop_clock import unless
from wallaroo.transport.threads import LoopThread
from wallaroo.user_code.output import show
from wallaroo_spark.live.kafka_sinks import KafkaSinks
from wallaroo_spark.live.watch import Watch
from wallaroo_spark.plans.reports import dead_letters_of, ended_of, first_end, outputs_of
from wallaroo_spark.wire.job import Address, Fetched, Held, Report
from wallaroo_spark.wire.lineages import numbering
from wallaroo_spark.wire.outbox import End, Finished


class RunEndedError(Exception):
    """The run ended at a message of this batch (dead-3, dead-4): Spark must not commit it."""


class Holding(NamedTuple):
    """Numbers of entities and open windows, and the partition numbers they are of."""

    entities: int = 0
    windows: int = 0
    numbers: frozenset[int] = frozenset()


class Delivery:
    """Delivers the rows of one batch after the other.

    Args:
        application: the application.
        edges: its sinks.
        loop: the thread of the edges.
        records: returns the records with some sequence numbers.
        done: called when a batch is delivered and Spark is about to commit it, with the sequence at
            which it ends, and when something is due after it.
        due: when something is due after the last batch of an earlier run on the checkpoint.
        watch: gets what is delivered, for figures; `None`: no figures.
        kafka: the application's Kafka sinks, whose outputs have left already.

    Attributes:
        processed: everything before this sequence has been processed and delivered.
        due: when time alone makes something due after that; `None`: it will not.
        batches: number of batches delivered.
        late: numbers of late messages, as in a trace.
        ended: why the run ended, if it ended in a batch.
        ended_by: the message in whose processing user code ended it then.
        killing_call: the call in which workers die; the next batch ends there.
        abandoned: do not wait for sinks any more; the current batch fails and is not committed.
        tombstones: records of Kafka without a value that were filtered, by source (kafka-7).
        on_fetched: called with what they have fetched of a source in a batch.
    """

    def __init__(
        self,
        application: Application,
        edges: Edges,
        loop: LoopThread,
        records: Callable[[Collection[int]], Mapping[int, Record]],
        done: Callable[[int, int | None], None],
        due: int | None,
        watch: Watch | None,
        kafka: KafkaSinks,
    ) -> None:
        self._watch = watch
        self.processed = 0
        self.due = due
        self.batches = 0
        self.late: Counter[tuple[str, str]] = Counter()
        self.ended: str | None = None
        self.ended_by: Lineage | None = None
        self.killing_call: End | None = None
        self.abandoned = False
        self._application = application
        self._edges = edges
        self._loop = loop
        self._records = records
        self._done = done
        self._kafka = kafka
        self._held: dict[Address, Held] = {}
        self.tombstones: Counter[str] = Counter()
        self.on_fetched: Callable[[str, Fetched], None] = lambda *_: None

    @property
    def entities(self) -> int:
        """Number of state entities, of the shards that had messages since the start."""
        return sum([held.entities for held in self._held.values()])

    @property
    def open_windows(self) -> int:
        """Number of open windows, after the last batch since the start."""
        return sum([held.open for held in self._held.values()])

    @property
    def held_by_group(self) -> dict[int, Holding]:
        """What each group of the plan holds, as far as it has had messages since the start."""
        holdings: dict[int, Holding] = {}
        for address, held in list(self._held.items()):
            before = holdings.get(address.group, Holding())
            holdings[address.group] = Holding(
                before.entities + held.entities,
                before.windows + held.open,
                before.numbers | {address.number},
            )
        return holdings

    def deliver(self, report: Report) -> None:
        """Deliver the results of a batch, and return when all of them are delivered.

        Raises:
            RunEndedError: the run ended in this batch; everything before its end is delivered.
            DeadLetterFileError: the dead letters cannot be written.
        """
        for line in report.printed:
            show(line)
        if report.problem:
            self.ended = report.problem
            raise RunEndedError(self.ended)
        for source, some in report.fetched.items():
            decoder = self._application.sources[source].config.decoder
            if some.tombstones and not getattr(decoder, "whole", False):
                self.tombstones[source] += some.tombstones
            self.on_fetched(source, some)
        finished = report.finished.get(0, Finished())
        if self.killing_call is not None:
            finished.ends.append(self.killing_call)
        end, numbered = first_end(finished), numbering(finished.fired)
        stop = None if end is None else end.order
        by_sink = outputs_of(self._application, finished, stop)
        numbers = {sink: len(outputs) for sink, outputs in by_sink.items()}
        sent = self._kafka.sent(report.sent)
        numbers |= {sink: some.outputs for sink, some in sent.items()}
        letters = [letter for letter in finished.letters if stop is None or letter.order <= stop]
        if letters:
            records = self._records({letter.lineage[0] for letter in letters})
            dead = dead_letters_of(self._application, letters, records, numbered)
            try:
                self._edges.dead_letters.add(dead)
                self._edges.dead_letters.sync()  # Spark commits the batch: it is not run again
            except DeadLetterFileError as error:
                self.ended = str(error)
                raise

        async def deliver() -> None:
            for sink, outputs in by_sink.items():
                if outputs:
                    self._edges.sinks[sink].write(outputs)
            for sink, some in sent.items():
                self._kafka.sinks[sink].left(some)
            if self._watch is not None:
                self._watch.made(numbers)
            await self._edges.drain()

        if not self._loop.run(unless(lambda: self.abandoned, deliver())):
            raise RunEndedError("a sink did not take its outputs before the stop was given up")
        if end is not None:
            ended = ended_of(self._application, end, numbered)
            where = f"step {ended.step!r}" if ended.step else ended.where
            message = ".".join(map(str, ended.lineage))
            cause = (
                "a dead letter (--on-error stop)"
                if end.kind == "on-error"
                else f"{end.error_type or 'the death of the worker process'} in user code"
            )
            self.ended_by = None if end.kind == "on-error" else ended.lineage
            self.ended = f"{cause} at {where} of pipeline {ended.pipeline!r}, message {message}"
            raise RunEndedError(self.ended)
        self._held.update(report.held)
        self.late += finished.late
        if self._held:
            times = [held.due for held in self._held.values() if held.due is not None]
            self.due = min(times, default=None)
        if report.span is not None:
            self._done(report.span[1], self.due)
            self.processed = report.span[1]
            if self._watch is not None:
                for visit in report.visits.kept:
                    visit.lineage = numbered(visit.lineage)
                self._watch.delivered(report, numbers, self.processed)
        self.batches += 1
