"""Generator sources: they make messages by themselves, no faster than sinks take them (graph-4).

If there is an input log, it holds their values, encoded; after a restart each goes on after its
last one.
"""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from wallaroo.components import Generator
from wallaroo.config import GenSourceConfig
from wallaroo.generating import generate
from wallaroo.overriding import override
from wallaroo.records import End, Unportable, Value
from wallaroo.topology import Source as SourceNode
from wallaroo.transport.identity import CheckpointError
from wallaroo.transport.interfaces import Receiver, Source
from wallaroo.transport.kafka.position import Position
from wallaroo.transport.skipping import SkippedPayload
from wallaroo.user_code.failure import describe_error

_MOST = 64  # values handed on at once
_TURN = 0.005  # seconds that generators may run before the loop serves its connections

_PICKLED, _UNPORTABLE = b"p", b"u"
"""What an encoded value begins with."""


@dataclass(frozen=True)
class LoggedSource:
    """What a log has said of a source; a generator or a Kafka source goes on from there.

    Args:
        ended: it has ended.
        last: its latest value that can be read back, as the log holds it; empty if there is none.
        behind: number of its values after that one, none of which can be read back. A restart has
            them made again, to get to the next one, and leaves them out.
        position: where a Kafka source stands.
        partitions: of a Kafka source, those that have ended.
    """

    ended: bool = False
    last: bytes = b""
    behind: int = 0
    position: Position | None = None
    partitions: Mapping[int, LoggedSource] = field(default_factory=dict)

    def after(self, blob: bytes) -> LoggedSource:
        """Return what is known after a further value, given as the log holds it."""
        if decoded(blob)[1] is None:
            return LoggedSource(last=blob)
        return replace(self, behind=self.behind + 1)

    def value(self) -> Any:
        """Return the latest value that can be read back; `None` if there is none.

        Raises:
            CheckpointError: not by this code.
        """
        return _read_back(self.last) if self.last else None


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
    """Return the pickled value that `encoded` kept, or why there is none; the other is empty."""
    if isinstance(blob, SkippedPayload):
        return b"", blob.why
    if blob.startswith(_UNPORTABLE):
        return b"", blob[1:].decode("utf-8", "surrogatepass")
    return blob[1:], None


@dataclass(frozen=True, slots=True)
class LoggedValue(Value):
    """A generator's value that a log holds; its `value` is `Unportable` if that is all it holds.

    Args:
        blob: what the log holds.
    """

    blob: bytes = b""

    @property
    def as_logged(self) -> Value:
        """The record for `InputLog.append_records`."""
        return Value(self.source, self.blob, self.at)


def to_log(record: Value) -> LoggedValue:
    """Return a value that a generator has made, in the form in which a log holds it."""
    blob = encoded(record.value)
    hindered = decoded(blob)[1]
    value = record.value if hindered is None else Unportable(hindered)
    return LoggedValue(record.source, value, record.at, blob)


def from_log(record: Value) -> LoggedValue:
    """Return a value that is read back from a log.

    Args:
        record: as `InputLog` returns it.

    Raises:
        CheckpointError: it cannot be read back by this code.
    """
    blob = record.value
    hindered = decoded(blob)[1]
    value = _read_back(blob) if hindered is None else Unportable(hindered)
    return LoggedValue(record.source, value, record.at, blob)


def _read_back(blob: bytes) -> Any:
    try:
        return pickle.loads(decoded(blob)[0])  # noqa: S301 - our own log's
    except Exception as error:
        raise CheckpointError(
            "a value of a generator cannot be read back from the checkpoint: "
            f"{type(error).__name__}: {error}. Run the application that made it, or begin anew "
            "with an empty directory"
        ) from error


class Generators(Source):
    """The generator sources of an application. Methods belong to the loop's thread.

    Args:
        sources: all sources of the application; those of other kinds are left out.
        receiver: gets records, in order.
        clock: returns the arrival time of a record, in nanoseconds since 1970.
    """

    def __init__(
        self,
        sources: Mapping[str, SourceNode],
        receiver: Receiver,
        clock: Callable[[], int],
    ) -> None:
        self._receiver = receiver
        self._clock = clock
        self._generators: dict[str, Generator] = {}
        self._running: dict[str, Iterator[Value | End]] = {}
        self._received: dict[str, int] = {}
        for name, source in sources.items():
            if isinstance(source.config, GenSourceConfig):
                self._received[name] = 0
                self._generators[name] = source.config.generator
                self._running[name] = generate(name, source.config.generator, clock)
        self._paused = False
        self._scheduled = False

    def go_on_behind(self, logged: Mapping[str, LoggedSource]) -> None:
        """Continue after what a log holds; to be called before anything is made (graph-4).

        Args:
            logged: what it has said of sources; the others begin.

        Raises:
            CheckpointError: a value cannot be read back.
        """
        for name, source in logged.items():
            if source.ended:
                self._running.pop(name, None)
            elif name in self._generators:
                values = generate(name, self._generators[name], self._clock, source.value())
                self._running[name] = islice(values, source.behind, None)

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
