"""The receiver process: takes what the application's sink sends, and says what it means.

One thread does nothing but read and note the time; another cuts the bytes into outputs, matches
them, and records latencies, some hundred thousand at a time, a few times a second. Between the two
is a bounded queue; a run in which it was ever full is invalid, as the reading then waited for us.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Literal, Protocol

from wallaroo.frames import FrameParser
from wallaroo_loadgen.dataplane.analysis import Analysis
from wallaroo_loadgen.dataplane.child import REPORT_SECONDS, Child, monotonic_start, serve
from wallaroo_loadgen.dataplane.sender import connect
from wallaroo_loadgen.workloads.plan import Plan

_READ = 1 << 18
_MOST_PENDING = 1 << 26  # bytes read and not yet analysed
_ANALYSE_SECONDS = 0.05
_PROBE_SECONDS = 0.5
_LARGEST_OUTPUT = 1 << 24

Chunk = tuple[int, int, bytes]
"""Connection, monotonic time of the read in ns, bytes; no bytes mean that it ended."""


class Cutter(Protocol):
    """Cuts one connection's bytes into outputs."""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the outputs that these bytes complete."""


class LineCutter:
    """Outputs end with a line feed."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Return the lines that these bytes complete, without their ends."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > _LARGEST_OUTPUT:
            lines.append(self._rest)
            self._rest = b""
        return lines


class FrameCutter:
    """Outputs are frames; bytes that are none become one output that matches nothing."""

    def __init__(self) -> None:
        self._parser = FrameParser(max_size=_LARGEST_OUTPUT)
        self._told = False

    def feed(self, data: bytes) -> list[bytes]:
        """Return the payloads that these bytes complete."""
        payloads = self._parser.feed(data)
        if self._parser.error is not None and not self._told:
            self._told = True
            payloads.append(f"not a frame: {self._parser.error}".encode())
        return payloads


def cutter(cut: Literal["lines", "frames"]) -> Cutter:
    """Return a cutter for a new connection."""
    return LineCutter() if cut == "lines" else FrameCutter()


class Reader:
    """The thread that reads: every connection to the listener, each chunk with its time."""

    def __init__(self, listener: socket.socket) -> None:
        self.chunks: deque[Chunk] = deque()
        self.accepted = 0
        self.closed = 0
        self.held_up = 0  # how often the queue was full
        self._taken = 0
        self._read = 0
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, None)
        self._listener = listener
        self._stopping = False

    def take(self) -> list[Chunk]:
        """Return the chunks read since the last call."""
        taken = [self.chunks.popleft() for _ in range(len(self.chunks))]
        self._taken += sum(len(data) for _, _, data in taken)
        return taken

    def stop(self) -> None:
        """Let the thread end soon."""
        self._stopping = True

    def run(self) -> None:
        """Read until stopped."""
        clock = time.monotonic_ns
        while not self._stopping:
            for key, _ in self._selector.select(_ANALYSE_SECONDS):
                if key.data is None:
                    self._accept()
                    continue
                sock = key.fileobj
                assert isinstance(sock, socket.socket)
                try:
                    data = sock.recv(_READ)
                except BlockingIOError:
                    continue
                except OSError:
                    data = b""
                self.chunks.append((key.data, clock(), data))
                if not data:
                    self.closed += 1
                    self._selector.unregister(sock)
                    sock.close()
                self._read += len(data)
            if self._read - self._taken > _MOST_PENDING:
                self.held_up += 1
                while self._read - self._taken > _MOST_PENDING and not self._stopping:
                    time.sleep(0.001)
        for key in list(self._selector.get_map().values()):
            with contextlib.suppress(OSError):
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # gone again before we looked
            sock, _ = self._listener.accept()
            sock.setblocking(False)
            self._selector.register(sock, selectors.EVENT_READ, self.accepted)
            self.accepted += 1


class Preparation:
    """Before the run: the prelude, then probes until the application proves it has taken it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        config = plan.config
        self._socks: dict[int, socket.socket] = {}
        for source, to in enumerate(config.to):
            self._socks[source] = connect(to, config.wait)
        self._deadline = time.monotonic() + config.wait
        self._attempt = 0
        self._next = 0.0
        self._outputs = 0
        self._last = b""
        self.done = False
        self._send(plan.workload.prelude())
        if not plan.workload.probe(0):
            self.done = True

    def _send(self, messages: dict[int, bytes]) -> None:
        for source, data in messages.items():
            self._socks[source].sendall(data)

    def step(self, outputs: list[bytes], connections: int) -> None:
        """Look at what came, and probe again when it is time.

        Raises:
            TimeoutError: when the application has not answered; says what came instead.
        """
        workload = self._plan.workload
        self._outputs += len(outputs)
        if outputs:
            self._last = outputs[-1]
            if workload.answers(outputs):
                self.done = True
                return
        now = time.monotonic()
        if now > self._deadline:
            raise TimeoutError(self._complaint(connections))
        if now >= self._next:
            self._send(workload.probe(self._attempt))
            self._attempt += 1
            self._next = now + _PROBE_SECONDS

    def _complaint(self, connections: int) -> str:
        wait = f"{self._plan.config.wait:g} s"
        if self._outputs:
            seen = repr(self._last[:60])
            return (
                f"outputs came but none answers the probes sent for {wait}, the last one was "
                f"{seen}: is this the right workload, and are the --to addresses in order?"
            )
        if connections:
            return f"the sink connected, but no output came for the probes sent for {wait}"
        return (
            f"no sink connected in {wait}: does the application's --out name the --listen address?"
        )

    def close(self) -> None:
        """End the connections of the preparation."""
        for sock in self._socks.values():
            sock.close()


def body(child: Child, plan: Plan) -> None:
    """Listen; then do what the parent says: prepare, start, drain, close."""
    config = plan.config
    family = socket.AF_INET6 if ":" in config.listen[0] else socket.AF_INET
    listener = socket.create_server(config.listen, family=family, backlog=128)
    listener.setblocking(False)
    reader = Reader(listener)
    thread = threading.Thread(target=reader.run, daemon=True)
    thread.start()
    host, port = listener.getsockname()[:2]
    child.report("listening", address=[host, port])
    cutters: dict[int, Cutter] = {}
    preparation: Preparation | None = None
    analysis: Analysis | None = None
    reported = started = time.monotonic()
    used = 0.0
    while True:
        command = child.command(_ANALYSE_SECONDS) or {"command": None}
        match command["command"]:
            case "prepare":
                preparation = Preparation(plan)
            case "start":
                analysis = Analysis(plan, monotonic_start(command["at"]))
                reported = started = time.monotonic()
                used = time.process_time()
            case "drain":
                assert analysis is not None
                analysis.drain({int(lane): count for lane, count in command["sent"].items()})
            case "close":
                break
        batch: list[tuple[int, list[bytes]]] = []
        for connection, at, data in reader.take():
            if connection not in cutters:
                cutters[connection] = cutter(plan.workload.cut)
            batch.append((at, cutters[connection].feed(data)))
        if preparation is not None:
            preparation.step(_flat(batch), reader.accepted)
            if preparation.done:
                preparation.close()
                preparation = None
                child.report("prepared")
        elif analysis is not None:
            analysis.take(batch)
            if analysis.finished or time.monotonic() - reported >= REPORT_SECONDS:
                reported = time.monotonic()
                busy = (time.process_time() - used) / max(reported - started, 0.1)
                child.report(
                    "outputs",
                    **analysis.report(),
                    connections=reader.accepted,
                    sinks_closed=0 if analysis.complete else reader.closed,
                    held_up=reader.held_up,
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
