"""The reference engine live: TCP in, a machine, TCP out, in a thread with an event loop of its own.

The caller's thread is free to wait, to show progress and to take signals. User code runs in the
server's thread. If it never returns, the caller can still end the process.

A sender is told that all was taken (frame-4) once the machine has processed it.

A stop goes in order (stop-1) and ends after `stop_timeout` seconds at the latest
(`wallaroo.transport.stop_clock`).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from wallaroo.engine import Handle, Progress, ServeOptions, Summary
from wallaroo.records import End, Value
from wallaroo.topology import Application
from wallaroo.transport.edges import Edges
from wallaroo.transport.listener import Address
from wallaroo.transport.loop_thread import LoopThread
from wallaroo.transport.stop_clock import StopClock
from wallaroo_reference.machine import Machine
from wallaroo_reference.serving.feeder import Feeder

_LOOK = 0.05  # seconds between looks whether user code has returned in the end
_GRACE = 1.0  # seconds the server's thread has to answer after a stop's time is over


def serve(
    application: Application, make_machine: Callable[[], Machine], options: ServeOptions
) -> Handle:
    """Listen on the application's sources and run until stopped.

    Args:
        application: what to run.
        make_machine: makes a machine for it, without state.
        options: how.

    Raises:
        ListenError: an address cannot be listened on.
        DeadLetterFileError: the file for dead letters cannot be opened.
        WallarooParameterError: stdin, or a sink, is not possible as it is asked for.
    """
    return Server(application, make_machine, options)


class Server:
    """A served application: `wallaroo.engine.Handle`."""

    def __init__(
        self,
        application: Application,
        make_machine: Callable[[], Machine],
        options: ServeOptions,
        addresses: Mapping[str, Address] | None = None,
        clock: Callable[[], int] = time.time_ns,
        thread: LoopThread | None = None,
    ) -> None:
        self._again = partial(Server, application, make_machine, options, clock=clock)
        self._options = options
        self._done = threading.Event()
        self._result: Summary | None = None
        self._task: asyncio.Task[None]
        self._machine = make_machine()
        self._thread = thread or LoopThread("wallaroo-reference")
        self._unended = set(application.sources)
        self._edges = Edges(application, options, self._thread, self, addresses, clock)
        self._clock = StopClock(options, self._thread, self._edges, lambda: self._machine.sequence)
        self._feeder = Feeder(
            self._machine,
            self._edges,
            failed=self._fail,
            clock=clock,
            timed=application.time_decides,
        )
        self._now = clock
        self._edges.open(self._start)

    @property
    def addresses(self) -> Mapping[str, Address]:
        """Where each source listens."""
        return self._edges.addresses

    def progress(self) -> Progress:
        """Return what it has done so far."""
        return self._edges.progress({})

    def wait(self, timeout: float | None = None) -> Summary | None:
        """Wait until the run has ended, `timeout` seconds at most; `None`: it has not."""
        end = None if timeout is None else time.monotonic() + timeout
        while not self._done.wait(_LOOK if end is None else min(_LOOK, end - time.monotonic())):
            if self._is_stuck():
                return self._summary("user code has not returned since the stop was asked for")
            if end is not None and time.monotonic() >= end:
                return None
        return self._result

    def stop(self) -> None:
        """Ask for a clean stop (stop-1) and return at once."""
        self._clock.request()

    def kill(self) -> None:
        """End at once; the system may still send what it has been given."""
        self._thread.post(self._task.cancel)
        self._done.wait(_GRACE)

    def restart(self) -> Handle:
        """Start again where the sources were, without state: there is no checkpoint."""
        return self._again(addresses=self.addresses)

    # -- all that follows runs in the server's thread ---------------------------------------------

    def _start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        try:
            await self._clock.wait()
            if not await self._clock.in_time(self._edges.finish(self._feeder.idle)):
                self._clock.fail(self._clock.given_up(self._feeder.unprocessed))
        except asyncio.CancelledError:
            self._clock.problem = "it was killed"
        finally:
            self._end()

    def _end(self) -> None:
        self._edges.close()
        self._result = self._summary(self._clock.problem)
        self._done.set()
        asyncio.get_running_loop().stop()

    def deliver(self, source: str, payloads: list[bytes]) -> None:
        """See `wallaroo.transport.edges.Core`."""
        self._feeder.deliver(source, payloads)

    def when_sequenced(self, close: Callable[[], None]) -> None:
        """See `wallaroo.transport.edges.Core`.

        There is no log: what is in the sequence and not processed is lost if the process dies.
        """
        self._feeder.when_processed(close)

    def sinks_have_room(self) -> None:
        """See `wallaroo.transport.edges.Core`."""
        self._feeder.go_on()

    def take(self, records: list[Value | End]) -> None:
        """See `wallaroo.transport.edges.Core`; once all sources have ended the run is over."""
        self._feeder.take(records)
        self._unended -= {record.source for record in records if isinstance(record, End)}
        if not self._unended:
            self._clock.input_ended(None)

    def input_ended(self, problem: str | None) -> None:
        """See `wallaroo.transport.edges.Core`: what stdin stands in for ends (time-5)."""
        if problem is not None:
            self._clock.input_ended(problem)
        self.take([End(name, self._now()) for name in self._edges.listened_to & self._unended])

    def outputs_broken(self, problem: str) -> None:
        """See `wallaroo.transport.edges.Core`."""
        self._fail(problem)
        self._feeder.abandon()

    def _fail(self, problem: str) -> None:
        """End the run: receive and process nothing more; deliver the outputs that were made."""
        self._edges.refuse()
        self._clock.fail(problem)

    # -- this in both threads ---------------------------------------------------------------------

    def _is_stuck(self) -> bool:
        return self._clock.requested_for() > self._options.stop_timeout + _GRACE

    def _summary(self, problem: str | None) -> Summary:
        return self._edges.summary(
            problem,
            self._machine.findings,
            late=self._machine.late,
            open_windows=0 if self._is_stuck() else self._machine.open_windows,
        )
