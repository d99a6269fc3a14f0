"""A target whose behaviour is known: it returns each frame, unless its options say otherwise.

A program of its own, as a load generator meets one. It prints the port it listens on, and connects
to the sink again whenever that is gone, as an engine's sink does.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import threading
import time
from collections import deque
from pathlib import Path

from wallaroo.frames import FrameParser, frame


class Sink:
    """A connection out that comes back."""

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._sock: socket.socket | None = None
        self._lock = threading.Lock()

    def send(self, data: bytes) -> None:
        """Send, on a new connection when the old one is gone; gives up on what was refused."""
        with self._lock:
            for _ in range(100):
                try:
                    if self._sock is None:
                        self._sock = socket.create_connection(self._to)
                        self._sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    if self._gone():
                        raise ConnectionResetError
                    self._sock.sendall(data)
                except OSError:
                    self._sock = None
                    time.sleep(0.05)
                else:
                    return

    def _gone(self) -> bool:
        assert self._sock is not None
        try:
            return not self._sock.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        except BlockingIOError:
            return False


class Delayed:
    """Sends what it is given after a time, in order."""

    def __init__(self, sink: Sink, seconds: float) -> None:
        self._sink = sink
        self._seconds = seconds
        self._held: deque[tuple[float, bytes]] = deque()
        self._some = threading.Semaphore(0)
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, data: bytes) -> None:
        self._held.append((time.monotonic() + self._seconds, data))
        self._some.release()

    def _run(self) -> None:
        while True:
            self._some.acquire()
            due, data = self._held.popleft()
            time.sleep(max(0.0, due - time.monotonic()))
            self._sink.send(data)


def serve(connection: socket.socket, options: argparse.Namespace, out: Sink | Delayed) -> None:
    """Treat one connection's frames as the options say; each connection counts from 0."""
    parser = FrameParser()
    count = 0
    began = time.monotonic()
    held: bytes | None = None
    while options.raw and (data := connection.recv(options.read)):
        out.send(data)
    while True:
        connection.settimeout(0.3 if held is not None else None)
        try:
            data = connection.recv(options.read)
        except TimeoutError:
            assert held is not None
            out.send(held)
            held = None
            continue
        if not data:
            return
        outputs = []
        for payload in parser.feed(data):
            count += 1
            if options.mark and count == 100:
                options.mark.touch()
            if options.crash_after and count > options.crash_after:
                os.kill(os.getpid(), signal.SIGKILL)
            if options.close_after and count > options.close_after:
                connection.close()
                return
            if options.drop and count % options.drop == 0:
                continue
            answer = b"nonsense" if options.garbage else payload
            outputs.append(frame(answer))
            if options.double:
                outputs.append(frame(answer))
        if options.reorder and len(outputs) == 1:
            if held is None:  # one message back until the next has gone first
                held = outputs.pop()
            else:
                outputs.append(held)
                held = None
        if options.stall:
            length, period = options.stall
            into = (time.monotonic() - began) % period
            if into > period - length:
                time.sleep(period - into)
        if outputs:
            out.send(b"".join(outputs))
        if options.bytes_per_second:
            time.sleep(len(data) / options.bytes_per_second)


def main() -> None:
    """Listen, and serve each connection in a thread."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--sink", required=True)
    parser.add_argument("--raw", action="store_true", help="bytes as they come, nothing else")
    parser.add_argument("--delay", type=float)
    parser.add_argument("--stall", type=float, nargs=2, metavar=("SECONDS", "PERIOD"))
    parser.add_argument("--drop", type=int, help="every N-th message")
    parser.add_argument("--double", action="store_true")
    parser.add_argument("--reorder", action="store_true")
    parser.add_argument("--garbage", action="store_true")
    parser.add_argument("--close-after", type=int)
    parser.add_argument("--crash-after", type=int, help="this many on a connection, by SIGKILL")
    parser.add_argument("--mark", type=Path, help="a file to make at the 100th message")
    parser.add_argument("--bytes-per-second", type=float)
    parser.add_argument("--read", type=int, default=1 << 18)
    options = parser.parse_args()
    host, _, port = options.sink.rpartition(":")
    out: Sink | Delayed = Sink(host, int(port))
    if options.delay:
        out = Delayed(out, options.delay)
    listener = socket.create_server(("127.0.0.1", options.port))
    if options.bytes_per_second:  # little room in between, so that the sender soon feels it
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=serve, args=(connection, options, out), daemon=True).start()


if __name__ == "__main__":
    main()
