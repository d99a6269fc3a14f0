"""The receiver process: takes the outputs that the application's sink sends, and matches them.

Threads do nothing but read and note the time (`reader`). This one splits the bytes into outputs,
matches them and records latencies (`analysis`), up to some hundred thousand at a time, a few times
a second. The bytes between them are bounded. A run in which the bound was reached is invalid,
because the reading had to wait.
"""

from __future__ import annotations

import socket
import time
from collections import defaultdict

from wallaroo.frames import FrameParser
from wallaroo.text import reason
from wallaroo_loadgen.dataplane.analysis import Analysis
from wallaroo_loadgen.dataplane.child import REPORT_SECONDS, Child, monotonic_start, serve
from wallaroo_loadgen.dataplane.preparation import Preparation
from wallaroo_loadgen.dataplane.reader import Reader
from wallaroo_loadgen.workloads.plan import Plan
from wallaroo_loadgen.workloads.protocol import Framing

_LOOK_SECONDS = 0.05
_LARGEST_OUTPUT = 1 << 24  # bytes


class Splitter:
    """Splits one connection's bytes into outputs.

    Lines are without their line feeds. Bytes that are no frame become one output, which says so.
    """

    def __init__(self, framing: Framing) -> None:
        self._frames = FrameParser(max_size=_LARGEST_OUTPUT) if framing == "frames" else None
        self._line = b""  # the beginning of one

    def split(self, data: bytes) -> list[bytes]:
        """Return the outputs that these bytes complete."""
        if self._frames is not None:
            broken = self._frames.error
            outputs = self._frames.feed(data)
            if self._frames.error is not broken:
                outputs.append(f"not a frame: {self._frames.error}".encode())
            return outputs
        *outputs, self._line = (self._line + data).split(b"\n")
        if len(self._line) > _LARGEST_OUTPUT:
            outputs.append(self._line)
            self._line = b""
        return outputs


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
    reader = Reader(listener)
    reader.start()
    host, port = listener.getsockname()[:2]
    child.report("listening", address=[host, port])
    splitters: dict[int, Splitter] = defaultdict(lambda: Splitter(plan.workload.framing))
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
        batch = [
            (at, splitters[connection].split(data)) for connection, at, data in reader.read_so_far()
        ]
        if reader.problem is not None:
            raise ConnectionError(reader.problem)
        if preparation is not None:
            preparation.step(
                [output for _, outputs in batch for output in outputs], reader.accepted
            )
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
                    busy=busy,
                )
            if analysis.finished:
                child.report("drained")
                analysis = None


if __name__ == "__main__":
    serve(body)
