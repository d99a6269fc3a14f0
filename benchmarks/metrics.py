"""What `--metrics` costs the reference engine, with the live page open.

``python benchmarks/metrics.py [--rounds N] [--words N] [--seconds S]``: word count at saturation
(goal: at most 3 % of the throughput) and its latency at 2,000 messages a second (goal: nothing
that can be measured), with and without. On a busy machine the processor's time tells more than the
clock: both are shown.
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

import psutil
from facts import Figures, add_json_option, machine_facts
from in_process import word_count_by_hand, word_lines
from tcp import RATE, Served, latencies

from wallaroo.frames import frames

FIGURES = Figures(__file__)
CONTENDERS = {"without": (), "with": ("--metrics", "127.0.0.1:0")}


def start(name: str) -> Served:
    """Start word count; with figures, a page is open too."""
    served = Served("reference", *CONTENDERS[name])
    if found := re.search(r"metrics at (\S+)", served.said):
        threading.Thread(target=look, args=(found[1] + "events",), daemon=True).start()
    return served


def look(url: str) -> None:
    """Read what a page reads, to the end."""
    with contextlib.suppress(OSError), urllib.request.urlopen(url) as answer:
        while answer.readline():
            pass


def used(served: Served) -> float:
    """Return the seconds of processor time that a contender has used."""
    times = psutil.Process(served.pid).cpu_times()
    return float(times.user + times.system)


def interval(ratios: list[float]) -> tuple[float, float]:
    """Return the limits between which the median is with 95 %, by bootstrap."""
    chance = random.Random(1)
    medians = sorted(
        [statistics.median(chance.choices(ratios, k=len(ratios))) for _ in range(2000)]
    )
    return medians[49], medians[-50]


def saturation(rounds: int, words: int) -> None:
    """Print how fast it is when input never ends."""
    lines = word_lines(words, 20_000, seed=1)
    stream = frames(lines)
    expected = sum(map(len, word_count_by_hand(lines)))
    clock: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    processor: dict[str, list[float]] = {name: [] for name in CONTENDERS}
    for count in range(rounds + 1):
        for name in CONTENDERS:
            served = start(name)
            before, began = used(served), time.perf_counter()
            threading.Thread(target=served.sender.sendall, args=(stream,)).start()
            missing = expected
            while missing:
                missing -= len(served.receiver.recv(1 << 20))
            if count:  # the first round warms up
                clock[name].append(time.perf_counter() - began)
                processor[name].append(used(served) - before)
            served.close()
    for what, seconds in (("clock", clock), ("processor", processor)):
        pairs = zip(seconds["with"], seconds["without"], strict=True)
        found = [theirs / mine for mine, theirs in pairs]
        ratio, (low, high) = statistics.median(found), interval(found)
        rate = words / statistics.median(seconds["with"])
        print(
            f"  by the {what:9} {rate:12,.0f} words/s with figures, "
            f"{ratio:.3f} x without (95 %: {low:.3f} to {high:.3f})"
        )
        label = f"throughput/{what}"
        FIGURES.add(label, rate, "words/s", ratio=ratio, baseline="without")


def latency(rounds: int, seconds: float) -> None:
    """Print how long a message takes at a moderate rate, and how busy the process is."""
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
    parser.add_argument("--words", type=int, default=3_000_000)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each latency run")
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    print(f"word count at saturation, {options.words:,} words, median of {options.rounds} rounds:")
    saturation(options.rounds, options.words)
    print(f"latency at {RATE:,} messages/s, {options.seconds:g} s, {options.rounds} rounds:")
    latency(options.rounds, options.seconds)
    FIGURES.write(options.json)


if __name__ == "__main__":
    main()
