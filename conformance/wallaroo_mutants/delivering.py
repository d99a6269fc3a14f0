"""Mutants of a live server: faults in what goes out, and in how a run ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from wallaroo_conformance.killing import Mutant
from wallaroo_reference.serving.feeder import Feeder
from wallaroo_reference.serving.server import Server

from wallaroo.engine import Summary
from wallaroo.topology import Sink, SinkId
from wallaroo.transport.connection import Connection
from wallaroo.transport.dead_letters import DeadLetters
from wallaroo.transport.edges import Edges, OutputSink
from wallaroo.transport.sink import Chunk, TCPSink
from wallaroo_mutants.engine import edge


def _one_for_an_address(original: Any) -> Any:
    def make_sinks(self: Edges, sinks: Mapping[SinkId, Sink]) -> dict[SinkId, OutputSink]:
        made: dict[SinkId, OutputSink] = original(self, sinks)
        address = {id_: getattr(sink.config, "address", id_) for id_, sink in sinks.items()}
        first: dict[Any, SinkId] = {}
        for id_ in sinks:
            first.setdefault(address[id_], id_)
        # `start` is called for each sink, but a connection must be started once.
        return {id_: _Second(made[first[address[id_]]], first[address[id_]] != id_) for id_ in made}

    return make_sinks


class _Second:
    """A sink that lets another's connection carry what it gets."""

    def __init__(self, sink: Any, is_second: bool) -> None:
        self._sink = sink
        self._is_second = is_second

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sink, name)

    def start(self) -> None:
        if not self._is_second:
            self._sink.start()


def _broken_off_is_whole(original: Any) -> Any:
    def whole(self: Chunk, acknowledged: int) -> tuple[int, int]:
        count, size = original(self, acknowledged)
        if size < acknowledged:
            return count + 1, size + len(self.outputs[count])
        return count, size

    return whole


def _never_full(original: Any) -> Any:
    def write(self: TCPSink, outputs: Any) -> None:
        original(self, outputs)
        self.full = False

    return write


def _unread_is_lost(_: Any) -> Any:
    return Connection._end


def _all_is_well(original: Any) -> Any:
    def summary(self: Server, problem: str | None) -> Summary:
        told: Summary = original(self, problem)
        return replace(told, exit_code=0)

    return summary


def _begun_anew(original: Any) -> Any:
    def init(self: DeadLetters, path: Path | None = None, **options: Any) -> None:
        if path is not None:
            path.unlink(missing_ok=True)
        original(self, path, **options)

    return init


def _once_for_all(original: Any) -> Any:
    def add(self: DeadLetters, letters: Any) -> None:
        before = self.counts.copy()
        original(self, letters)
        for kind in self.counts:
            self.counts[kind] = min(self.counts[kind], before[kind] + 1)

    return add


def _exits_go_on(original: Any) -> Any:
    def fail(self: Feeder, problem: str) -> None:
        ended = self._machine.ended
        if ended is None or ended.kind != "exit":
            original(self, problem)

    return fail


DELIVERY_MUTANTS: tuple[Mutant, ...] = (
    edge(
        "sink-2",
        "a connection for an address",
        "a pool of connections by address",
        Edges, "_make_sinks", _one_for_an_address,
    ),
    edge(
        "sink-3",
        "what broke off is whole",
        "acknowledged in part counts as acknowledged",
        Chunk, "whole", _broken_off_is_whole,
    ),
    edge(
        "sink-3", "never full", "no bound to what is kept for a sink", TCPSink, "write", _never_full
    ),
    edge(
        "stop-1",
        "unread at a stop lost",
        "what the system has acknowledged and nobody has read",
        Connection, "finish", _unread_is_lost,
    ),
    edge(
        "stop-1", "gives up with 0", "exit 0 whatever was delivered",
        Server, "_summary", _all_is_well,
    ),
    edge(
        "dead-1", "dead letters begun anew", "`open(path, 'w')`",
        DeadLetters, "__init__", _begun_anew,
    ),
    edge(
        "dead-1", "dead letters counted by batch", "one for all of a kind that come together",
        DeadLetters, "add", _once_for_all,
    ),
    edge(
        "dead-3", "exits go on", "the machine has ended, its server has not",
        Feeder, "_fail", _exits_go_on,
    ),
)  # fmt: skip
