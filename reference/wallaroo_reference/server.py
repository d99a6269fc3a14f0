"""The reference engine live: TCP in, a machine, TCP out, in a thread with an event loop of its own.

The caller's thread is free to wait, to show progress and to take signals; user code runs in the
server's, so that code which never returns cannot keep the caller from giving up on it.

A sender is told that all was taken (frame-4) once the machine has processed it.

A stop goes in order (stop-1) and ends after `stop_timeout` seconds at the latest. When the end of
stdin was the reason nobody is in a hurry: then the seconds count from the last thing that went on,
and a slow reader of stdout is waited for without end.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial

from wallaroo.engine import Handle, Progress, ServeOptions, Summary
from wallaroo.topology import Application
from wallaroo.transport.edges import Edges, given_up, unless_overdue
from wallaroo.transport.listener import Address
from wallaroo.transport.loop_thread import LoopThread
from wallaroo_reference.machine import Machine
from wallaroo_reference.server_feeder import Feeder

_LOOK = 0.05  # seconds between looks whether user code has returned after all
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
    ) -> None:
        self._again = partial(Server, application, make_machine, options)
        self._options = options
        self._done = threading.Event()
        self._result: Summary | None = None
        self._problem: str | None = None
        self._asked_at: float | None = None  # monotonic; when a stop was asked for
        self._patient = False
        self._asked = asyncio.Event()
        self._task: asyncio.Task[None]
        self._machine = make_machine()
        self._thread = LoopThread("wallaroo-reference")
        self._edges = Edges(
            application,
            options,
            self._thread,
            deliver=self._deliver,
            lines_ended=self._on_lines_ended,
            broken=self._on_broken,
            on_room=self._on_room,
            when_sequenced=self._when_sequenced,
            addresses=addresses,
        )
        self._feeder = Feeder(self._machine, self._edges, failed=self._fail)
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
        if self._asked_at is None:
            self._asked_at = time.monotonic()
        self._thread.post(self._ask)

    def kill(self) -> None:
        """End at once; what the system has been handed it may still send."""
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
            await self._asked.wait()
            self._seen, self._mark = time.monotonic(), self._work_done()
            if not await unless_overdue(self._edges.finish(self._feeder.idle), self._overdue):
                late = given_up(self._options.stop_timeout, self._feeder.unprocessed)
                self._problem = self._problem or late
        except asyncio.CancelledError:
            self._problem = "it was killed"
        finally:
            self._end()

    def _overdue(self) -> bool:
        """Whether a stop has had its time."""
        if self._patient:
            # A signal may still come, and counts from then.
            last, self._mark = self._mark, self._work_done()
            if self._options.stdout is not None or self._mark != last:
                self._seen = time.monotonic()
        elif self._asked_at is not None:
            self._seen = self._asked_at
        return time.monotonic() - self._seen > self._options.stop_timeout

    def _work_done(self) -> tuple[int, int]:
        """Return what changes whenever something goes on."""
        return self._machine.sequence, self._edges.written

    def _end(self) -> None:
        self._edges.close()
        self._result = self._summary(self._problem)
        self._done.set()
        asyncio.get_running_loop().stop()

    def _deliver(self, source: str, payloads: list[bytes]) -> None:
        self._feeder.deliver(source, payloads)

    def _when_sequenced(self, close: Callable[[], None]) -> None:
        # There is no log: what has its place in the sequence and is not processed, a death loses.
        self._feeder.when_processed(close)

    def _on_room(self) -> None:
        self._feeder.go_on()

    def _ask(self) -> None:
        self._patient = False
        self._asked.set()

    def _on_lines_ended(self, problem: str | None) -> None:
        self._problem = self._problem or problem
        self._patient = not self._asked.is_set()
        self._asked.set()

    def _fail(self, problem: str) -> None:
        """End the run: nothing more is received or processed; what is out is delivered."""
        self._problem = self._problem or problem
        self._edges.refuse()
        if self._asked_at is None:
            self._asked_at = time.monotonic()
        self._ask()

    def _on_broken(self, problem: str) -> None:
        self._fail(problem)
        self._feeder.abandon()

    # -- and this in both -------------------------------------------------------------------------

    def _is_stuck(self) -> bool:
        if self._asked_at is None:
            return False
        return time.monotonic() - self._asked_at > self._options.stop_timeout + _GRACE

    def _summary(self, problem: str | None) -> Summary:
        return self._edges.summary(problem, self._machine.findings)
