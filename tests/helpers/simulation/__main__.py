"""The command: simulates for some time, runs one seed again, or looks for the planted faults.

    python -m simulation --minutes 5            # in as many processes as there are cores
    python -m simulation --subject log --seed 7 # one run, once more
    python -m simulation --planted ""           # each planted fault whose name contains the text

Run it with `PYTHONPATH=tests/helpers`. It exits 1 if a promise was broken or a fault not found.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import os
import sys
import time
from collections.abc import Sequence

from simulation.planted import named
from simulation.search import PATIENCE, SUBJECTS, Failure, failure, quiet, search, share, shrunk


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m simulation", description=__doc__)
    parser.add_argument("--subject", choices=sorted(SUBJECTS), help="what is simulated; all")
    parser.add_argument("--minutes", type=float, default=1.0, help="how long; 0: for ever")
    parser.add_argument("--seed", type=int, help="run the plan of this seed, and no other")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--planted", metavar="WORDS", help="look for these planted faults")
    options = parser.parse_args(arguments)
    names = [options.subject] if options.subject else sorted(SUBJECTS)
    if options.planted is not None:
        return _look_for(options.planted, options.subject)
    if options.seed is not None:
        return max([_once(name, options.seed) for name in names])
    return _simulate(names, options.first, options.minutes * 60 or float("inf"))


def _simulate(names: list[str], first: int, seconds: float) -> int:
    """Run seed after seed in a process for each core."""
    count = os.cpu_count() or 1
    with multiprocessing.get_context("spawn").Pool(count) as pool:
        runs = [(names, first + number, count, seconds) for number in range(count)]
        results = pool.starmap(share, runs)
    for name in names:
        runs_made, crashes = (sum(one[0][name][index] for one in results) for index in (0, 1))
        spent = sum(one[0][name][2] for one in results) / count
        rate = crashes / spent if spent else 0.0
        print(f"{name}: {runs_made} runs, {crashes} crashes and restarts, {rate:.0f} a second")
    failures = [one[1] for one in results if one[1] is not None]
    for name, found in failures:
        _tell(name, found)
    return 1 if failures else 0


def _once(name: str, seed: int) -> int:
    with quiet():
        found, crashes = failure(SUBJECTS[name], SUBJECTS[name].drawn(seed))
        if found is not None:
            found = shrunk(SUBJECTS[name], found, PATIENCE)
    if found is None:
        print(f"{name}: seed {seed}: {crashes} crashes and restarts, no promise broken")
        return 0
    _tell(name, found)
    return 1


def _look_for(words: str, subject: str | None) -> int:
    missed = 0
    for planted in named(words):
        if subject not in (None, planted.subject):
            continue
        before = time.perf_counter()
        with quiet(), planted.plant():
            found, runs, _ = search(SUBJECTS[planted.subject], itertools.count(), PATIENCE)
        spent = time.perf_counter() - before
        missed += found is None
        how = found.what[:90] if found is not None else "NOT FOUND"
        print(f"{spent:6.2f} s {runs:5} runs  {planted.subject}: {planted.what}: {how}", flush=True)
    return 1 if missed else 0


def _tell(name: str, found: Failure) -> None:
    print(f"{name}: seed {found.plan.seed}: {found.what}\nwith {found.plan}")


if __name__ == "__main__":
    sys.exit(main())
