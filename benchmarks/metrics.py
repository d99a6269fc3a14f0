"""What `--metrics` costs, with the live page open.

``python benchmarks/metrics.py [PART …] [--rounds N] [--words N] [--seconds S]``, by default all:

- ``saturation``: word count on the reference engine (goal: at most 3 % of the throughput).
- ``latency``: the same at 2,000 messages a second (goal: nothing that can be measured).
- ``spark``: one stateful step, 1,000 keys (goal: at most 2 % of the throughput).

Each is measured with and without. On a busy machine the processor's time tells more than the clock:
both are shown.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import statistics
import threading
import time
import urllib.request
from collections.abc import Mapping

from facts import Figures, run_parts
from in_process import word_lines
from spark_served import Served as OnSpark
from spark_served import messages
from tcp import Served, latencies

from wallaroo.frames import frames

FIGURES = Figures(__file__)
_BURSTS = 15  # of a round, for each contender
CONTENDERS = {"without": (), "with": ("--metrics", "127.0.0.1:0")}


def start(name: str) -> Served:
    """Start word count; with figures, a page is open too."""
    served = Served("reference", *CONTENDERS[name])
    if CONTENDERS[name]:
        threading.Thread(target=look, args=(page(served.said),), daemon=True).start()
    return served


def page(said: str) -> str:
    """Return what a page reads from, as a run has said."""
    found = re.search(r"metrics at (\S+)", said)
    assert found is not None, said
    return found[1] + "events"


def look(url: str) -> None:
    """Read what a page reads, to the end."""
    with contextlib.suppress(OSError), urllib.request.urlopen(url) as answer:
        while answer.readline():
            pass


def used(served: Served) -> float:
    """Return the seconds of processor time that a contender has used, exact to the nanosecond."""
    return time.clock_gettime((~served.pid << 3) | 2)  # clock_getcpuclockid(3)


def interval(ratios: list[float]) -> tuple[float, float]:
    """Return the limits between which the median is with 95 %, by bootstrap."""
    chance = random.Random(1)
    medians = sorted(
        [statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(2000)]
    )
    return medians[49], medians[-50]


def saturation(options: argparse.Namespace) -> None:
    """Print how fast it is when input never ends.

    Each round has new processes, since equal processes differ by more than figures cost: where
    their memory lies is chance. Both are there all the time and get bursts in turn, so a machine
    that becomes slower slows both. A burst is measured without its first third: before it, a run
    has saved up time for looking, which it would not have if input never ended.
    """
    lines = word_lines(options.words, 20_000, seed=1)
    stream = frames(lines)
    words = sum([len(line.split()) for line in lines])
    clock: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    processor: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for count in range(options.rounds):
        with contextlib.ExitStack() as stack:
            served = {}
            for name in list(CONTENDERS)[:: -1 if count % 2 else 1]:
                served[name] = start(name)
                stack.callback(served[name].close)
                burst(served[name], stream, words)  # warms up
            bursts: dict[str, list[tuple[float, float]]] = {name: [] for name in CONTENDERS}
            for turn in range(_BURSTS):
                for name in list(CONTENDERS)[:: -1 if turn % 2 else 1]:
                    bursts[name].append(burst(served[name], stream, words))
        for name, found in bursts.items():
            clock[name].append(statistics.median([one for one, _ in found]) * words)
            processor[name].append(statistics.median([one for _, one in found]) * words)
    tell("throughput", "words", words, clock, processor)


def burst(served: Served, stream: bytes, words: int) -> tuple[float, float]:
    """Send a burst; return seconds and seconds of processor time for each word of its later part.

    Args:
        served: gets it.
        stream: the burst.
        words: in it; each gives a line.
    """
    threading.Thread(target=served.sender.sendall, args=(stream,)).start()
    lines, began = 0, None
    while lines < words:
        lines += served.receiver.recv(1 << 20).count(b"\n")
        if began is None and lines >= words // 3:
            began = time.perf_counter(), used(served), lines
    assert began is not None
    measured = words - began[2]
    return (time.perf_counter() - began[0]) / measured, (used(served) - began[1]) / measured


def spark(options: argparse.Namespace) -> None:
    """Print how fast Spark is when input never ends; both runs are there all the time, and warm."""
    payloads = messages(options.messages, 1000, random.Random(2))
    clock: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    processor: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    with contextlib.ExitStack() as stack:
        runs = {}
        for name, more in CONTENDERS.items():
            runs[name] = OnSpark("wallaroo", partitions=2, throughput=True, options=more)
            stack.callback(runs[name].close)
            if more:
                threading.Thread(target=look, args=(page(runs[name].said()),), daemon=True).start()
        for served in runs.values():
            served.warm_up(options.seconds, 1000)
        for count in range(options.rounds):
            for name in list(CONTENDERS)[:: -1 if count % 2 else 1]:
                before, began = runs[name].cpu_seconds(), time.perf_counter()
                runs[name].through(payloads)
                clock[name].append(time.perf_counter() - began)
                processor[name].append(runs[name].cpu_seconds() - before)
    tell("spark", "messages", options.messages, clock, processor)


def tell(
    label: str,
    what: str,
    number: int,
    clock: Mapping[str, list[float]],
    processor: Mapping[str, list[float]],
) -> None:
    """Print throughputs, and their ratio to those without figures."""
    for by, seconds in (("clock", clock), ("processor", processor)):
        pairs = zip(seconds["with"], seconds["without"], strict=True)
        found = [theirs / mine for mine, theirs in pairs]
        ratio, (low, high) = statistics.median(found), interval(found)
        rate = number / statistics.median(seconds["with"])
        print(
            f"  by the {by:9} {rate:12,.0f} {what}/s with figures, "
            f"{ratio:.3f} x without (95 %: {low:.3f} to {high:.3f})"
        )
        FIGURES.add(f"{label}/{by}", rate, f"{what}/s", ratio=ratio, baseline="without")


def latency(options: argparse.Namespace) -> None:
    """Print how long a message takes at a moderate rate, and how busy the process is."""
    rounds, seconds = options.rounds, options.seconds
    figures: dict[str, list[tuple[float, float, float]]] = {name: [] for name in CONTENDERS}
    for _ in range(rounds):
        for name in CONTENDERS:
            served = start(name)
            before = used(served)
            percentiles = statistics.quantiles(latencies(served, seconds), n=100)
            busy = (used(served) - before) / seconds
            served.close()
            figures[name].append((percentiles[49], percentiles[98], busy))
    for name, rounds_ in figures.items():
        p50, p99, busy = (statistics.median(column) for column in zip(*rounds_, strict=True))
        print(
            f"  {name:8} p50 {p50 * 1e6:7,.0f} µs   p99 {p99 * 1e6:7,.0f} µs   {busy:.1%} of a core"
        )
        for what, value in (("p50", p50), ("p99", p99)):
            base = statistics.median(
                [one[("p50", "p99").index(what)] for one in figures["without"]]
            )
            label = f"{what}/{name}"
            FIGURES.add(label, value * 1e6, "µs", ratio=value / base, baseline="without")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--words", type=int, default=100_000, help="of each burst")
    parser.add_argument("--messages", type=int, default=400_000, help="of each round on Spark")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each latency run")
    parts = {"saturation": saturation, "latency": latency, "spark": spark}
    run_parts(parser, parts, FIGURES)


if __name__ == "__main__":
    main()
