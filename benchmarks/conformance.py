"""How many cases a second the search examines, with their generation, and where the time goes.

Prints rates and a ratio: the search's time to that of generation alone, the least it can take.

    python benchmarks/conformance.py [--engine NAME] [--cases N] [--job N]
"""

from __future__ import annotations

import argparse
import statistics
import time

from facts import Figures, add_json_option, machine_facts
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.judge.oracle import Oracle
from wallaroo_conformance.search.budget import Budget, Check
from wallaroo_conformance.search.search import Search

from wallaroo.engine import load_engine


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--engine", default="compiled")
    parser.add_argument("--cases", type=int, default=2_000)
    parser.add_argument("--job", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=5)
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    print(f"each figure the median of {options.rounds} rounds, CPU s")
    reference = load_engine("reference")
    engine = load_engine(options.engine)
    drawing, observing, searching, ran = [], [], [], 0
    for number in range(options.rounds):
        begun = time.process_time()
        cases = generate(options.cases, number)
        drawn = time.process_time()
        Oracle(reference).ask(cases)
        observed = time.process_time()
        budget = Budget(options.cases)
        check = Check(budget, seed=number, job=options.job)
        search = Search(engine, check)
        wall = time.monotonic()
        search.search()
        wall = time.monotonic() - wall
        done = time.process_time()
        if search.findings.failing:
            raise SystemExit(f"{len(search.findings.failing)} cases fail: this measures nothing")
        drawing.append(drawn - begun)
        observing.append(observed - drawn)
        searching.append(done - observed)
        ran = search.runner.cases
    draw, watch, whole = map(statistics.median, (drawing, observing, searching))
    print(f"generation alone            {options.cases / draw:8.0f} cases/s")
    print(f"the reference, watched      {options.cases / watch:8.0f} cases/s")
    print(
        f"search on {options.engine:10}        {options.cases / whole:8.0f} cases/s per core, "
        f"{whole / draw:.1f} x the generation; {ran} runs of {options.cases} cases"
    )
    print(f"last round by the clock     {options.cases / wall:8.0f} cases/s")
    figures = Figures(__file__)
    for name, seconds in (("generation", draw), ("reference", watch), (options.engine, whole)):
        rate, ratio = options.cases / seconds, draw / seconds
        figures.add(f"{name}/rate", rate, "cases/s", ratio=ratio, baseline="generation/rate")
    figures.write(options.json)


if __name__ == "__main__":
    main()
