"""Mutants of the edges, which only a live server shows: frames, sinks that go away, stops."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, TypeAlias

from wallaroo_conformance.killing import Mutant
from wallaroo_reference.engine import ReferenceEngine
from wallaroo_reference.server import Server

from wallaroo.engine import Capabilities, Case, Summary
from wallaroo.errors import UnsupportedTopology
from wallaroo.frames import FrameParser
from wallaroo.trace import Trace
from wallaroo.transport.listener import Connection
from wallaroo.transport.sink import TCPSink
from wallaroo_mutants.engine import patched
from wallaroo_mutants.recovering import RECOVERY_EQUIVALENT, RECOVERY_MUTANTS

Make: TypeAlias = Callable[[Any], Any]
"""What to make of what stands there."""


def _split_header_lost(original: Any) -> Any:
    def feed(self: FrameParser, data: bytes) -> list[bytes]:
        if not self.pending and len(data) < self._header_length:
            return []
        payloads: list[bytes] = original(self, data)
        return payloads

    return feed


def _empty_lost(original: Any) -> Any:
    return lambda self, data: [payload for payload in original(self, data) if payload]


def _claim_believed(original: Any) -> Any:
    def init(self: FrameParser, *arguments: Any) -> None:
        original(self, *arguments)
        self._max_size = 1 << 62

    return init


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


def _wrong_code(original: Any) -> Any:
    def summary(self: Server, problem: str | None) -> Summary:
        told: Summary = original(self, problem)
        return replace(told, exit_code=1)

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


def _edge(rule: str, name: str, says: str, owner: Any, attribute: str, make: Make) -> Mutant:
    def during() -> AbstractContextManager[None]:
        return patched(((owner, attribute, make(owner.__dict__[attribute])),))

    return Mutant(name, rule, says, ReferenceEngine, "edges", shown_by="live", during=during)


EDGE_MUTANTS: tuple[Mutant, ...] = (
    _edge(
        "frame-1",
        "split header lost",
        "a read shorter than a header",
        FrameParser, "feed", _split_header_lost,
    ),
    _edge(
        "frame-2", "empty frames lost live", "`if payload:`", FrameParser, "feed", _empty_lost
    ),
    _edge(
        "frame-3",
        "claim believed",
        "no limit to a frame",
        FrameParser, "__init__", _claim_believed,
    ),
    _edge(
        "frame-4",
        "unfinished frame not counted",
        "dropped with its buffer",
        FrameParser, "pending", _not_counted,
    ),
    _edge(
        "frame-4",
        "orderly death",
        "an engine's death looks like the end of a stop",
        Connection, "abort", _orderly_death,
    ),
    _edge(
        "frame-5", "connections mixed", "one buffer for all", FrameParser, "feed", _one_buffer
    ),
    _edge(
        "sink-3", "not sent again", "written is taken for read", TCPSink, "_lost", _forgets_kept
    ),
    _edge(
        "stop-1", "wrong exit code", "a stop is taken for a failure",
        Server, "_summary", _wrong_code,
    ),
    Mutant("late refusal", "build-2", "found out while it runs", LateRefusal, home="edges"),
)  # fmt: skip


def mutants() -> list[Mutant]:
    """Return all of them: the entry point of the group ``wallaroo.mutants``."""
    return [*EDGE_MUTANTS, *RECOVERY_MUTANTS, RECOVERY_EQUIVALENT]
