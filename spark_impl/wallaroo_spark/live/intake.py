"""Appends records to the input log as fast as it takes them; in the edges' thread.

While the log is full nothing is read, and TCP makes the senders wait. The same holds for a full
disk: what was read and cannot be logged waits here until there is room. That is at most one read of
each connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from wallaroo.records import End, Tick, Value
from wallaroo.transport.edges import Edges
from wallaroo.transport.input_log import InputLogError, InputLogFullError
from wallaroo_spark.live.log_feed import LogFeed
from wallaroo_spark.live.watch import Watch

_RETRY = 0.5  # seconds between looks whether a full disk has room again

_log = logging.getLogger("wallaroo.spark")


class _Some(NamedTuple):
    """Records that arrived together: how many, what appends them to the log, and their source."""

    number: int
    append: Callable[[], None]
    source: str


class Intake:
    """Takes records from the edges, and gives them their arrival time.

    Args:
        feed: appends to the input log.
        edges: paused while no more should be read.
        failed: called with an error's text if the log can take nothing any more.
        clock: returns the arrival time of a record, in nanoseconds since 1970.
        watch: gets what is logged, for figures; `None`: no figures.
    """

    def __init__(
        self,
        feed: LogFeed,
        edges: Edges,
        failed: Callable[[str], None],
        clock: Callable[[], int],
        watch: Watch | None = None,
    ) -> None:
        self._watch = watch
        self._feed = feed
        self._edges = edges
        self._failed = failed
        self._clock = clock
        self._waiting: deque[_Some] = deque()  # for room on the disk
        self._closing: list[Callable[[], None]] = []  # to be called once they are durable

    @property
    def waiting(self) -> int:
        """Number of records that have been read and are not in the log."""
        return sum([some.number for some in self._waiting])

    def deliver(self, source: str, payloads: list[bytes]) -> None:
        """Take a source's frames, and pause the edges if the next ones have to wait."""
        append = partial(self._feed.append, source, payloads, self._clock())
        self._take(_Some(len(payloads), append, source))

    def take(self, records: Sequence[Value | Tick | End]) -> None:
        """Take other records in the same way; what arrives together arrives at one time."""
        now = self._clock()
        stamped = [replace(record, at=now) for record in records]
        first = stamped[0] if stamped else None
        source = first.source if isinstance(first, Value) else ""
        self._take(_Some(len(stamped), partial(self._feed.append_records, stamped), source))

    def _take(self, some: _Some) -> None:
        if self._waiting:
            self._waiting.append(some)
        elif not self._logged(some):
            self._waiting.append(some)
            self._edges.pause()
            self._retry_later()
        elif self._feed.full:
            self._edges.pause()

    def when_sequenced(self, close: Callable[[], None]) -> None:
        """Call `close`, in any thread, once all that was delivered is durable."""
        if self._waiting:
            self._closing.append(close)
        else:
            self._feed.when_durable(close)

    def go_on(self) -> None:
        """Take what waits, and read again, as far as there is room now."""
        if self._waiting:
            while self._waiting and self._logged(self._waiting[0]):
                self._waiting.popleft()
            if self._waiting:
                return
            _log.warning("there is room for the input log again")
            for close in self._closing:
                self._feed.when_durable(close)
            self._closing.clear()
        if not self._feed.full:
            self._edges.resume()

    def _logged(self, some: _Some) -> bool:
        """Append to the log; return whether it has taken them."""
        try:
            some.append()
        except InputLogFullError as error:
            if not self._waiting:
                _log.error("%s; nothing more is read until there is room", error)
            return False
        except InputLogError as error:
            self._failed(str(error))
            return False
        if self._watch is not None:
            self._watch.came(some.source, some.number, self._feed.received)
        return True

    def _retry_later(self) -> None:
        def retry() -> None:
            self.go_on()
            if self._waiting:
                self._retry_later()

        asyncio.get_running_loop().call_later(_RETRY, retry)


_LOOK = 0.05  # most seconds between looks at the clock, which may be set


async def write_ticks(
    clock: Callable[[], int],
    due: Callable[[], int | None],
    backlog: Callable[[], int],
    take: Callable[[Tick], None],
) -> None:
    """Write ticks until cancelled.

    Args:
        clock: returns the time, in nanoseconds since 1970.
        due: returns when something is due, once all that was received is processed.
        backlog: returns the number of records that are not processed.
        take: takes a tick; from then on it is in the backlog.
    """
    while True:
        at = due()
        now = clock()
        if at is not None and at <= now and not backlog():
            take(Tick(now))
        wait = _LOOK if at is None or at <= now else min((at - now) / 1e9, _LOOK)
        await asyncio.sleep(wait)
