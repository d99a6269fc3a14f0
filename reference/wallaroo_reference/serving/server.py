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
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from wallaroo.engine import Handle, Progress, ServeOptions, Summary
from wallaroo.overriding import override
from wallaroo.topology import Application
from wallaroo.transport.listener import Address
from wallaroo.transport.threads import LoopThread
from wallaroo_reference.machine import Machine
from wallaroo_reference.options import CheckpointOptions
from wallaroo_reference.serving.run import opened_run

_LOOK = 0.05  # seconds between looks whether user code has returned in the end
_log = logging.getLogger("wallaroo.reference")

_GRACE = 1.0  # seconds the server's thread has to answer after a stop's time is over


class Server(Handle):
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
        asked = checkpoint or CheckpointOptions()
        self._application = application
        self._stop_timeout = options.stop_timeout
        self._lasts = asked.checkpoint is not None  # windows that are open go on in the next run
        self._clock = clock
        self._done = threading.Event()
        self._result: Summary | None = None
        self._task: asyncio.Task[None]
        self._thread = thread or LoopThread("wallaroo-reference")
        self._run = opened_run(
            application, make_machine(), options, asked, addresses, clock, self._thread
        )
        self._run.edges.open(self._start)

    @property
    @override
    def addresses(self) -> Mapping[str, Address]:
        return self._run.edges.addresses

    @override
    def progress(self) -> Progress:
        durable = self._run.durable
        return self._run.edges.progress({} if durable is None else durable.details)

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
        self._run.stop.request()

    @override
    def kill(self) -> None:
        self._thread.post(self._task.cancel)
        self._done.wait(_GRACE)

    @override
    def restart(self) -> Handle:
        return self._again(addresses=self.addresses)

    # -- in the server's thread ------------------------------------------------------------------

    def _start(self) -> None:
        run = self._run
        if run.feeder.watch is not None:
            run.feeder.watch.start()
        run.silence.start()
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._serve())
        if run.durable is not None:
            loop.call_soon(run.durable.start, self._caught_up)
        else:
            run.edges.complete()
            run.feeder.receive_records(run.kafka.go_on(self._clock()))

    def _caught_up(self) -> None:
        """The log's records are processed: the run goes on, unless all sources have ended."""
        sources = self._run.machine.moment().sources
        self._run.inlet.caught_up({name for name, source in sources.items() if source.ended})

    async def _serve(self) -> None:
        run = self._run
        try:
            await run.stop.wait()
            if not await run.stop.finish(self._idle):
                run.stop.fail(run.stop.given_up)
            elif not await run.stop.in_time(self._last_checkpoint()):
                _log.warning("the last checkpoint is not stored; a restart repeats outputs")
        except asyncio.CancelledError:
            run.stop.problem = "it was killed"
        finally:
            self._end()

    async def _idle(self) -> None:
        """Wait until what was received is processed, and its outputs may leave."""
        await self._run.feeder.idle()
        self._run.feeder.stop_ticking()
        if self._run.durable is not None:
            await self._run.durable.idle()

    async def _last_checkpoint(self) -> None:
        if self._run.durable is not None and self._run.stop.problem is None:
            await self._run.durable.last_checkpoint()

    def _end(self) -> None:
        run = self._run
        if run.feeder.watch is not None:
            run.feeder.watch.close()
        run.silence.close()
        run.feeder.abandon()
        if run.durable is not None:
            run.durable.close()
        run.edges.close()
        self._result = self._summary(run.stop.problem)
        self._done.set()
        asyncio.get_running_loop().stop()

    # -- in both threads -------------------------------------------------------------------------

    def _is_stuck(self) -> bool:
        return self._run.stop.requested_for() > self._stop_timeout + _GRACE

    def _summary(self, problem: str | None) -> Summary:
        run = self._run
        return replace(
            run.edges.summary(problem),
            findings=tuple(run.machine.findings),
            late=run.machine.late,
            open_windows=0 if self._is_stuck() or self._lasts else run.machine.open_windows,
            unprocessed=run.intake.unprocessed,
            tombstones=self._tombstones,
            silent=run.silence.partitions,
        )

    @property
    def _tombstones(self) -> dict[str, int]:
        """Number of tombstones that were not for their source's decoder (kafka-7)."""
        configs = {name: source.config for name, source in self._application.sources.items()}
        return {
            name: count
            for name, count in self._run.feeder.tombstones.items()
            if count and not getattr(configs[name].decoder, "whole", False)
        }
