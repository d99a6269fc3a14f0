"""When a served run has to stop, and when a stop has taken too long (stop-1).

Somebody asks for a stop (a signal, a failure), or the input ends. A stop that was asked for has
`stop_timeout` seconds. At the end of the input, what was received is processed however long it
takes, and a reader of standard output may be slow. Only a sink's peer that takes nothing for
`stop_timeout` seconds is given up. If a signal comes meanwhile, that is a stop that was asked for.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from wallaroo.engine import ServeOptions
from wallaroo.transport.edges import Edges
from wallaroo.transport.threads import LoopThread

_LOOK = 0.05  # seconds between looks whether a stop is overdue


class StopClock:
    """The stop of one run.

    Args:
        options: of the run.
        loop: the thread of the edges.
        edges: what is delivered there is progress, and is waited for.
        progress: returns what changes whenever the engine goes on.
        unprocessed: returns how many records were received and are not processed.
        counts_from_progress: the time of a stop that was asked for counts from the last progress,
            not from the request: for engines whose steps take long.

    Attributes:
        problem: why the run ended early, if it did; the first reason stays.
    """

    def __init__(
        self,
        options: ServeOptions,
        loop: LoopThread,
        edges: Edges,
        progress: Callable[[], object],
        unprocessed: Callable[[], int],
        *,
        counts_from_progress: bool = False,
    ) -> None:
        self.problem: str | None = None
        self._options = options
        self._loop = loop
        self._edges = edges
        self._progress = progress
        self._unprocessed = unprocessed
        self._counts_from_progress = counts_from_progress
        self._begun = asyncio.Event()
        self._hurry = False
        self._requested_at: float | None = None  # monotonic
        self._last_seen = 0.0  # monotonic; when there was progress, or when the time began to count
        self._mark: object = None

    # -- in any thread -----------------------------------------------------------------------

    def request(self) -> None:
        """Ask for a stop, and return at once."""
        if self._requested_at is None:
            self._requested_at = time.monotonic()
        self._loop.post(self._request)

    def fail(self, problem: str) -> None:
        """Ask for a stop because of a problem."""
        self.problem = self.problem or problem
        self.request()

    def requested_for(self) -> float:
        """Return how many seconds ago a stop was asked for; 0 if it was not."""
        return 0.0 if self._requested_at is None else time.monotonic() - self._requested_at

    # -- in the loop's thread ----------------------------------------------------------------

    def input_ended(self, problem: str | None) -> None:
        """Begin a stop without hurry: the input has ended, or standard input has a problem."""
        self.problem = self.problem or problem
        self._begun.set()

    async def wait(self) -> None:
        """Wait until a stop has to begin."""
        await self._begun.wait()

    async def finish(self, processed: Callable[[], Awaitable[object]]) -> bool:
        """End in order and return `True`; or give it up in time, and return `False` (stop-1).

        Args:
            processed: waits until what was received is processed.
        """
        return await self.in_time(self._finished(processed))

    async def in_time(self, work: Coroutine[Any, Any, None]) -> bool:
        """Do the work of a stop and return `True`; or give it up in time, and return `False`."""
        self._last_seen, self._mark = time.monotonic(), self._now()
        return await unless(self._overdue, work)

    @property
    def given_up(self) -> str:
        """The text for a stop that was given up."""
        return f"the stop was given up after {self._options.stop_timeout:g} s"

    async def _finished(self, processed: Callable[[], Awaitable[object]]) -> None:
        await self._edges.finish(processed)
        if self.problem is None:  # else peers may have more than this run has come to
            await self._edges.kept_by_peers()

    def _request(self) -> None:
        self._hurry = True
        self._begun.set()

    def _now(self) -> tuple[object, int]:
        return self._progress(), self._edges.written

    def _overdue(self) -> bool:
        now = time.monotonic()
        before, self._mark = self._mark, self._now()
        if not self._hurry:
            at_work = not self._edges.pending and self._unprocessed() > 0
            reading = self._edges.pending and self._options.stdout is not None
            if self._mark != before or at_work or reading:
                self._last_seen = now
        elif not self._counts_from_progress and self._requested_at is not None:
            self._last_seen = self._requested_at
        elif self._mark != before:
            self._last_seen = now
        return now - self._last_seen > self._options.stop_timeout


async def unless(overdue: Callable[[], bool], work: Coroutine[Any, Any, None]) -> bool:
    """Do `work` and return `True`; or give it up once `overdue` says so, and return `False`."""
    task = asyncio.create_task(work)
    try:
        while True:
            done, _ = await asyncio.wait({task}, timeout=_LOOK)
            if done:
                task.result()
                return True
            if overdue():
                return False
    finally:
        task.cancel()
