"""The command `wallaroo compare`: are runs worse than a baseline, or when did they become so?"""

from __future__ import annotations

import argparse
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "compare",
        help="compare load test results: worse, not worse, or inconclusive",
        description="Compare the runs of `wallaroo load --repeat N --json` files with those of the "
        "first file, the baseline; or find where the level of a history of such files changed.",
        epilog=(files(__package__) / "compare.txt").read_text("utf-8"),
    )
    add = parser.add_argument
    add("files", metavar="FILE.json", nargs="*", type=Path)
    add("--history", metavar="DIR", type=Path, help="instead: all *.json files of a directory")
    add("--bound", type=float, default=0.1, help="allowed increase (0.1: 10 %%)")
    add(
        "--metric",
        metavar="NAME[=BOUND]",
        action="append",
        help="the metric to judge: a percentile such as p99.9, max or mean, with its own bound or "
        "that of --bound; may be repeated (p50, p90 and p99)",
    )
    add("--html", metavar="FILE", type=Path, help="write a page with plots")
    add("--junit", metavar="FILE", type=Path, help="write the verdicts as JUnit XML")
    parser.set_defaults(run=run)


def run(namespace: argparse.Namespace) -> int:
    """Compare, and return the exit code."""
    from wallaroo_loadgen.cli import comparing  # scipy takes a second: not for `wallaroo --help`

    return comparing.run(namespace)
