"""The load generator itself: how exact, how fast, how much memory.

    python benchmarks/loadgen.py [--minutes 10]

Figures of the machine it runs on, and of what else runs there: the aims (lateness at most 100 µs
at p50 and 500 µs at p99 at 2,000 messages/s; 200,000 messages/s of 50 bytes through one sender and
one receiver process, with a latency for each; a fixed delay measured within 5 % or 50 µs; flat
memory) are for an idle one.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
from facts import Figures, add_json_option, machine_facts
from wallaroo_loadgen.common.config import RunConfig
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.session import Session
from wallaroo_loadgen.control.verdict import show

FIGURES = Figures(__file__)
TARGET = Path(__file__).parents[1] / "tests" / "loadgen" / "target.py"
DELAY = 0.02


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=0.5, help="at full rate, for memory (0.5)")
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())

    result = run(2000, 20.0, "--raw")
    print("\n2,000 messages/s of 50 bytes against an echo")
    print_lateness(result)
    for name in ("p50", "p99"):
        FIGURES.add(f"2000/lateness/{name}", result.lateness[name], "µs")

    result = run(1000, 10.0, "--delay", str(DELAY))
    error = result.latency["p50"] - DELAY * 1e6
    print(f"\na fixed delay of {show(DELAY * 1e6)}: p50 {show(result.latency['p50'])}")
    print(f"  off by {error:+.0f} µs, {error / DELAY / 1e4:+.2f} % (aim: 5 % or 50 µs)")
    measured = result.latency["p50"]
    FIGURES.add("delay/p50", measured, "µs", ratio=measured / (DELAY * 1e6), baseline="the delay")

    result = run(200_000, 10.0, "--raw")
    print("\n200,000 messages/s of 50 bytes, one sender and one receiver process")
    print_counts(result)
    print_lateness(result)

    print(f"\n200,000 messages/s for {options.minutes:g} min: resident memory of each process")
    samples: dict[str, list[float]] = {}
    with memory_sampled(samples):
        result = run(200_000, options.minutes * 60, "--raw")
    print_counts(result)
    FIGURES.add("200000/latencies", result.latency["count"], "messages")
    FIGURES.add("200000/missing", result.counts["missing"], "messages")
    for name, part in result.busy.items():
        FIGURES.add(f"200000/busy/{name}", 100 * part, "% of a core")
    for name, sizes in samples.items():
        settled = sizes[len(sizes) // 5 :]
        print(f"  {name}: {settled[0]:.0f} MB after a fifth, {settled[-1]:.0f} MB at the end")
        growth = settled[-1] / settled[0]
        FIGURES.add(f"memory/{name}/fifth", settled[0], "MB")
        FIGURES.add(f"memory/{name}/end", settled[-1], "MB", ratio=growth, baseline="fifth")
    FIGURES.write(options.json)


def print_counts(result: Result) -> None:
    """Print what was sent and received, and what it took."""
    counts = result.counts
    busy = ", ".join([f"{name} {part:.0%}" for name, part in sorted(result.busy.items())])
    print(
        f"  sent {counts['sent']:,} of {counts['scheduled']:,}, latencies "
        f"{result.latency['count']:,}, missing {counts['missing']:,}; processor: {busy}"
    )


def print_lateness(result: Result) -> None:
    """Print lateness and latency."""
    for name, values in (("lateness", result.lateness), ("latency", result.latency)):
        shown = ", ".join([f"{key} {show(values[key])}" for key in ("p50", "p99", "p99.9", "max")])
        print(f"  {name}: {shown}")


def run(rate: float, duration: float, *behaviour: str) -> Result:
    """Make a run against a target with the given behaviour."""
    listen = free_port()
    command = [sys.executable, str(TARGET), "--sink", f"127.0.0.1:{listen}", *behaviour]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as target:
        try:
            assert target.stdout is not None
            to = (("127.0.0.1", int(target.stdout.readline())),)
            config = RunConfig("echo", to, ("127.0.0.1", listen), rate=rate, duration=duration)
            return Session().run(config)
        finally:
            target.kill()


@contextmanager
def memory_sampled(samples: dict[str, list[float]]) -> Iterator[None]:
    """Note the resident MB of our process and its sender and receiver once a second."""
    stopped = threading.Event()

    def sample() -> None:
        while not stopped.wait(1.0):
            for name, process in processes().items():
                with contextlib.suppress(psutil.Error):  # it has ended meanwhile
                    samples.setdefault(name, []).append(process.memory_info().rss / 1e6)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    yield
    stopped.set()
    thread.join()


def processes() -> dict[str, psutil.Process]:
    """Return this process and its children by their roles."""
    found = {"conductor": psutil.Process()}
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.Error):
            for role in ("sender", "receiver"):
                if f"wallaroo_loadgen.dataplane.{role}" in child.cmdline():
                    found[role] = child
    return found


def free_port() -> int:
    """Return a port that is free at this moment."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        return int(sock.getsockname()[1])


if __name__ == "__main__":
    start = time.monotonic()
    main()
    print(f"\n{time.monotonic() - start:.0f} s")
