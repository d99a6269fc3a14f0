"""Generator sources: they make messages by themselves, no faster than sinks take them (graph-4).

Where there is an input log, their values are in it, encoded; after a restart each goes on behind
its last one.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import Any

from wallaroo.config import GenSourceConfig
from wallaroo.generating import generate
from wallaroo.records import End, Value
from wallaroo.topology import Source
from wallaroo.user_code.failure import describe_error

_MOST = 64  # values handed on at once
_TURN = 0.005  # seconds that generators may run before the loop serves its connections

_PICKLED, _UNPORTABLE = b"p", b"u"
"""What an encoded value begins with."""


@dataclass(frozen=True)
class GeneratorPosition:
    """Where a generator source stands in a log that goes on.

    Args:
        ended: it has ended.
        last: its latest value that can be pickled; `None`: there is none.
        behind: number of its values after that one, which are made once more and left out.
    """

    ended: bool = False
    last: Any = None
    behind: int = 0


def encoded(value: Any) -> bytes:
    """Return a generator's value as a log holds it; if it cannot be pickled, why."""
    try:
        blob = pickle.dumps(value, 5)
        pickle.loads(blob)  # noqa: S301 - our own bytes
    except Exception as error:  # noqa: BLE001 - user code: what it makes may not be portable
        text = f"{type(error).__name__}: {describe_error(error)}"
        return _UNPORTABLE + text.encode("utf-8", "surrogatepass")
    return _PICKLED + blob


def decoded(blob: bytes) -> tuple[bytes, str | None]:
    """Return the pickled value that `encoded` made, or what hindered it; one of them is empty."""
    if blob.startswith(_UNPORTABLE):
        return b"", blob[1:].decode("utf-8", "surrogatepass")
    return blob[1:], None


class Generators:
    """The generator sources of an application. Methods belong to the loop's thread.

    Args:
        sources: all sources of the application; those of other kinds are left out.
        take: takes records, in order; it may call `pause`.
        clock: returns the arrival time of a record, in nanoseconds since 1970.
        positions: where those stand that go on, by name; the others begin.

    Attributes:
        received: values per source.
    """

    def __init__(
        self,
        sources: Mapping[str, Source],
        take: Callable[[list[Value | End]], None],
        clock: Callable[[], int],
        positions: Mapping[str, GeneratorPosition] = MappingProxyType({}),
    ) -> None:
        self._take = take
        self._clock = clock
        self._sources = sources
        self._running: dict[str, Iterator[Value | End]] = {}
        self.received: dict[str, int] = {}
        for name, source in sources.items():
            if isinstance(source.config, GenSourceConfig):
                self.received[name] = 0
                at = positions.get(name, GeneratorPosition())
                values = generate(name, source.config.generator, clock, at.last)
                if not at.ended:
                    self._running[name] = islice(values, at.behind, None)
        self._paused = False
        self._scheduled = False

    def go_on_behind(self, last: Mapping[str, Value | End]) -> None:
        """Go on behind records of an earlier run, before anything is made (graph-4).

        Args:
            last: for each source the last record that the log holds; none: it begins.
        """
        for name, record in last.items():
            config = self._sources[name].config
            if isinstance(record, End):
                self._running.pop(name, None)
            elif isinstance(config, GenSourceConfig):
                generator = config.generator
                self._running[name] = generate(name, generator, self._clock, record.value)

    def start(self) -> None:
        """Begin, in the running loop."""
        self._schedule()

    def pause(self) -> None:
        """Make nothing more until `resume`."""
        self._paused = True

    def resume(self) -> None:
        """Go on."""
        self._paused = False
        self._schedule()

    def stop(self) -> None:
        """Make nothing more; the sources do not end."""
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
        self.received[name] += sum([isinstance(record, Value) for record in made])
        self._take(made)
