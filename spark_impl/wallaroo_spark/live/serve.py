"""Wallaroo applications live on Spark: TCP in, a streaming query, TCP out.

The edges are in this process, in an event loop of their own; the query runs in Spark's JVM. A
thread starts Spark while frames are already received, and waits for the query's end.

A stop goes in order (stop-1, `wallaroo.transport.stop_clock`). Its seconds count from the last
progress; each step of Spark's start is progress too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from wallaroo.engine import Handle, Progress, ServeOptions, Summary
from wallaroo.errors import WallarooError
from wallaroo.overriding import override
from wallaroo.topology import Application
from wallaroo.transport.checkpoint import say_where_it_begins
from wallaroo.transport.edges import Edges
from wallaroo.transport.listener import Address
from wallaroo.transport.skipping import refuse_unskippable, way_past
from wallaroo.transport.stop_clock import StopClock
from wallaroo.transport.threads import LoopThread
from wallaroo_spark.jvm.java import find_java
from wallaroo_spark.jvm.pickling import pickle_application, warn_of_unportable_states
from wallaroo_spark.jvm.process import SubmittingJvm
from wallaroo_spark.jvm.temporary import TemporaryDirectory
from wallaroo_spark.live.delivery import Delivery
from wallaroo_spark.live.figures import Figures
from wallaroo_spark.live.intake import Ending, Intake, write_ticks
from wallaroo_spark.live.log_feed import LogFeed
from wallaroo_spark.live.options import SparkOptions
from wallaroo_spark.live.query import LiveQuery
from wallaroo_spark.live.resume import Resume, sources_to_come
from wallaroo_spark.live.storage import check_place, opened
from wallaroo_spark.live.watch import Watch
from wallaroo_spark.wire.job import CaseSpec
from wallaroo_spark.worker.plan import plan

_LOOK = 0.01  # seconds between looks whether all is committed

_log = logging.getLogger("wallaroo.spark")


class Server(Handle):
    """A served application.

    Its parts are made in the order in which a frame meets them: the input log and its feed, the
    intake behind the edges, the edges, the delivery, the query. All but Spark is open when the
    constructor returns, so that errors are found before Spark starts.

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
        self._application, self._options, self._own = application, options, own
        self._now = clock
        self._temporary = temporary
        self._done = threading.Event()
        self._result: Summary | None = None
        self._killed = False
        warn_of_unportable_states(application)
        if not SubmittingJvm.is_there():
            find_java()
        pickled = pickle_application(application)
        with contextlib.ExitStack() as up:
            directory = self._directory(up)
            storage = up.enter_context(opened(directory, application, own, options.partitions))
            checkpoint = storage.checkpoint
            if own.checkpoint is not None:
                say_where_it_begins(directory, storage.log.next_sequence)
            refuse_unskippable(storage.log, storage.log.first_sequence, own.skip)
            timed = application.time_decides
            self._resume = storage.resume
            self._ending = Ending()
            self._loop = LoopThread("wallaroo-edges")
            self._feed = LogFeed(
                storage.log,
                CaseSpec(
                    pickled,
                    partitions=checkpoint.partitions,
                    isolated=options.isolation == "isolated",
                    stop_on_error=options.on_error == "stop",
                    measured=options.metrics is not None,
                    log_level=logging.getLogger().getEffectiveLevel(),
                ),
                tasks=checkpoint.partitions,
                batch_bytes=own.batch_bytes,
                failed=self._ending.fail,
                resume=Resume() if storage.resume is None else storage.resume.last,
                timed=timed,
                skip=own.skip,
            )
            up.callback(self._feed.close)
            self._intake = Intake(
                application,
                self._feed,
                self._loop,
                self._ending,
                clock if timed or own.record or own.checkpoint else lambda: 0,
                sources_to_come(storage.logged, application),
            )
            self._edges = Edges(application, options, self._loop, self._intake, addresses, clock)
            self._edges.dead_letters.run = checkpoint.born.checkpoint
            self._edges.go_on_behind(storage.logged)
            self._delivery = Delivery(
                application,
                self._edges,
                self._loop,
                self._feed.records,
                self._batch_done,
                None if storage.resume is None else storage.resume.last.due,
            )
            levels = plan(application).levels
            self._query = LiveQuery(levels, own, checkpoint, self._feed, self._delivery)
            self._stop = StopClock(
                options,
                self._loop,
                self._edges,
                lambda: (self._query.stage, self._feed.planned, self._feed.committed),
                lambda: self._backlog,
                counts_from_progress=True,
            )
            self._intake.begin(self._edges, self._stop)
            self._ending.when_failed(self._abandon)
            if options.metrics is not None:
                parts = (self._feed, self._delivery, checkpoint, self._intake)
                copy_figures = Figures(application, *parts).copy
                sinks = self._edges.sinks
                watch = Watch(options.metrics, sinks, lambda: self._backlog, copy_figures)
                up.callback(watch.close)
                self._delivery.watch = self._intake.watch = watch
                self._feed.choose = watch.choose
                options.metrics.set_partitions(checkpoint.partitions)
            self._edges.open()  # nothing after this can be refused
            up.callback(self._loop.stop)
            up.callback(lambda: self._loop.call(self._edges.close))
            self._up = up.pop_all()  # what is to be closed, the last opened first
        if options.metrics is not None:
            options.metrics.state = "starting Spark"
        self._loop.post(self._start)
        threading.Thread(target=self._run, name="wallaroo-spark", daemon=True).start()

    def _directory(self, up: contextlib.ExitStack) -> Path:
        """Return the checkpoint's directory: the user's, or a temporary one."""
        if self._own.checkpoint is not None:
            check_place(self._own.checkpoint, self._application)
            return self._own.checkpoint
        temporary = self._temporary = self._temporary or TemporaryDirectory("run")
        up.callback(lambda: None if self._killed else temporary.close())  # a restart goes on in it
        return temporary.path / "checkpoint"

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
        self._stop.request()

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

    # -- in the edges' thread ----------------------------------------------------------------

    def _start(self) -> None:
        self._serving = asyncio.get_running_loop().create_task(self._serve())
        self._intake.stop_if_all_have_ended()

    async def _serve(self) -> None:
        """Write ticks until a stop is asked for; then deliver what was received, and end."""
        ticking = None
        if self._application.window_steps:
            ticks = write_ticks(
                self._now,
                lambda: self._delivery.due,
                lambda: self._backlog,
                lambda tick: self._intake.add([tick]),
            )
            ticking = asyncio.create_task(ticks)
        await self._stop.wait()
        if ticking is not None:
            ticking.cancel()
        if await self._stop.in_time(self._edges.finish(self._committed)):
            self._query.end()
        else:
            self._ending.fail(self._stop.given_up)

    async def _committed(self) -> None:
        """Wait until Spark has committed all that was received."""
        while self._feed.committed < self._feed.received or self._intake.waiting:
            await asyncio.sleep(_LOOK)

    # -- in any thread -----------------------------------------------------------------------

    @property
    def _backlog(self) -> int:
        """Number of frames received and not delivered."""
        delivered = max(self._delivery.processed, self._feed.committed)
        return self._feed.received - delivered + self._intake.waiting

    def _abandon(self) -> None:
        self._delivery.abandoned = True
        self._query.end()

    # -- the query's thread ------------------------------------------------------------------

    def _batch_done(self, sequence: int, due: int | None) -> None:
        """Write what a restart must know before Spark commits a micro-batch."""
        if self._resume is not None:
            self._resume.note(Resume(sequence, due, self._feed.sources))

    def _run(self) -> None:
        problem = None
        try:
            self._query.run()
        except WallarooError as error:
            problem = self._delivery.ended or str(error)
            if self._delivery.ended_by is not None and self._own.checkpoint is not None:
                problem += way_past(self._delivery.ended_by)
        except Exception as error:  # noqa: BLE001 - a bug of ours must not end in silence
            _log.exception("the engine itself failed; this is a bug in it")
            problem = f"the engine itself failed: {type(error).__name__}: {error}"
        with contextlib.suppress(Exception):
            self._up.close()
        problem = self._stop.problem or self._ending.problem or problem
        lost = self._delivery.open_windows if self._own.checkpoint is None else 0
        self._result = self._edges.summary(
            "it was killed" if self._killed else problem,
            late=self._delivery.late,
            open_windows=lost,
            unprocessed=self._backlog,
        )
        self._done.set()
