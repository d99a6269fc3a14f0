"""Is this commit slower than the last one that was measured on such a machine? ``make bench``.

``python benchmarks/history.py [--against COMMIT] [--keep]`` runs short benchmarks with the engines
of both commits, in turns, and says by how much each cost has changed, with its interval (95 %). A
cost that is given as a ratio to a loop by hand is compared as that ratio, so a machine that is slow
for a while does little harm. The benchmarks themselves are those of this commit.

Exit code: 0 if nothing got slower by more than 3 %, as far as the rounds can tell; 1 if something
did (all of its interval is above 3 %); 2 if there was no commit to compare with.

``--keep`` adds the figures to `results/history.jsonl`: a line for each run, with date, machine and
commit. The last line of a machine of the same processor, cores and Python says with which commit
the next run compares. ``--json FILE`` writes that line to a file, which a CI may keep.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from facts import machine, machine_facts
from scipy.special import stdtrit
from wallaroo_loadgen.comparison.ratio import Ratio, Verdict

HERE = Path(__file__).parent
ROOT = HERE.parent
HISTORY = HERE / "results" / "history.jsonl"
ROOTS = ("", "reference", "spark_impl", "conformance", "loadgen")  # of packages, in a checkout
BOUND = 0.03
LEVEL = 0.95

SHORT: dict[str, Sequence[str]] = {
    "in_process": ("--rounds", "3", "--messages", "10000"),
    "windows": ("--rounds", "3", "--messages", "10000", "--windows", "10000"),
    "nexmark": ("reference", "--rounds", "3", "--events", "5000", "--queries", "q0,q5,q8,q17"),
}
"""The benchmarks that are run, with their arguments."""

SAID = {
    Verdict.WORSE: "SLOWER",
    Verdict.NOT_WORSE: "not slower",
    Verdict.INCONCLUSIVE: "not known: more rounds would tell",
}


def costs(kept: Mapping[str, Any]) -> dict[str, float]:
    """Return what a benchmark's figures cost: less is better.

    Args:
        kept: as `facts.Figures` writes it.
    """
    found = {}
    for figure in kept["figures"]:
        name = f"{kept['benchmark']} {figure['name']}"
        if figure["unit"] == "bytes" or figure["name"].endswith(f"/{figure.get('baseline')}"):
            continue
        if "ratio" in figure:
            found[name] = figure["ratio"]
        else:
            found[name] = 1 / figure["value"] if figure["unit"].endswith("/s") else figure["value"]
    return found


def measured(tree: Path, names: Sequence[str]) -> dict[str, float]:
    """Return the costs that short benchmarks measure with the engines of a checkout."""
    found: dict[str, float] = {}
    path = os.pathsep.join([str(tree / root) for root in ROOTS])
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            kept = Path(folder) / f"{name}.json"
            command = [sys.executable, str(HERE / f"{name}.py"), *SHORT[name], "--json", str(kept)]
            environment = {**os.environ, "PYTHONPATH": path}
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                raise SystemExit(f"{name} cannot be run with {tree}:\n{done.stderr}")
            found |= costs(json.loads(kept.read_text("utf-8")))
    return found


def changes(pairs: Sequence[tuple[Mapping[str, float], Mapping[str, float]]]) -> dict[str, Ratio]:
    """Return how much larger each cost is in the second of a pair, by a t interval of logarithms.

    Args:
        pairs: costs by name, of both commits, measured one after the other; two pairs or more.
    """
    found = {}
    for name in pairs[0][0]:
        logs = [math.log(new[name] / old[name]) for old, new in pairs]
        middle = statistics.mean(logs)
        width = float(stdtrit(len(logs) - 1, (1 + LEVEL) / 2))
        width *= statistics.stdev(logs) / math.sqrt(len(logs))
        ends = math.exp(middle - width), math.exp(middle + width)
        found[name] = Ratio(math.exp(middle), *ends, None, LEVEL)
    return found


def git(*arguments: str) -> str:
    """Return what a command of git prints."""
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@contextlib.contextmanager
def checkout(commit: str) -> Iterator[Path]:
    """Check a commit out beside this one, for a while."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "older"
        git("worktree", "add", "--quiet", "--detach", str(tree), commit)
        try:
            yield tree
        finally:
            git("worktree", "remove", "--force", str(tree))


def same_machine() -> dict[str, Any]:
    """Return what says that another machine is such a one."""
    return {name: value for name, value in machine().items() if name != "load"}


def last_commit() -> str | None:
    """Return the commit that was last measured on such a machine; `None`: there is none."""
    lines = HISTORY.read_text("utf-8").splitlines() if HISTORY.exists() else []
    for run in map(json.loads, reversed(lines)):
        if {name: run["machine"].get(name) for name in same_machine()} == same_machine():
            return str(run["commit"])
    return None


def main() -> int:
    """Compare; return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", metavar="COMMIT", help="compare with this one")
    parser.add_argument("--rounds", type=int, default=7, help="of both commits, 2 or more (7)")
    parser.add_argument("--only", choices=list(SHORT), action="append", help="this benchmark")
    parser.add_argument("--keep", action="store_true", help=f"add a line to {HISTORY.name}")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write that line there")
    options = parser.parse_args()
    names = options.only or list(SHORT)
    commit = git("describe", "--always", "--abbrev=12", "--exclude=*", "--dirty=+")
    if options.keep and commit.endswith("+"):
        parser.error("there are changes that are in no commit; commit them before --keep")
    against = options.against or last_commit()
    try:
        against = against and git("rev-parse", "--short=12", "--verify", f"{against}^{{commit}}")
    except subprocess.CalledProcessError:
        parser.error(f"{against} is no commit of this checkout; another one: --against COMMIT")
    run = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit,
        "machine": machine(),
    }
    print(f"{machine_facts()}\n{commit} against {against or 'nothing: no such machine yet'}")
    found: dict[str, Ratio] = {}
    if against is None:
        run["costs"] = measured(ROOT, names)
    else:
        pairs = []
        with checkout(against) as older:
            for number in range(max(options.rounds, 2)):
                turns = (older, ROOT) if number % 2 else (ROOT, older)
                both = {tree: measured(tree, names) for tree in turns}
                pairs.append((both[older], both[ROOT]))
                print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
        found = changes(pairs)
        run["costs"] = {name: statistics.median([new[name] for _, new in pairs]) for name in found}
        run["against"] = against
        run["changes"] = {name: [one.low, one.value, one.high] for name, one in found.items()}
    for name, one in found.items():
        print(f"  {name:45} {one}   {SAID[one.verdict(BOUND)]}")
    line = json.dumps(run) + "\n"
    if options.json:
        options.json.write_text(line, encoding="utf-8")
    if options.keep:
        with HISTORY.open("a", encoding="utf-8") as history:
            history.write(line)
    if not found:
        return 2
    return int(any(one.verdict(BOUND) is Verdict.WORSE for one in found.values()))


if __name__ == "__main__":
    sys.exit(main())
