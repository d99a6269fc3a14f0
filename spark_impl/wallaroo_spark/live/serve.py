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
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from wallaroo.engine import Handle, Progress, ServeOptions, Summary
from wallaroo.errors import WallarooError
from wallaroo.metrics.silence import Silence
from wallaroo.overriding import override
from wallaroo.topology import Application
from wallaroo.transport.listener import Address
from wallaroo.transport.skipping import way_past
from wallaroo_spark.jvm.session import borrowed
from wallaroo_spark.jvm.temporary import TemporaryDirectory
from wallaroo_spark.live.intake import write_ticks
from wallaroo_spark.live.options import SparkOptions
from wallaroo_spark.live.remote import (
    FILE_MANAGER,
    CheckpointUrl,
    Remote,
    refuse_other_sources,
)
from wallaroo_spark.live.run import opened_run
from wallaroo_spark.live.storage import check_place

_LOOK = 0.01  # seconds between looks whether all is committed

_log = logging.getLogger("wallaroo.spark")


class Server(Handle):
    """A served application.

    All its parts but Spark are open when the constructor returns (`live.run`), so that errors are
    found before Spark starts.

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
        self._remote: Remote | None = None
        with contextlib.ExitStack() as up:
            directory = self._directory(up)
            with nullcontext() if self._remote is None else self._remote.named():
                self._run = up.enter_context(
                    opened_run(application, options, own, directory, addresses, clock, self._remote)
                )
            self._up = up.pop_all()  # what is to be closed, the last opened first
        feed, delivery = self._run.feed, self._run.delivery
        self._silence = Silence(
            application, lambda: feed.arrivals, lambda: delivery.open_windows, options.metrics
        )
        if options.metrics is not None:
            options.metrics.state = "starting Spark"
        self._run.loop.post(self._start)
        threading.Thread(target=self._work, name="wallaroo-spark", daemon=True).start()

    def _directory(self, up: contextlib.ExitStack) -> Path:
        """Return the checkpoint's directory: the user's, or a temporary one."""
        place = self._own.checkpoint
        if isinstance(place, CheckpointUrl):
            return self._copy(place, up)
        if place is not None:
            check_place(place, self._application)
            return place
        temporary = self._temporary = self._temporary or TemporaryDirectory("run")
        up.callback(lambda: None if self._killed else temporary.close())  # a restart goes on in it
        return temporary.path / "checkpoint"

    def _copy(self, url: CheckpointUrl, up: contextlib.ExitStack) -> Path:
        """Return a temporary directory with a copy of the checkpoint at a URL; it starts Spark."""
        refuse_other_sources(self._application, url, self._own.record)
        temporary = TemporaryDirectory("run")
        up.callback(temporary.close)
        settings = self._own.settings
        _log.info("starting Spark, which reads the checkpoint %s", url)
        with self._options.interruptible():
            session = up.enter_context(borrowed(settings))
            self._remote = Remote(
                session.spark,
                url,
                temporary.path / "checkpoint",
                resume=self._own.resume or bool(self._own.skip_record),
                chosen=FILE_MANAGER in settings.conf,
            )
        return temporary.path / "checkpoint"

    @property
    @override
    def addresses(self) -> Mapping[str, Address]:
        return self._run.edges.addresses

    @override
    def progress(self) -> Progress:
        return self._run.edges.progress(
            {
                "batches": self._run.delivery.batches,
                "batch_ms": round(1000 * self._run.query.batch_seconds, 1),
                "backlog": self._run.backlog,
                "entities": self._run.delivery.entities,
                "windows": self._run.delivery.open_windows,
            }
        )

    @override
    def wait(self, timeout: float | None = None) -> Summary | None:
        self._done.wait(timeout)
        return self._result

    @override
    def stop(self) -> None:
        self._run.stop.request()

    @override
    def kill(self) -> None:
        if not self._done.is_set():
            self._killed = True
            self._run.query.kill()
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
        self._silence.start()
        self._serving = asyncio.get_running_loop().create_task(self._serve())
        self._run.intake.stop_if_all_have_ended()

    async def _serve(self) -> None:
        """Write ticks until a stop is asked for; then deliver what was received, and end."""
        ticking = None
        application = self._application
        if application.window_steps and not application.time_stands_still:
            ticks = write_ticks(
                self._now,
                lambda: self._run.delivery.due,
                lambda: self._run.backlog,
                lambda tick: self._run.intake.add([tick]),
            )
            ticking = asyncio.create_task(ticks)
        await self._run.stop.wait()
        self._silence.close()
        if ticking is not None:
            ticking.cancel()
        if await self._run.stop.finish(self._committed):
            self._run.query.end()
        else:
            self._run.ending.fail(self._run.stop.given_up)

    async def _committed(self) -> None:
        """Wait until Spark has committed all that was received."""
        while self._run.feed.committed < self._run.feed.received or self._run.intake.waiting:
            await asyncio.sleep(_LOOK)

    # -- the query's thread ------------------------------------------------------------------

    def _work(self) -> None:
        problem = None
        try:
            self._run.query.run()
        except WallarooError as error:
            problem = self._run.delivery.ended or str(error)
            if self._run.delivery.ended_by is not None and self._own.checkpoint is not None:
                problem += way_past(self._run.delivery.ended_by)
        except Exception as error:  # noqa: BLE001 - a bug of ours must not end in silence
            _log.exception("the engine itself failed; this is a bug in it")
            problem = f"the engine itself failed: {type(error).__name__}: {error}"
        with contextlib.suppress(Exception):
            self._up.close()
        problem = self._run.stop.problem or self._run.ending.problem or problem
        if self._remote is not None and problem is not None:
            problem = self._remote.renamed(problem)
        lost = self._run.delivery.open_windows if self._own.checkpoint is None else 0
        self._result = replace(
            self._run.edges.summary("it was killed" if self._killed else problem),
            late=dict(self._run.delivery.late),
            open_windows=lost,
            unprocessed=self._run.backlog,
            tombstones=dict(self._run.delivery.tombstones),
            silent=self._silence.partitions,
        )
        self._done.set()
