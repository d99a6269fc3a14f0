"""The reference engine live: TCP in, a machine, TCP out, in a thread with an event loop of its own.

The caller's thread is free to wait, to show progress and to take signals. User code runs in the
server's thread. If it never returns, the caller can still end the process.

A sender is told that all was taken (frame-4) once the machine has processed it, or, with an input
log (for a checkpoint or a recording), once it is on disk: without one, records that are sequenced
and not processed are lost if the process dies.

A stop goes in order (stop-1) and ends after `stop_timeout` seconds at the latest
(`wallaroo.transport.stop_clock`).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from wallaroo.engine import Handle, Progress, ServeOptions, Summary
from wallaroo.errors import WallarooError
from wallaroo.kafka_records import KafkaRun
from wallaroo.metrics.silence import Silence
from wallaroo.overriding import override
from wallaroo.records import Assigned, End, Value
from wallaroo.topology import Application
from wallaroo.trace import DeadLetter
from wallaroo.transport.checkpoint import say_where_it_begins
from wallaroo.transport.edges import Edges
from wallaroo.transport.input_log import FILES
from wallaroo.transport.interfaces import Receiver
from wallaroo.transport.kafka.edges import KafkaEdges, Kept
from wallaroo.transport.listener import Address
from wallaroo.transport.skipping import refuse_unskippable
from wallaroo.transport.stop_clock import StopClock
from wallaroo.transport.threads import LoopThread
from wallaroo_reference.checkpoints.on_disk import FromTopic, OnDisk, RecordedRun
from wallaroo_reference.checkpoints.recovery import Recovery
from wallaroo_reference.compiled.measured import MeasuredCompiled
from wallaroo_reference.isolated.measured import MeasuredInterpreter
from wallaroo_reference.machine import Machine
from wallaroo_reference.options import CheckpointOptions
from wallaroo_reference.serving.durable import Durable
from wallaroo_reference.serving.feeder import Feeder, Intake
from wallaroo_reference.serving.watch import Watch

_LOOK = 0.05  # seconds between looks whether user code has returned in the end
_log = logging.getLogger("wallaroo.reference")

_GRACE = 1.0  # seconds the server's thread has to answer after a stop's time is over


class Server(Receiver, Handle):
    """A served application: it listens on its sources and runs until it is stopped.

    Args:
        application: what to run.
        make_machine: makes a machine for it, without state; with a checkpoint, one that keeps.
        options: how.
        addresses: see `wallaroo.transport.listener.Listener`.
        clock: returns the arrival time of a record, in nanoseconds since 1970.
        checkpoint: whether state and input outlive the process.
        thread: has the event loop; `None`: one of its own.

    Raises:
        CheckpointError: the checkpoint cannot be used.
        InputLogError: the checkpoint's input log cannot be used.
        ListenError: an address cannot be listened on.
        DeadLetterFileError: the file for dead letters cannot be opened.
        WallarooParameterError: stdin, or a sink, is not possible as it is asked for.
    """

    def __init__(
        self,
        application: Application,
        make_machine: Callable[[], Machine],
        options: ServeOptions,
        addresses: Mapping[str, Address] | None = None,
        clock: Callable[[], int] = time.time_ns,
        checkpoint: CheckpointOptions | None = None,
        thread: LoopThread | None = None,
    ) -> None:
        self._again = partial(
            Server, application, make_machine, options, clock=clock, checkpoint=checkpoint
        )
        self._application = application
        self._options = options
        self._done = threading.Event()
        self._result: Summary | None = None
        self._task: asyncio.Task[None]
        self._thread = thread or LoopThread("wallaroo-reference")
        self._unended = set(application.sources)
        self._now = clock
        self._timed = application.time_decides
        self._machine = make_machine()
        self._durable: Durable | None = None
        self._checkpoint = checkpoint or CheckpointOptions()
        on_disk = self._open(application)
        kafka = None
        try:
            if isinstance(on_disk, Recovery):
                on_disk.restore(self._machine)
                on_disk.generators()  # refused now, if one cannot be read
                refuse_unskippable(on_disk.log, on_disk.position, self._checkpoint.skip)
                on_disk.skip = self._checkpoint.skip
                assert self._checkpoint.directory is not None
                say_where_it_begins(self._checkpoint.directory, on_disk.log.next_sequence)
            kept = Kept() if on_disk is None else on_disk.kafka()
            kafka = KafkaEdges(
                application,
                kept,
                self,
                self._thread.post,
                interval=self._checkpoint.transaction,
                accept_gaps=self._checkpoint.accept_gaps,
                accept_repeats=self._checkpoint.accept_repeats,
                measured=options.metrics is not None,
                going_on=lambda: self._clock.requested_for() <= options.stop_timeout,
            )
            with options.interruptible():
                kafka.prepare(self.sinks_have_room, self._fail)
            self._machine.topics.update(kafka.partitions)
            self._edges = Edges(application, options, self._thread, self, addresses, clock, kafka)
            if isinstance(on_disk, Recovery):
                self._edges.dead_letters.run = on_disk.born.checkpoint
        except BaseException:
            if on_disk is not None:
                on_disk.close()
            raise
        self._kafka = kafka
        self._clock = StopClock(
            options,
            self._thread,
            self._edges,
            lambda: self._machine.sequence,
            lambda: self._unprocessed,
        )
        if on_disk is not None:
            self._durable = Durable(
                on_disk,
                self._machine,
                self._edges,
                self._thread.post,
                interval=self._checkpoint.interval,
                clock=clock,
                timed=self._timed,
                failed=self._fail,
                kafka=kafka,
            )
            self._feeder: Feeder = self._durable.feeder
            self._intake: Intake = self._durable.journal
        else:
            self._intake = self._feeder = Feeder(
                self._machine,
                self._edges.sinks,
                self._add_letters,
                self._edges,
                failed=self._fail,
                clock=clock,
                timed=self._timed,
                topics=kafka.topics,
            )
        machine = self._machine
        self._silence = Silence(
            application, machine.moment, lambda: machine.open_windows, options.metrics
        )
        self._arrival = clock if on_disk is not None or self._timed else (lambda: 0)
        if isinstance(self._machine, (MeasuredCompiled, MeasuredInterpreter)):
            durable, metrics = self._durable, options.metrics
            made = None if durable is None else (lambda: durable.made)
            self._feeder.watch = Watch(self._machine, self._edges, made)
            if metrics is not None:
                metrics.before_tick(lambda: kafka.copy_figures(metrics))
            if durable is not None and metrics is not None:
                metrics.before_tick(lambda: durable.copy_figures(metrics))
        self._edges.open(self._start)

    def _open(self, application: Application) -> OnDisk | None:
        """Return the checkpoint, or the recording of a run without one; `None`: neither is wanted.

        Raises:
            WallarooError: it cannot be used.
        """
        asked, partitions = self._checkpoint, self._options.partitions
        if asked.directory is not None:
            return Recovery(
                asked.directory,
                application,
                partitions=partitions,
                log_bytes=asked.log_bytes,
                record=asked.record,
                accepted=asked.accepted,
            )
        if asked.record is not None:
            return RecordedRun(
                asked.record,
                application,
                partitions=partitions or 1,
                file_bytes=max(1, asked.log_bytes // FILES),
            )
        return None

    @property
    @override
    def addresses(self) -> Mapping[str, Address]:
        return self._edges.addresses

    @override
    def progress(self) -> Progress:
        return self._edges.progress({} if self._durable is None else self._durable.details)

    @override
    def wait(self, timeout: float | None = None) -> Summary | None:
        end = None if timeout is None else time.monotonic() + timeout
        while not self._done.wait(_LOOK if end is None else min(_LOOK, end - time.monotonic())):
            if self._is_stuck():
                return self._summary("user code has not returned since the stop was asked for")
            if end is not None and time.monotonic() >= end:
                return None
        return self._result

    @override
    def stop(self) -> None:
        self._clock.request()

    @override
    def kill(self) -> None:
        self._thread.post(self._task.cancel)
        self._done.wait(_GRACE)

    @override
    def restart(self) -> Handle:
        return self._again(addresses=self.addresses)

    # -- all that follows runs in the server's thread ---------------------------------------------

    def _start(self) -> None:
        if self._feeder.watch is not None:
            self._feeder.watch.start()
        self._silence.start()
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._run())
        if self._durable is not None:
            loop.call_soon(self._durable.start, self._caught_up)
        else:
            self._intake.receive_records(self._kafka.go_on_behind(0, {}, self._arrival()))

    def _caught_up(self) -> None:
        """The log's records are processed: the run goes on, unless all sources have ended."""
        sources = self._machine.moment().sources
        ended = {name for name, source in sources.items() if source.ended}
        if not self._unended - ended:
            _log.warning("every source has ended in an earlier run: nothing more is received")
        self._ended(ended)

    async def _run(self) -> None:
        try:
            await self._clock.wait()
            if not await self._clock.in_time(self._edges.finish(self._idle)):
                self._clock.fail(self._clock.given_up)
            elif not await self._clock.in_time(self._last_checkpoint()):
                _log.warning("the last checkpoint is not stored; a restart repeats outputs")
        except asyncio.CancelledError:
            self._clock.problem = "it was killed"
        finally:
            self._end()

    async def _idle(self) -> None:
        """Wait until what was received is processed, and its outputs may leave."""
        await self._feeder.idle()
        self._feeder.stop_ticking()
        if self._durable is not None:
            await self._durable.idle()

    async def _last_checkpoint(self) -> None:
        if self._durable is not None and self._clock.problem is None:
            await self._durable.last_checkpoint()

    def _end(self) -> None:
        if self._feeder.watch is not None:
            self._feeder.watch.close()
        self._silence.close()
        self._feeder.abandon()
        if self._durable is not None:
            self._durable.close()
        self._edges.close()
        self._result = self._summary(self._clock.problem)
        self._done.set()
        asyncio.get_running_loop().stop()

    @override
    def receive(self, source: str, payloads: list[bytes]) -> None:
        self._intake.receive(source, payloads, self._arrival())

    @override
    def when_sequenced(self, close: Callable[[], None]) -> None:
        self._intake.when_sequenced(close)

    @override
    def sinks_have_room(self) -> None:
        self._feeder.sinks_have_room()

    @override
    def receive_records(self, records: Sequence[Value | Assigned | End]) -> None:
        self._intake.receive_records(records)
        ends = [record for record in records if isinstance(record, End)]
        self._ended({record.source for record in ends if record.partition is None})

    @override
    def receive_run(self, source: str, run: KafkaRun, at: int | None) -> None:
        at = self._arrival() if at is None else at
        self._intake.receive_run(FromTopic(source, run, at))

    @override
    def input_failed(self, problem: str) -> None:
        self._clock.input_ended(problem)

    @override
    def input_ended(self, problem: str | None) -> None:
        if problem is not None:
            self._clock.input_ended(problem)
        ended = self._edges.listened_to & self._unended
        if not self._lasts or self._timed:
            self.receive_records([End(name, self._now()) for name in ended])
        else:  # ending the source is not needed, and the next run on the checkpoint reads on
            self._ended(ended)

    def _ended(self, sources: set[str]) -> None:
        self._unended -= sources
        if not self._unended:
            self._clock.input_ended(None)

    @override
    def outputs_broken(self, problem: str) -> None:
        self._fail(problem)
        self._feeder.abandon()

    def _add_letters(self, letters: Sequence[DeadLetter]) -> None:
        try:
            self._edges.dead_letters.add(letters)
        except WallarooError as error:
            self._feeder.abandon()
            self._fail(str(error))

    def _fail(self, problem: str) -> None:
        """End the run: receive and process nothing more; deliver the outputs that were made."""
        self._edges.refuse()
        self._clock.fail(problem)

    # -- in both threads -------------------------------------------------------------------------

    @property
    def _lasts(self) -> bool:
        """Whether windows that are open at the end go on in the next run."""
        return self._checkpoint.directory is not None

    @property
    def _unprocessed(self) -> int:
        """Number of records that were received and are not processed."""
        waiting = 0 if self._durable is None else self._durable.journal.waiting
        return self._feeder.unprocessed + waiting

    def _is_stuck(self) -> bool:
        return self._clock.requested_for() > self._options.stop_timeout + _GRACE

    def _summary(self, problem: str | None) -> Summary:
        return self._edges.summary(
            problem,
            self._machine.findings,
            late=self._machine.late,
            open_windows=0 if self._is_stuck() or self._lasts else self._machine.open_windows,
            unprocessed=self._unprocessed,
            tombstones=self._tombstones,
            silent=self._silence.partitions,
        )

    @property
    def _tombstones(self) -> dict[str, int]:
        """Number of tombstones that were not for their source's decoder (kafka-7)."""
        configs = {name: source.config for name, source in self._application.sources.items()}
        return {
            name: count
            for name, count in self._feeder.tombstones.items()
            if count and not getattr(configs[name].decoder, "whole", False)
        }
