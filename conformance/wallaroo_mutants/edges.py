"""Mutants of the edges, which only a live server shows: frames, sinks that go away, stops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from wallaroo_conformance.killing import Mutant
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.engine import ReferenceEngine
from wallaroo_reference.meter import Meter
from wallaroo_reference.serving.feeder import Feeder
from wallaroo_reference.serving.server import Server

from wallaroo.engine import Capabilities, Case, Summary
from wallaroo.errors import UnsupportedTopology
from wallaroo.frames import FrameParser
from wallaroo.records import End
from wallaroo.trace import Trace
from wallaroo.transport.connection import Connection
from wallaroo.transport.sink import TCPSink
from wallaroo_mutants.delivering import DELIVERY_MUTANTS
from wallaroo_mutants.engine import edge
from wallaroo_mutants.recovering import RECOVERY_EQUIVALENT, RECOVERY_MUTANTS


def _split_header_lost(original: Any) -> Any:
    def feed(self: FrameParser, data: bytes) -> list[bytes]:
        if not self.pending and len(data) < self._header_length:
            return []
        payloads: list[bytes] = original(self, data)
        return payloads

    return feed


def _header_at_the_end_lost(original: Any) -> Any:
    def updated(self: Connection, nbytes: int) -> None:
        original(self, nbytes)
        if nbytes == len(self.get_buffer(0)) and self._parser.pending < self._parser._header_length:
            self._parser._buffer.clear()

    return updated


def _empty_lost(original: Any) -> Any:
    return lambda self, data: [payload for payload in original(self, data) if payload]


def _none_before_a_refusal(original: Any) -> Any:
    def feed(self: FrameParser, data: bytes) -> list[bytes]:
        payloads: list[bytes] = original(self, data)
        return payloads if self.error is None else []

    return feed


def _claim_believed(original: Any) -> Any:
    def init(self: FrameParser, *arguments: Any) -> None:
        original(self, *arguments)
        self._max_size = 1 << 62

    return init


def _first_of_a_read(original: Any) -> Any:
    return lambda self, data: original(self, data)[:1]


def _negative_is_empty(original: Any) -> Any:
    def init(self: FrameParser, header_length: int, length: Any, max_size: int) -> None:
        original(self, header_length, lambda header: max(0, length(header)), max_size)

    return init


def _no_ticks(_: Any) -> Any:
    return lambda self: None


def _stop_ends_sources(original: Any) -> Any:
    async def idle(self: Server) -> None:
        self.take([End(name, self._now()) for name in sorted(self._unended)])
        await original(self)

    return idle


def _one_more_taken(original: Any) -> Any:
    def init(self: FrameParser, *arguments: Any) -> None:
        original(self, *arguments)
        self._max_size += 1

    return init


def _largest_refused(original: Any) -> Any:
    def init(self: FrameParser, *arguments: Any) -> None:
        original(self, *arguments)
        self._max_size -= 1

    return init


def _wide_headers_only(original: Any) -> Any:
    def feed(self: FrameParser, data: bytes) -> list[bytes]:
        if self._header_length < 2 and data and self.pending:
            return []
        payloads: list[bytes] = original(self, data)
        return payloads

    return feed


def _not_counted(_: Any) -> Any:
    return property(lambda self: 0)


def _orderly_death(_: Any) -> Any:
    return Connection._close


def _one_buffer(original: Any) -> Any:
    together = bytearray()

    def feed(self: FrameParser, data: bytes) -> list[bytes]:
        self._buffer = together
        self._needed = 0
        payloads: list[bytes] = original(self, data)
        return payloads

    return feed


def _forgets_kept(original: Any) -> Any:
    def lost(self: TCPSink, why: str) -> None:
        original(self, why)
        self._kept.clear()
        self._cost = self.pending = 0

    return lost


def _rest_forgotten(_: Any) -> Any:
    def send(self: TCPSink) -> None:
        sock = self._sock
        while sock is not None and self._unsent:
            view = self._unsent.popleft()
            try:
                sock.send(view)
            except BlockingIOError:
                pass
            except OSError as error:
                self._lost(str(error))
                return
            self._handed += len(view)

    return send


def _stops_late(original: Any) -> Any:
    def init(self: Compiled, application: Any, **options: Any) -> None:
        original(self, application, **{**options, "on_error": "skip"})

    return init


def _last_of_a_read_lost(original: Any) -> Any:
    def feed(self: Compiled, source: str, payloads: Sequence[bytes], at: int = 0) -> None:
        original(self, source, payloads[: max(1, len(payloads) - 1)], at)

    return feed


def _item_lost(original: Any) -> Any:
    def portions(self: Meter, rest: Any, message: int) -> Iterator[Iterator[Any]]:
        for portion in original(self, rest, message):
            yield portion
            next(rest, None)

    return portions


def _rest_of_a_slice_lost(original: Any) -> Any:
    def run(self: Feeder, process: Callable[[], None], source: str = "") -> None:
        given = list(self._fed)
        original(self, process, source)
        self._fed = given  # although the machine may have left some of it

    return run


def _wrong_code(original: Any) -> Any:
    def summary(self: Server, problem: str | None) -> Summary:
        summary: Summary = original(self, problem)
        return replace(summary, exit_code=1)

    return summary


def _lost_windows_not_counted(original: Any) -> Any:
    def summary(self: Server, problem: str | None) -> Summary:
        summary: Summary = original(self, problem)
        return replace(summary, open_windows=0)

    return summary


class LateRefusal(ReferenceEngine):
    """Refuses only when input is there already."""

    name = "late refusal"

    def capabilities(self) -> Capabilities:
        """Return what it claims."""
        return Capabilities(isolation=frozenset({"isolated"}), live=False)

    def run(self, case: Case) -> Trace:
        """Refuse an application with several sinks, which `check` has accepted."""
        if len(case.application.sinks) > 1:
            raise UnsupportedTopology("sink-2", "second sink", "there is one connection only")
        return super().run(case)


EDGE_MUTANTS: tuple[Mutant, ...] = (
    edge(
        "frame-1",
        "split header lost",
        "a read shorter than a header",
        FrameParser, "feed", _split_header_lost,
    ),
    edge(
        "frame-1",
        "header at the end of a full buffer lost",
        "what is left in the buffer is moved to its begin only if a length is known",
        Connection, "buffer_updated", _header_at_the_end_lost,
    ),
    edge(
        "frame-2", "empty frames lost live", "`if payload:`", FrameParser, "feed", _empty_lost
    ),
    edge(
        "frame-3",
        "claim believed",
        "no limit to a frame",
        FrameParser, "__init__", _claim_believed,
    ),
    edge(
        "frame-3",
        "frames before a refused header lost",
        "an exception loses what the same read has brought",
        FrameParser, "feed", _none_before_a_refusal,
    ),
    edge(
        "frame-4",
        "unfinished frame not counted",
        "dropped with its buffer",
        FrameParser, "pending", _not_counted,
    ),
    edge(
        "frame-4",
        "orderly death",
        "an engine's death looks like the end of a stop",
        Connection, "abort", _orderly_death,
    ),
    edge(
        "frame-5", "connections mixed", "one buffer for all", FrameParser, "feed", _one_buffer
    ),
    edge(
        "sink-3", "not sent again", "written is taken for read", TCPSink, "_lost", _forgets_kept
    ),
    edge(
        "frame-1",
        "one frame a read",
        "what comes behind it is forgotten",
        FrameParser, "feed", _first_of_a_read,
    ),
    edge(
        "frame-1",
        "short headers lost",
        "a header is at least two bytes long",
        FrameParser, "feed", _wide_headers_only,
    ),
    edge(
        "frame-3",
        "negative claim is empty",
        "`max(0, length)`",
        FrameParser, "__init__", _negative_is_empty,
    ),
    edge(
        "frame-3", "one byte too many", "`>=` for `>`", FrameParser, "__init__", _one_more_taken
    ),
    edge(
        "frame-3",
        "largest frame refused",
        "`<` for `<=`",
        FrameParser, "__init__", _largest_refused,
    ),
    edge(
        "sink-3",
        "rest of a short send forgotten",
        "`sock.send(data)`, and what it returns is not looked at",
        TCPSink, "_send", _rest_forgotten,
    ),
    edge(
        "dead-4",
        "no stop when trusting",
        "the option is not handed on",
        Compiled, "__init__", _stops_late,
    ),
    edge(
        "frame-5",
        "last frame of a read lost when trusting",
        "off by one on one path of two",
        Compiled, "feed", _last_of_a_read_lost,
    ),
    edge(
        "order-2",
        "item lost where much comes of one message",
        "off by one where a result is gone through in portions",
        Meter, "_portions", _item_lost,
    ),
    edge(
        "order-2",
        "frames lost behind one of which much comes",
        "what a full buffer has no room for is taken for processed",
        Feeder, "_run", _rest_of_a_slice_lost,
    ),
    edge(
        "time-1",
        "only input moves time",
        "a window never closes when input stops",
        Feeder, "_watch_clock", _no_ticks,
    ),
    edge(
        "time-5",
        "a stop ends the input",
        "a drain fires what is open",
        Server, "_idle", _stop_ends_sources,
    ),
    edge(
        "time-5",
        "open windows not counted",
        "what is open at a stop is lost in silence",
        Server, "_summary", _lost_windows_not_counted,
    ),
    edge(
        "stop-1", "wrong exit code", "a stop is taken for a failure",
        Server, "_summary", _wrong_code,
    ),
    *DELIVERY_MUTANTS,
    Mutant("late refusal", "build-2", "found out while it runs", LateRefusal, home="edges"),
)  # fmt: skip


def mutants() -> list[Mutant]:
    """Return all of them: the entry point of the group ``wallaroo.mutants``."""
    return [*EDGE_MUTANTS, *RECOVERY_MUTANTS, RECOVERY_EQUIVALENT]
