"""The receiver process: takes the outputs that the application's sink sends, and matches them.

One thread does nothing but read and note the time (`reader`). This one splits the bytes into
outputs, matches them and records latencies (`analysis`), up to some hundred thousand at
a time, a few times a second. The bytes between the two threads are bounded. A run in which the
bound was reached is invalid, because the reading had to wait.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterable
from typing import Protocol

from wallaroo.frames import FrameParser
from wallaroo.overriding import override
from wallaroo.text import reason
from wallaroo_loadgen.dataplane.analysis import Analysis
from wallaroo_loadgen.dataplane.child import REPORT_SECONDS, Child, monotonic_start, serve
from wallaroo_loadgen.dataplane.preparation import Preparation
from wallaroo_loadgen.dataplane.reader import Reader
from wallaroo_loadgen.workloads.plan import Plan
from wallaroo_loadgen.workloads.protocol import Framing

_LOOK_SECONDS = 0.05
_LARGEST_OUTPUT = 1 << 24  # bytes


class Splitter(Protocol):
    """Splits one connection's bytes into outputs."""

    def split(self, data: bytes) -> list[bytes]:
        """Return the outputs that these bytes complete."""


class LineSplitter(Splitter):
    """Outputs are lines, without their line feeds."""

    def __init__(self) -> None:
        self._rest = b""

    @override
    def split(self, data: bytes) -> list[bytes]:
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > _LARGEST_OUTPUT:
            lines.append(self._rest)
            self._rest = b""
        return lines


class FrameSplitter(Splitter):
    """Outputs are frames; other bytes become one output that matches nothing."""

    def __init__(self) -> None:
        self._parser = FrameParser(max_size=_LARGEST_OUTPUT)
        self._reported = False

    @override
    def split(self, data: bytes) -> list[bytes]:
        payloads = self._parser.feed(data)
        if self._parser.error is not None and not self._reported:
            self._reported = True
            payloads.append(f"not a frame: {self._parser.error}".encode())
        return payloads


def splitter(framing: Framing) -> Splitter:
    """Return a splitter for a new connection."""
    return LineSplitter() if framing == "lines" else FrameSplitter()


def body(child: Child, plan: Plan) -> None:
    """Listen; then follow the parent's commands: prepare, start, drain, close."""
    config = plan.config
    family = socket.AF_INET6 if ":" in config.listen[0] else socket.AF_INET
    try:
        listener = socket.create_server(config.listen, family=family, backlog=128)
    except OSError as error:
        host, port = config.listen
        message = (
            f"cannot listen at {host}:{port}: {reason(error)}; --listen HOST:0 takes a free port"
        )
        child.report("failed", message=message)
        raise SystemExit(1) from None
    listener.setblocking(False)
    reader = Reader(listener)
    thread = threading.Thread(target=reader.run, daemon=True)
    thread.start()
    host, port = listener.getsockname()[:2]
    child.report("listening", address=[host, port])
    splitters: dict[int, Splitter] = {}
    preparation: Preparation | None = None
    analysis: Analysis | None = None
    reported = started = time.monotonic()
    used = 0.0
    while True:
        command = child.command(_LOOK_SECONDS) or {"command": None}
        match command["command"]:
            case "prepare":
                preparation = Preparation(plan)
            case "start":
                analysis = Analysis(plan, monotonic_start(command["at"]))
                reported = started = time.monotonic()
                used = time.process_time()
            case "drain":
                assert analysis is not None
                analysis.drain({int(stream): count for stream, count in command["sent"].items()})
            case "close":
                break
        batch: list[tuple[int, list[bytes]]] = []
        for connection, at, data in reader.read_so_far():
            if connection not in splitters:
                splitters[connection] = splitter(plan.workload.framing)
            batch.append((at, splitters[connection].split(data)))
        if preparation is not None:
            preparation.step(_flat(batch), reader.accepted, reader.accept_error)
            if preparation.done:
                preparation.close()
                preparation = None
                child.report("prepared")
        elif analysis is not None:
            analysis.receive(batch)
            if analysis.finished or time.monotonic() - reported >= REPORT_SECONDS:
                reported = time.monotonic()
                busy = (time.process_time() - used) / max(reported - started, 0.1)
                child.report(
                    "outputs",
                    **analysis.report(),
                    connections=reader.accepted,
                    sinks_closed=0 if analysis.complete else reader.closed,
                    held_up=reader.held_up,
                    accept_error=reader.accept_error,
                    busy=busy,
                )
            if analysis.finished:
                child.report("drained")
                analysis = None
    reader.stop()
    thread.join(1)


def _flat(batch: Iterable[tuple[int, list[bytes]]]) -> list[bytes]:
    return [output for _, outputs in batch for output in outputs]


if __name__ == "__main__":
    serve(body)
