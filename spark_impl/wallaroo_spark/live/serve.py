"""Wallaroo applications live on Spark: TCP in, a streaming query, TCP out.

The edges are in this process, in an event loop of their own; the query runs in Spark's JVM. A
thread starts Spark while frames are already received, and waits for the query's end.

A stop goes in order (stop-1, `wallaroo.transport.stop_clock`). Its seconds count from the last
progress; each step of Spark's start is progress too. After the end of standard input the first
batch gets more time.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping

from wallaroo.engine import Handle, Progress, ServeOptions, Summary
from wallaroo.errors import WallarooError
from wallaroo.overriding import override
from wallaroo.records import End, Value
from wallaroo.topology import Application
from wallaroo.transport.checkpoint import CheckpointError
from wallaroo.transport.edges import Edges
from wallaroo.transport.input_log import InputLog
from wallaroo.transport.interfaces import Receiver
from wallaroo.transport.listener import Address
from wallaroo.transport.recording import Recording
from wallaroo.transport.stop_clock import StopClock
from wallaroo.transport.threads import LoopThread
from wallaroo_spark.jvm.java import find_java
from wallaroo_spark.jvm.pickling import (
    pickle_application,
    states_of_main,
    warn_of_states_in_functions,
)
from wallaroo_spark.jvm.process import SubmittingJvm
from wallaroo_spark.jvm.temporary import TemporaryDirectory, temporary_parent
from wallaroo_spark.live.checkpoint import ENGINE, Checkpoint
from wallaroo_spark.live.delivery import Delivery
from wallaroo_spark.live.figures import Figures
from wallaroo_spark.live.intake import Intake, write_ticks
from wallaroo_spark.live.log_feed import LogFeed
from wallaroo_spark.live.options import SparkOptions
from wallaroo_spark.live.query import LiveQuery
from wallaroo_spark.live.resume import (
    Resume,
    at_the_end_of,
    resume_of,
    sources_to_come,
    write_resume,
)
from wallaroo_spark.live.watch import Watch
from wallaroo_spark.wire.job import CaseSpec
from wallaroo_spark.worker.plan import plan

_LOOK = 0.01  # seconds between looks whether all is committed
_FIRST_BATCH = 60.0  # least seconds without progress for it, after the end of standard input

_log = logging.getLogger("wallaroo.spark")


class Server(Receiver, Handle):
    """A served application.

    Raises:
        CheckpointError: the checkpoint cannot be used.
        InputLogError: the input log cannot be used.
        JavaNotFoundError: there is no Java for Spark.
        ListenError: an address cannot be listened on.
        ShippingError: the application cannot be sent to workers.
        WallarooParameterError: stdin, or a sink, is not possible as it is asked for.
    """

    def __init__(
        self,
        application: Application,
        options: ServeOptions,
        own: SparkOptions,
        *,
        addresses: Mapping[str, Address] | None = None,
        temporary: TemporaryDirectory | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self._application = application
        self._now = clock
        self._options = options
        self._own = own
        self._temporary = temporary
        self._ticking: asyncio.Task[None] | None = None
        self._done = threading.Event()
        self._result: Summary | None = None
        self._killed = False
        self._up = contextlib.ExitStack()  # what is to be closed, the last opened first
        warn_of_states_in_functions(application)
        if not SubmittingJvm.is_there():
            find_java()
        try:
            self._open(pickle_application(application), addresses)
        except BaseException:
            self._up.close()
            raise
        self._thread = threading.Thread(target=self._run, name="wallaroo-spark", daemon=True)
        self._thread.start()

    @property
    @override
    def addresses(self) -> Mapping[str, Address]:
        return self._edges.addresses

    @override
    def progress(self) -> Progress:
        return self._edges.progress(
            {
                "batches": self._delivery.batches,
                "batch_ms": round(1000 * self._query.batch_seconds, 1),
                "backlog": self._backlog,
                "entities": self._delivery.entities,
                "windows": self._delivery.open_windows,
            }
        )

    @override
    def wait(self, timeout: float | None = None) -> Summary | None:
        self._done.wait(timeout)
        return self._result

    @override
    def stop(self) -> None:
        self._clock.request()

    @override
    def kill(self) -> None:
        if not self._done.is_set():
            self._killed = True
            self._query.kill()
            self._done.wait()

    @override
    def restart(self) -> Handle:
        return Server(
            self._application,
            self._options,
            self._own,
            addresses=self.addresses,
            temporary=self._temporary,
            clock=self._now,
        )

    # -- the start ---------------------------------------------------------------------------

    def _open(self, pickled: bytes, addresses: Mapping[str, Address] | None) -> None:
        """Open everything but Spark, so that errors are found before Spark starts."""
        options, own = self._options, self._own
        directory = own.checkpoint
        if directory is None:
            self._temporary = self._temporary or TemporaryDirectory("run")
            self._up.callback(self._forget, self._temporary)
            directory = self._temporary.path / "checkpoint"
        elif parent := temporary_parent(directory):
            raise CheckpointError(
                f"the checkpoint {directory} is in {parent}, the temporary directory of a run, "
                "which is removed when nobody uses it. Move it elsewhere, and name its new place"
            )
        else:
            self._warn_of_states_of_main()
        checkpoint = Checkpoint(
            directory,
            self._application,
            partitions=options.partitions,
            default_partitions=own.default_partitions,
        )
        self._up.callback(checkpoint.close)
        place, kept = checkpoint.input_log, None
        if own.record is not None:
            recording = Recording(
                own.record,
                ENGINE,
                self._application,
                checkpoint.partitions,
                checkpoint=own.checkpoint,
            )
            self._up.callback(recording.close)
            kept = recording.input_log
            if own.checkpoint is None:
                place = kept  # the temporary directory may be on another file system
        log = InputLog.open(place, own.log_bytes, recording=kept)
        self._up.callback(log.close)
        checkpoint.begin(log.first_sequence, log.next_sequence)
        self._checkpoint = checkpoint
        self._resume = resume_of(checkpoint, self._application)
        logged = {} if self._resume is None else at_the_end_of(log, self._resume)
        self._unended = sources_to_come(logged, self._application)
        case = CaseSpec(
            pickled,
            partitions=checkpoint.partitions,
            isolated=options.isolation == "isolated",
            stop_on_error=options.on_error == "stop",
            measured=options.metrics is not None,
            log_level=logging.getLogger().getEffectiveLevel(),
        )
        self._feed = LogFeed(
            log,
            case,
            tasks=checkpoint.partitions,
            batch_bytes=own.batch_bytes,
            room_made=self._on_room_in_log,
            failed=self._fail,
            resume=self._resume or Resume(),
            timed=self._application.time_decides,
        )
        self._up.callback(self._feed.close)
        self._loop = LoopThread("wallaroo-edges")
        for source in logged.values():
            source.value()  # refused now, if it cannot be read back
        self._edges = Edges(self._application, options, self._loop, self, addresses, self._now)
        self._edges.go_on_behind(logged)
        self._clock = StopClock(
            options,
            self._loop,
            self._edges,
            self._progress,
            counts_from_progress=True,
            least=lambda: 0.0 if self._delivery.batches else _FIRST_BATCH,
        )
        timed = self._application.time_decides or own.record is not None
        arrival = self._now if timed else lambda: 0
        self._delivery = Delivery(
            self._application,
            self._edges,
            self._loop,
            self._feed.record,
            self._batch_done,
            None if self._resume is None else self._resume.due,
        )
        if options.metrics is not None:
            figures = Figures(
                self._application,
                self._feed,
                self._delivery,
                checkpoint,
                lambda: self._intake.waiting,
            )
            self._delivery.watch = Watch(
                options.metrics, self._edges.sinks, lambda: self._backlog, figures.copy
            )
            self._up.callback(self._delivery.watch.close)
            self._feed.choose = self._delivery.watch.choose
        self._intake = Intake(self._feed, self._edges, self._fail, arrival, self._delivery.watch)
        self._query = LiveQuery(
            plan(self._application).levels, own, checkpoint, self._feed, self._delivery
        )
        if self._feed.full:
            self._edges.pause()
        if options.metrics is not None:
            options.metrics.set_partitions(checkpoint.partitions)
        self._edges.open()  # nothing after this can be refused
        self._up.callback(self._loop.stop)
        self._up.callback(lambda: self._loop.call(self._edges.close))
        if options.metrics is not None:
            options.metrics.state = "starting Spark"
        self._loop.post(self._start)

    def _warn_of_states_of_main(self) -> None:
        for partition, builder in states_of_main(self._application):
            _log.warning(
                "state partition %r: its builder, %s, is defined in the main program, so a later "
                "run can read the checkpoint only if its main program defines the states alike; to "
                "be safe put them into a module, and import them from it",
                partition,
                builder,
            )

    def _forget(self, temporary: TemporaryDirectory) -> None:
        if not self._killed:
            temporary.close()

    # -- in the edges' thread ----------------------------------------------------------------

    def _start(self) -> None:
        loop = asyncio.get_running_loop()
        self._stopping = loop.create_task(self._stop())
        if self._application.window_steps:
            ticks = write_ticks(
                self._now,
                lambda: self._delivery.due,
                lambda: self._backlog,
                lambda tick: self._intake.take([tick]),
            )
            self._ticking = loop.create_task(ticks)
        self._end_if_all_have_ended()

    @override
    def receive(self, source: str, payloads: list[bytes]) -> None:
        self._intake.deliver(source, payloads)

    @override
    def receive_records(self, records: list[Value | End]) -> None:
        self._intake.take(records)
        self._unended -= {record.source for record in records if isinstance(record, End)}
        self._end_if_all_have_ended()

    @override
    def when_sequenced(self, close: Callable[[], None]) -> None:
        self._intake.when_sequenced(lambda: self._loop.post(close))

    @override
    def sinks_have_room(self) -> None:
        return  # `Delivery` waits for the sinks itself

    @override
    def input_ended(self, problem: str | None) -> None:
        if problem is not None:
            self._clock.input_ended(problem)
        ended = self._edges.listened_to & self._unended
        if self._application.time_decides:
            self._intake.take([End(name) for name in sorted(ended)])
        self._unended -= ended
        self._end_if_all_have_ended()

    @override
    def outputs_broken(self, problem: str) -> None:
        self._fail(problem)

    def _end_if_all_have_ended(self) -> None:
        if not self._unended:
            self._clock.input_ended(None)

    async def _stop(self) -> None:
        """Process and deliver what was received, once a stop is asked for, and end the query."""
        await self._clock.wait()
        if self._ticking is not None:
            self._ticking.cancel()
        if await self._clock.in_time(self._edges.finish(self._committed)):
            self._query.end()
        else:
            self._fail(self._clock.given_up(self._backlog))

    async def _committed(self) -> None:
        """Wait until Spark has committed all that was received."""
        while self._feed.committed < self._feed.received or self._intake.waiting:
            await asyncio.sleep(_LOOK)

    def _progress(self) -> tuple[int, ...]:
        """Return a value that changes whenever the run makes progress."""
        return self._query.stage, self._feed.planned, self._feed.committed

    # -- in any thread -----------------------------------------------------------------------

    @property
    def _backlog(self) -> int:
        """Number of frames received and not delivered."""
        delivered = max(self._delivery.processed, self._feed.committed)
        return self._feed.received - delivered + self._intake.waiting

    def _fail(self, problem: str) -> None:
        """End the run, and drop what is on its way."""
        self._clock.problem = self._clock.problem or problem
        self._delivery.abandoned = True
        self._query.end()

    def _on_room_in_log(self) -> None:
        self._loop.post(self._intake.go_on)

    # -- the query's thread ------------------------------------------------------------------

    def _batch_done(self, sequence: int, due: int | None) -> None:
        """Write what a restart must know before Spark commits a micro-batch."""
        if self._resume is None:
            return
        now = Resume(sequence, due, self._feed.sources)
        if not self._resume.sequence or not now.same(self._resume):
            write_resume(self._checkpoint.resume, now)
            self._resume = now

    def _run(self) -> None:
        try:
            self._query.run()
        except WallarooError as error:
            self._clock.problem = self._clock.problem or self._delivery.ended or str(error)
        except Exception as error:  # noqa: BLE001 - a bug of ours must not end in silence
            _log.exception("the engine itself failed; this is a bug in it")
            self._clock.problem = f"the engine itself failed: {type(error).__name__}: {error}"
        finally:
            self._end()

    def _end(self) -> None:
        with contextlib.suppress(Exception):
            self._up.close()
        if self._killed:
            self._clock.problem = "it was killed"
        lost = self._delivery.open_windows if self._own.checkpoint is None else 0
        self._result = self._edges.summary(
            self._clock.problem, late=self._delivery.late, open_windows=lost
        )
        self._done.set()
