"""Which branches of the engines and the edges does the suite reach? Elsewhere a fault is safe.

Runs what tries mutants made by machine, on what has no fault, and looks at the branches of the
modules that decide: by home the share that was reached, and the others, from line to line. A
negative line stands for the end of a function.

    pip install --group mutants coverage && python benchmarks/reached.py [--home H] [--tests]

What no run can reach, and what only live runs or tests do, is told in
[the decision about steering](../docs/decisions/steering.md).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import tempfile
from pathlib import Path
from typing import Any

import coverage
from facts import Figures, add_json_option, machine_facts
from machine_mutants import MODULES, file_of, tests_fail, trial


def reached(home: str, cases: int, seed: int, *, tests: bool) -> list[dict[str, Any]]:
    """Return what coverage says of a home's modules, by module: without tests, and with them."""
    files = {name: file_of(name) for name in MODULES[home]}
    watched = [*files.values()]
    watch = coverage.Coverage(
        data_file=None,
        config_file=False,
        branch=True,
        include=watched,
        concurrency=["thread", "greenlet"],  # the simulation's threads are greenlets
    )

    def so_far() -> dict[str, Any]:
        with tempfile.NamedTemporaryFile() as report:
            watch.json_report(watched, outfile=report.name)
            by_name = json.loads(Path(report.name).read_bytes())["files"]
        by_path = {Path(name).resolve(): one for name, one in by_name.items()}
        return {name: by_path[Path(file).resolve()] for name, file in files.items()}

    with watch.collect():
        trial(home, cases, seed)
    found = [so_far()]
    if tests:
        with watch.collect():
            failed = tests_fail(home)
        if failed:
            raise RuntimeError(f"tests of {home} fail: mend these first")
        found.append(so_far())
    return found


def main() -> None:
    """Run and print, home by home, each in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--home", choices=MODULES, action="append")
    parser.add_argument("--cases", type=int, default=2_500, help="that are generated")
    parser.add_argument("--tests", action="store_true", help="then say what tests reach, too")
    parser.add_argument("--seed", type=int, default=0)
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    figures = Figures(__file__)
    for home in options.home or list(MODULES):
        with multiprocessing.get_context("fork").Pool(1) as pool:
            arguments = (home, options.cases, options.seed)
            told = pool.apply(reached, arguments, {"tests": options.tests})
        for modules, what in zip(told, ("reached", "reached by tests too"), strict=False):
            sums = [one["summary"] for one in modules.values()]
            there = sum([one["num_branches"] for one in sums])
            share = sum([one["covered_branches"] for one in sums]) / there
            print(f"{home}: {what} {share:.1%} of {there} branches")
            figures.add(f"{home}/branches", there, "branches")
            figures.add(f"{home}/{what}", round(100 * share, 1), "%")
        for name, one in told[-1].items():
            for origin, end in one["missing_branches"]:
                print(f"  {name}:{origin} -> {end}", flush=True)
    figures.write(options.json, {"cases": options.cases, "seed": options.seed})


if __name__ == "__main__":
    main()
