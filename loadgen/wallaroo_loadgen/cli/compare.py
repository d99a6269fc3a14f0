"""The command `wallaroo compare`: are runs worse than a baseline, or when did they become so?"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Subparsers = argparse._SubParsersAction[argparse.ArgumentParser]

_HELP = """\
how it is judged:
  A run is one observation. Metrics are compared by Welch's t interval of their logarithms, all
  intervals together at 95 % (Bonferroni). A metric is worse if its whole interval is above the
  bound, not worse if all of it is below, else inconclusive: then the output says how many runs
  would decide. The part of the outputs that is slower by more than the bound, at any percentile, is
  judged by a permutation test of the runs; it can only make a file worse. With --history, a change
  is where a permutation test of ranks says so; three files or more must be on each side.
  docs/load-testing.md has methods, assumptions and sources.

examples:
  wallaroo load word_count … --repeat 5 --json before.json
  wallaroo load word_count … --repeat 5 --json after.json
  wallaroo compare before.json after.json --bound 0.1 --metric p50 --metric p99.9=0.3
  wallaroo compare before.json after.json --html comparison.html --junit comparison.xml
  wallaroo compare --history results --metric p99

exit codes: 0 no bounded metric is worse (with --history: the newest level is not), 1 worse,
2 called wrongly, 6 inconclusive: these runs cannot tell
"""


def register(subparsers: Subparsers) -> None:
    """Add the command."""
    parser = subparsers.add_parser(
        "compare",
        help="compare load test results: worse, not worse, or inconclusive",
        description="Compare the runs of `wallaroo load --repeat N --json` files with those of the "
        "first file, the baseline; or find where the level of a history of such files changed.",
        epilog=_HELP,
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
        "that of --bound; may be repeated (p50 and p99)",
    )
    add("--seed", type=int, default=0, help="of permutations and bootstraps (0)")
    add("--html", metavar="FILE", type=Path, help="write a page with plots")
    add("--junit", metavar="FILE", type=Path, help="write the verdicts as JUnit XML")
    parser.set_defaults(run=run)


def run(namespace: argparse.Namespace) -> int:
    """Compare, and return the exit code."""
    from wallaroo_loadgen.cli import comparing  # scipy takes a second: not for `wallaroo --help`

    return comparing.run(namespace)
