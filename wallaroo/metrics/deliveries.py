"""How long it takes from the arrival of a read until its outputs are delivered.

An output is delivered when the peer's kernel has acknowledged it, or when it was written to the
pipe. Each read that makes outputs leaves a mark at the sinks that get them: how many outputs there
were in all. When a sink has delivered that many, the mark is passed. So when a sink stalls, every
read that waits there is measured as late, not only one.

All of it happens in the thread of the edges' loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from wallaroo.metrics.registry import Registry
from wallaroo.topology import SinkId

if TYPE_CHECKING:
    from wallaroo.metrics.following import Followed

_SOONEST, _LATEST = 0.002, 0.05  # seconds between looks while something waits


class Delivering(Protocol):
    """What is asked of a sink."""

    written: int
    pending: int

    def look(self) -> None:
        """Find out now what has been delivered."""


class _Read:
    """A read whose outputs are on their way.

    Attributes:
        source: its source; `""`: none, a tick.
        arrived: nanoseconds of `time.monotonic_ns`.
        frames: how many.
        open: number of sinks that have not delivered yet.
        followed: its record that is followed, if there is one.
    """

    __slots__ = ("arrived", "followed", "frames", "open", "source")

    def __init__(self, source: str, arrived: int, frames: int) -> None:
        self.source = source
        self.arrived = arrived
        self.frames = frames
        self.open = 0
        self.followed: Followed | None = None


class Deliveries:
    """Follows reads to their delivery.

    Args:
        registry: gets the durations.
        sinks: by id.
        made: returns how many outputs have been made for each sink; `None`: the sinks' own counts
            say it.
    """

    def __init__(
        self,
        registry: Registry,
        sinks: Mapping[SinkId, Delivering],
        made: Callable[[], Mapping[SinkId, int]] | None = None,
    ) -> None:
        self._registry = registry
        self._sinks = sinks
        self._arrivals: deque[_Read] = deque()
        self._all_made = made or (
            lambda: {id_: sink.written + sink.pending for id_, sink in sinks.items()}
        )
        self._made: Mapping[SinkId, int] = dict.fromkeys(sinks, 0)
        self._marks: dict[SinkId, deque[tuple[int, int, _Read]]] = {id_: deque() for id_ in sinks}
        self._timer: asyncio.TimerHandle | None = None
        self._pause = _SOONEST

    def came(self, source: str, records: int) -> None:
        """Note that records have arrived, and wait to be processed."""
        self._arrivals.append(_Read(source, time.monotonic_ns(), records))
        self._registry.backlog += records
        if source:
            self._registry.sources[source].backlog += records

    def handed_on(self, records: int, followed: Followed | None = None) -> None:
        """Note that the sinks have been given all outputs of the first waiting records.

        Args:
            records: how many.
            followed: one of them, if it was followed.
        """
        self._registry.backlog -= records
        self._registry.processed += records
        waiting = self._arrivals
        if not waiting:
            return
        first = waiting[0]
        done = first
        if records < first.frames:
            first.frames -= records
            done = _Read(first.source, first.arrived, records)
        else:
            waiting.popleft()
        if done.source:
            self._registry.sources[done.source].backlog -= records
        if followed is not None:
            done.followed = followed
            followed.arrived = time.time_ns() - (time.monotonic_ns() - done.arrived)
        before, self._made = self._made, self._all_made()
        for id_, total in self._made.items():
            if total > before[id_]:
                self._marks[id_].append((total, total - before[id_], done))
                done.open += 1
                self._sinks[id_].look()
        if done.open:
            self.look()
        elif followed is not None:
            self._end(followed)

    def replayed(self) -> None:
        """Note that the sinks have been given outputs of records that an earlier run received."""
        self._made = self._all_made()

    def look(self) -> None:
        """Pass the marks that sinks have reached; look again soon if some are left."""
        if self._pass() and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._pause, self._look_again)

    def _pass(self) -> bool:
        """Pass the marks that sinks have reached; return whether some are left."""
        now = time.monotonic_ns()
        left = progress = False
        with self._registry.lock:
            for id_, marks in self._marks.items():
                written = self._sinks[id_].written
                while marks and marks[0][0] <= written:
                    _, outputs, read = marks.popleft()
                    self._passed(id_, outputs, read, now - read.arrived)
                    progress = True
                left = left or bool(marks)
                self._registry.sinks[id_].oldest = marks[0][2].arrived / 1e9 if marks else None
        if progress:
            self._pause = _SOONEST
        return left

    def close(self) -> None:
        """Look once more, for what was delivered since the last time; then no more."""
        if self._timer is not None:
            self._timer.cancel()
        self._ask_sinks()
        self._pass()

    def _look_again(self) -> None:
        self._timer = None
        self._pause = min(2 * self._pause, _LATEST)
        self._ask_sinks()
        self.look()

    def _ask_sinks(self) -> None:
        for id_, marks in self._marks.items():
            if marks:
                self._sinks[id_].look()

    def _passed(self, id_: SinkId, outputs: int, read: _Read, took: int) -> None:
        self._registry.sinks[id_].latency.add(took, outputs)
        read.open -= 1
        if not read.open and read.source:
            self._registry.sources[read.source].latency.add(took, read.frames)
        if read.followed is not None:
            read.followed.delivered[id_] = time.time_ns()
            if not read.open:
                self._end(read.followed)

    def _end(self, followed: Followed) -> None:
        followed.ended = time.time_ns()
        if self._registry.on_followed is not None:
            self._registry.on_followed(followed)
