"""How late windows fire on the reference engine, served over TCP, at 10,000 messages a second.

``python benchmarks/windows_live.py [--seconds S] [--rate N]``: arrival-time windows of 100 ms over
ten keys, of which each output says when it was due (goal: at most 10 ms later at the receiver, at
p99). The same without input beyond the windows' first message shows what a tick alone does. The
engine runs in a process of its own; it and the receiver here read one clock.
"""

from __future__ import annotations

import argparse
import re
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from facts import Figures, add_json_option, machine_facts

import wallaroo
from wallaroo.frames import frames
from wallaroo.kinds import Bounds

FIGURES = Figures(__file__)
RANGE = wallaroo.milliseconds(100)
KEYS = 10
BURST = 0.002  # seconds between what the sender sends at once
GOAL = 10.0  # milliseconds at p99


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Count messages by key and window; an output is the end of its window."""
    in_host, in_port = wallaroo.tcp_parse_input_addrs(args)[0]
    out_host, out_port = wallaroo.tcp_parse_output_addrs(args)[0]
    counts = (
        wallaroo.source("messages", wallaroo.TCPSourceConfig(in_host, in_port, decode))
        .key_by(by_digit)
        .to(wallaroo.range_windows(RANGE).over(Count))
        .to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode))
    )
    return wallaroo.build_application("Windows live", counts)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> bytes:
    """Leave a message as it is."""
    return payload


@wallaroo.key_extractor
def by_digit(message: bytes) -> bytes:
    """Return a message's last digit."""
    return message[-1:]


class Count:
    """Counts messages."""

    def initial_accumulator(self) -> int:
        """Return 0."""
        return 0

    def update(self, message: bytes, count: int) -> int:
        """Count a message."""
        return count + 1

    def output(self, key: bytes, count: int, window: Bounds) -> tuple[int, int]:
        """Return when the window was due, in nanoseconds, and what it has."""
        return window.end, count


@wallaroo.encoder
def encode(fired: tuple[int, int]) -> str:
    """Write a line."""
    return f"{fired[0]} {fired[1]}\n"


def receive(listener: socket.socket, late: list[float], counted: list[int]) -> None:
    """Note how late each output comes, in milliseconds, and what it counted."""
    peer, _ = listener.accept()
    rest = b""
    while data := peer.recv(1 << 16):
        now = time.time_ns()
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            due, count = map(int, line.split())
            late.append((now - due) / 1e6)
            counted.append(count)


def send(address: tuple[str, int], rate: float, seconds: float) -> int:
    """Send on schedule, in bursts of 2 ms (a burst for each window if slower); return how many."""
    pause = max(BURST, KEYS / rate)
    number = 0
    begin = time.monotonic()
    with socket.create_connection(address) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while (elapsed := time.monotonic() - begin) < seconds:
            until = int(elapsed * rate)
            sock.sendall(frames([b"%d" % one for one in range(number, until)]))
            number = until
            time.sleep(max(0.0, begin + elapsed + pause - time.monotonic()))
    return number


def measure(rate: float, seconds: float) -> list[float]:
    """Return how late, in milliseconds, the windows of one run fired."""
    late: list[float] = []
    counted: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        receiver = threading.Thread(target=receive, args=(listener, late, counted))
        receiver.start()
        command = [sys.executable, "-m", "wallaroo", "run", __file__, "--in", "127.0.0.1:0"]
        command += ["--out", f"127.0.0.1:{listener.getsockname()[1]}", "--progress", "none"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as engine:
            assert engine.stderr is not None
            for line in engine.stderr:
                if found := re.search(r"listening on (\S+):(\d+)", line):
                    break
            assert found is not None
            sent = send((found[1], int(found[2])), rate, seconds)
            time.sleep(2 * RANGE / 1e9 + 1)  # the last windows fire by a tick
            engine.terminate()
            engine.stderr.read()
        receiver.join()
    assert sum(counted) == sent, (sum(counted), sent)
    return late


def report(what: str, rate: float, seconds: float) -> None:
    """Measure, print and keep the figures of one rate."""
    late = measure(rate, seconds)
    percentiles = statistics.quantiles(late, n=1000)
    p50, p99, p999 = percentiles[499], percentiles[989], percentiles[998]
    print(
        f"{what}: {len(late):,} windows, fired after their due time by {p50:.2f} ms at p50, "
        f"{p99:.2f} at p99 (goal {GOAL:g}), {p999:.2f} at p99.9, {max(late):.2f} at most"
    )
    for name, value in (("p50", p50), ("p99", p99), ("p99.9", p999), ("max", max(late))):
        FIGURES.add(f"{what}/{name}", value, "ms")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description="How late served windows fire.")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=10_000.0, help="messages a second (10,000)")
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    report(f"{options.rate:,.0f} messages/s", options.rate, options.seconds)
    report("100 messages/s, mostly ticks", 100.0, options.seconds)
    FIGURES.write(options.json)


if __name__ == "__main__":
    main()
