"""The command `wallaroo compare`: runs side by side, and whether one is worse than the first.

Latencies vary by factors, so means and confidence intervals are taken of their logarithms, and a
comparison is a ratio with an interval (Welch's, 95 %). It needs at least two runs on each side
(`wallaroo load --repeat`); with one there is a ratio and no confidence, which is said.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.verdict import show
from wallaroo_loadgen.presentation.files import read_runs
from wallaroo_loadgen.presentation.terminal import print_comparison

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

METRICS = ("p50", "p90", "p99", "p99.9", "max")

_USAGE = 2
_SAME_SETTINGS = ("workload", "rate", "schedule", "connections", "duration", "values")

# Student's t, two-sided 95 %, by degrees of freedom; between two of them the lower is taken.
_T95 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}
_T95 |= {10: 2.228, 12: 2.179, 15: 2.131, 20: 2.086, 30: 2.042, 60: 2.000}


@dataclass(frozen=True)
class Ratio:
    """How much larger a figure is than the baseline's, with its 95 % interval if there is one."""

    value: float
    low: float | None
    high: float | None

    def beyond(self, bound: float) -> bool:
        """Whether it is larger by more than `bound`, as far as the runs can tell."""
        return self.value > 1 + bound and (self.low is None or self.low > 1)

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"× {self.value:.2f}"  # noqa: RUF001 - a multiplication sign is meant
        return f"× {self.value:.2f} ({self.low:.2f}–{self.high:.2f})"  # noqa: RUF001 - likewise


def ratio(baseline: Sequence[float], other: Sequence[float]) -> Ratio:
    """Return the ratio of two samples' geometric means, by Welch's interval of their logarithms."""
    first = [math.log(max(value, 1.0)) for value in baseline]
    second = [math.log(max(value, 1.0)) for value in other]
    difference = statistics.fmean(second) - statistics.fmean(first)
    if len(first) < 2 or len(second) < 2:
        return Ratio(math.exp(difference), None, None)
    parts = [statistics.variance(sample) / len(sample) for sample in (first, second)]
    if sum(parts) == 0:
        return Ratio(math.exp(difference), math.exp(difference), math.exp(difference))
    degrees = sum(parts) ** 2 / sum(
        part**2 / (len(sample) - 1) for part, sample in zip(parts, (first, second), strict=True)
    )
    t = _T95[max(known for known in _T95 if known <= max(1, math.floor(degrees)))]
    width = t * math.sqrt(sum(parts))
    return Ratio(math.exp(difference), math.exp(difference - width), math.exp(difference + width))


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "compare",
        help="compare load test results, and fail on a regression",
        description="Put the runs of several `wallaroo load --json` files side by side. The first "
        "file is the baseline; the runs in one file are repetitions. Exit 1 when another file's "
        "latency is worse by more than the bound, and, with repeated runs, its 95 % interval "
        "excludes no change.",
    )
    parser.add_argument("files", metavar="FILE.json", nargs="+", type=Path)
    parser.add_argument("--bound", type=float, default=0.1, help="allowed increase (0.1: 10 %%)")
    parser.add_argument(
        "--metric",
        action="append",
        choices=METRICS,
        help="what the bound applies to; may be repeated (p50 and p99)",
    )
    parser.set_defaults(run=run)


def run(namespace: argparse.Namespace) -> int:
    """Print the comparison and return the exit code."""
    if len(namespace.files) < 2:
        return _usage("two files or more are needed: the first is the baseline")
    try:
        runs = [_valid(path, read_runs(path)) for path in namespace.files]
    except ValueError as error:
        return _usage(str(error))
    judged = namespace.metric or ["p50", "p99"]
    baseline = runs[0]
    rows = [["", *[f"{path.name} ({len(some)})" for path, some in _pairs(namespace, runs)]]]
    worse: list[str] = []
    for metric in METRICS:
        row = [metric, show(_middle(baseline, metric))]
        for path, other in _pairs(namespace, runs)[1:]:
            found = ratio(_values(baseline, metric), _values(other, metric))
            flag = ""
            if metric in judged and found.beyond(namespace.bound):
                flag = "  WORSE"
                worse.append(f"{path.name}: {metric} {found}")
            row.append(f"{show(_middle(other, metric))}  {found}{flag}")
        rows.append(row)
    console = Console()
    print_comparison(
        console, "latency: geometric mean of the runs, ratio to the first (95 %)", rows
    )
    for path, other in _pairs(namespace, runs)[1:]:
        for line in _differences(baseline[0], other[0]):
            console.print(f"note: {path.name} was measured with another {line}", highlight=False)
    if any(len(some) < 2 for some in runs):
        console.print(
            "note: no confidence without repeated runs (wallaroo load --repeat)", highlight=False
        )
    for line in worse:
        console.print(f"regression beyond {namespace.bound:.0%}: {line}", highlight=False)
    return 1 if worse else 0


def _pairs(
    namespace: argparse.Namespace, runs: list[list[Result]]
) -> list[tuple[Path, list[Result]]]:
    return list(zip(namespace.files, runs, strict=True))


def _valid(path: Path, runs: list[Result]) -> list[Result]:
    """Return the runs that may be compared; a file without any is an error."""
    valid = [run for run in runs if not run.invalid and not run.partial]
    for run in runs:
        if run.invalid or run.partial:
            reason = run.invalid[0] if run.invalid else "interrupted"
            print(f"wallaroo compare: {path}: a run is left out: {reason}", file=sys.stderr)
    if not valid:
        raise ValueError(f"{path}: no valid run")
    return valid


def _values(runs: list[Result], metric: str) -> list[float]:
    return [float(run.latency[metric]) for run in runs]


def _middle(runs: list[Result], metric: str) -> float:
    return statistics.geometric_mean([max(value, 1.0) for value in _values(runs, metric)])


def _differences(first: Result, second: Result) -> list[str]:
    lines = [
        f"{name}: {second.config[name]}, not {first.config[name]}"
        for name in _SAME_SETTINGS
        if first.config[name] != second.config[name]
    ]
    names = ("processor", "processors", "python")
    lines += [
        f"{name}: {second.machine.get(name)}, not {first.machine.get(name)}"
        for name in names
        if first.machine.get(name) != second.machine.get(name)
    ]
    return lines


def _usage(message: str) -> int:
    print(f"wallaroo compare: {message}", file=sys.stderr)
    return _USAGE
