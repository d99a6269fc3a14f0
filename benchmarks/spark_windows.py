"""Windows on the Spark engine against the same windows written by hand, side by side.

``python benchmarks/spark_windows.py [PART …]``, all parts by default:

- ``throughput``: counts per key over tumbling windows, at 100 and at 10,000 keys, until the last
  window has fired. By hand: `transformWithState` with timers, and Spark SQL's own
  ``groupBy(window)`` (`spark_windows_by_hand.py`). Goal: twice the throughput of the former; the
  latter's is the aim.
- ``state``: memory of the JVM and of the Python processes, and size of the checkpoint, while
  millions of messages go through windows that close. Goal: all stay flat. The JVM fills its heap
  (2 GB), and the input log a file (32 MB), before either makes room.

All jobs get their input over TCP and send what comes out over TCP (`spark_served.py`).
"""

from __future__ import annotations

import argparse
import contextlib
import random
import statistics
import tempfile
import time
from pathlib import Path

import psutil
from facts import Figures, ratios, run_parts
from spark_served import Served
from spark_windowing import RANGE

FIGURES = Figures(__file__)
KEYS = (100, 10_000)
OF_A_KEY = 100  # messages in a window, at 100 keys
WARM_UP_PASSES = 2


class Stream:
    """Messages in order of event time, in passes; each ends with one that lets all windows fire.

    Args:
        keys: number of keys.
        count: messages of a pass.
        per_window: messages of a window.
    """

    def __init__(self, keys: int, count: int, per_window: int) -> None:
        self._keys, self._count, self._pace = keys, count, RANGE // per_window
        self._draw = random.Random(3)
        self._now = RANGE
        self._marked = False

    def next_pass(self) -> tuple[list[bytes], int]:
        """Return messages, and how many outputs come of them."""
        payloads, windows = [], set()
        for _ in range(self._count):
            key = self._draw.randrange(self._keys)
            windows.add((key, self._now // RANGE))
            payloads.append(b"k%d %d" % (key, self._now))
            self._now += self._pace
        self._now += 10 * RANGE
        payloads.append(b"mark %d" % self._now)
        outputs = len(windows) + self._marked  # the mark of the pass before
        self._marked = True
        self._now += 10 * RANGE
        return payloads, outputs


def throughput(options: argparse.Namespace) -> None:
    """Print how many messages a second each contender processes at full load."""
    for keys in KEYS:
        seconds: dict[str, list[float]] = {"timers": [], "windows": [], "sql": []}
        processor: dict[str, list[float]] = {job: [] for job in seconds}
        for _ in range(options.rounds):
            for job, taken in seconds.items():
                stream = Stream(keys, options.messages, OF_A_KEY * min(keys, 1_000))
                with contextlib.closing(
                    Served(
                        job, master=options.master, partitions=options.partitions, optimised=True
                    )
                ) as served:
                    for _ in range(WARM_UP_PASSES):
                        served.exchange(*stream.next_pass())
                    payloads, outputs = stream.next_pass()
                    began, used = time.perf_counter(), served.cpu_seconds()
                    served.exchange(payloads, outputs)
                    taken.append(time.perf_counter() - began)
                    processor[job].append(served.cpu_seconds() - used)
        by_hand, cheaper = ratios(seconds, "timers"), ratios(processor, "timers")
        for job, taken in seconds.items():
            rate = options.messages / statistics.median(taken)
            cost = 1e6 * statistics.median(processor[job]) / options.messages
            goal = "   (goal: 2 x)" if job == "windows" else ""
            print(
                f"  {keys:6,} keys {job:8} {rate:9,.0f} messages/s   "
                f"{1 / by_hand[job]:5.2f} x timers by hand{goal}   {cost:6.1f} µs of processor "
                f"time each ({cheaper[job]:.2f} x)",
                flush=True,
            )
            name = f"throughput/{keys}/{job}"
            FIGURES.add(name, rate, "messages/s", ratio=1 / by_hand[job], baseline="timers")
            name = f"processor/{keys}/{job}"
            FIGURES.add(name, cost, "µs/message", ratio=cheaper[job], baseline="timers")


def state(options: argparse.Namespace) -> None:
    """Print memory and size of the checkpoint, after more and more closed windows."""
    keys, passes = KEYS[-1], 10
    stream = Stream(keys, options.state_messages // passes, 10 * keys)
    with tempfile.TemporaryDirectory() as directory:
        arguments = ("--checkpoint", str(Path(directory) / "checkpoint"))
        with contextlib.closing(
            Served(
                "windows",
                master=options.master,
                partitions=options.partitions,
                options=arguments,
            )
        ) as served:
            closed = 0
            for number in range(1, passes + 1):
                payloads, outputs = stream.next_pass()
                served.exchange(payloads, outputs)
                closed += outputs
                java, python = [part / 2**20 for part in _memory(served)]
                checkpoint = Path(directory) / "checkpoint"
                stored, log = [_size(checkpoint / part) / 2**20 for part in ("spark", "input")]
                done = number * options.state_messages // passes
                print(
                    f"  {done:11,} messages, {closed:9,} windows closed: {java:6,.0f} MB in the "
                    f"JVM, {python:4,.0f} MB in Python, {stored:5.1f} MB of state, "
                    f"{log:5.1f} MB of input log",
                    flush=True,
                )
                for name, megabytes in {
                    "jvm": java, "python": python, "checkpoint": stored, "log": log
                }.items():  # fmt: skip
                    FIGURES.add(f"state/{number}/{name}", megabytes, "MB")


def _memory(served: Served) -> tuple[int, int]:
    """Return the resident memory of the JVM, and of all Python processes."""
    process = psutil.Process(served.process.pid)
    java = python = 0
    for each in (process, *process.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            if each.name() == "java":
                java += each.memory_info().rss
            else:
                python += each.memory_info().rss
    return java, python


def _size(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        with contextlib.suppress(OSError):  # Spark deletes files
            total += path.stat().st_size if path.is_file() else 0
    return total


PARTS = {part.__name__: part for part in (throughput, state)}


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--partitions", type=int, default=2)
    parser.add_argument("--messages", type=int, default=300_000, help="of a throughput round")
    parser.add_argument("--state-messages", type=int, default=10_000_000, help="for `state`")
    run_parts(parser, PARTS, FIGURES)


if __name__ == "__main__":
    main()
