"""The machine on which a figure was measured, how to measure side by side, and kept figures."""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def machine() -> dict[str, str | int | list[float]]:
    """Return the machine's processor, cores, load (of 1, 5 and 15 minutes) and Python."""
    cpu = platform.processor() or platform.machine()
    for line in Path("/proc/cpuinfo").read_text().splitlines() if sys.platform == "linux" else ():
        if line.startswith("model name"):
            cpu = line.split(":", 1)[1].strip()
            break
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": cpu,
        "cores": cores or 1,
        "load": [round(value, 2) for value in os.getloadavg()],
        "python": platform.python_version(),
    }


def machine_facts() -> str:
    """Return one line about the machine: processor, cores, load, Python."""
    load = ", ".join(f"{value:.2f}" for value in os.getloadavg())
    facts = machine()
    return f"{facts['processor']}, {facts['cores']} cores, load {load}, Python {facts['python']}"


class Figures:
    """What a benchmark has measured, as JSON for the documents (docs/tools/regenerate.py).

    Args:
        script: the benchmark's file; the figures are called by its name.
    """

    def __init__(self, script: str) -> None:
        self._benchmark = Path(script).stem
        self._figures: list[dict[str, str | float]] = []

    def add(
        self, name: str, value: float, unit: str, *, ratio: float | None = None, baseline: str = ""
    ) -> None:
        """Keep a figure.

        Args:
            name: words joined by ``/``, such as ``throughput/reference``.
            value: the figure.
            unit: of `value`.
            ratio: to what `baseline` measured in the same run; `None`: there is none.
            baseline: what the ratio is to.
        """
        figure: dict[str, str | float] = {"name": name, "value": value, "unit": unit}
        if ratio is not None:
            figure |= {"ratio": ratio, "baseline": baseline}
        self._figures.append(figure)

    def write(self, path: Path | None, more: Mapping[str, Any] | None = None) -> None:
        """Write all of them, and what else is kept beside them, if there is where to."""
        if path is None:
            return
        kept = {
            "benchmark": self._benchmark,
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "machine": machine(),
            "figures": self._figures,
            **(more or {}),
        }
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def add_json_option(parser: argparse.ArgumentParser) -> None:
    """Add ``--json FILE``, for `Figures.write`."""
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="keep the figures there, for the documents"
    )


def run_parts(
    parser: argparse.ArgumentParser,
    parts: Mapping[str, Callable[[argparse.Namespace], object]],
    figures: Figures,
) -> None:
    """Run those of a benchmark's parts that the command line names, or all, and keep the figures.

    Args:
        parser: with the benchmark's own options.
        parts: by name; the first line of a part's docstring says what it prints.
        figures: what they measure.
    """
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(parts))
    add_json_option(parser)
    options = parser.parse_args()
    for part in options.parts:
        if part not in parts:
            parser.error(f"no part is called {part!r}; there are {', '.join(parts)}")
    for name in options.parts or parts:
        summary = str(parts[name].__doc__).splitlines()[0].removeprefix("Print ")
        print(f"{name}: {summary}\n  {machine_facts()}", flush=True)
        parts[name](options)
    figures.write(options.json)


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
