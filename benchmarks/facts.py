"""The machine on which a figure was measured, and how to measure side by side."""

from __future__ import annotations

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path


def machine_facts() -> str:
    """Return one line about the machine: processor, cores, load, Python."""
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if sys.platform == "linux" else ():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{cpu}, {cores} cores, load {load}, Python {platform.python_version()}"


def side_by_side(
    contenders: dict[str, Callable[[], Callable[[], object]]],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, list[float]]:
    """Return the seconds that each contender took in each round; contenders run in turns.

    A contender prepares a run, which is not timed, and returns it. A warm-up round does not count.
    Work in this process alone may be timed by `time.process_time`, which depends little on other
    processes.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for count in range(rounds + 1):
        for name, prepare in contenders.items():
            run = prepare()
            start = clock()
            run()
            elapsed = clock() - start
            if count:
                seconds[name].append(elapsed)
    return seconds


def ratios(seconds: dict[str, list[float]], baseline: str) -> dict[str, float]:
    """Return for each contender the median of its round-by-round ratios to the baseline."""
    base = seconds[baseline]
    return {
        name: statistics.median([mine / theirs for mine, theirs in zip(times, base, strict=True)])
        for name, times in seconds.items()
    }
