"""Generator sources: they make messages by themselves, no faster than sinks take them (graph-4).

If there is an input log, it holds their values, encoded (`wallaroo.transport.logged`); after a
restart each goes on after its last one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType

from wallaroo.config import GenSourceConfig
from wallaroo.generating import generate
from wallaroo.overriding import override
from wallaroo.records import End, Value
from wallaroo.topology import Source as SourceNode
from wallaroo.transport.interfaces import Receiver, Source
from wallaroo.transport.logged import LoggedSource

_MOST = 64  # values handed on at once
_TURN = 0.005  # seconds that generators may run before the loop serves its connections


class Generators(Source):
    """The generator sources of an application. Methods belong to the loop's thread.

    Args:
        sources: all sources of the application; those of other kinds are left out.
        receiver: gets records, in order.
        clock: returns the arrival time of a record, in nanoseconds since 1970.
        logged: what a log has said of sources, behind which they go on (graph-4); the others begin.

    Raises:
        CheckpointError: a value cannot be read back.
    """

    def __init__(
        self,
        sources: Mapping[str, SourceNode],
        receiver: Receiver,
        clock: Callable[[], int],
        logged: Mapping[str, LoggedSource] = MappingProxyType({}),
    ) -> None:
        self._receiver = receiver
        self._running: dict[str, Iterator[Value | End]] = {}
        self._received: dict[str, int] = {}
        for name, source in sources.items():
            if isinstance(source.config, GenSourceConfig):
                self._received[name] = 0
                known = logged.get(name, LoggedSource())
                if not known.ended:
                    values = generate(name, source.config.generator, clock, known.value())
                    self._running[name] = islice(values, known.behind, None)
        self._paused = False
        self._scheduled = False

    @property
    @override
    def received(self) -> Mapping[str, int]:
        return self._received

    @override
    def start(self) -> None:
        self._schedule()

    @override
    def pause(self) -> None:
        self._paused = True

    @override
    def resume(self) -> None:
        self._paused = False
        self._schedule()

    @override
    async def stop(self) -> None:
        self.close()

    @override
    def close(self) -> None:  # the sources do not end: a restart goes on with them
        self._running.clear()

    def _schedule(self) -> None:
        if self._running and not self._paused and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        """Let each generator make a few values, one generator after the other."""
        self._scheduled = False
        end = time.monotonic() + _TURN
        while self._running and not self._paused and time.monotonic() < end:
            for name, values in list(self._running.items()):
                if not self._paused:
                    self._some(name, values, end)
        self._schedule()

    def _some(self, name: str, values: Iterator[Value | End], end: float) -> None:
        made: list[Value | End] = []
        for record in values:
            made.append(record)
            if isinstance(record, End):
                self._running.pop(name, None)
            if len(made) >= _MOST or time.monotonic() >= end:
                break
        self._received[name] += sum([isinstance(record, Value) for record in made])
        self._receiver.receive_records(made)
