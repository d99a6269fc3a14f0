"""What leading the search to rare pairs of facts is worth: cases until a fault is found.

    python benchmarks/steering.py [--seeds N] [--cases N] [--mutants all|NAME …]

Without `--mutants`: for each pair of facts, how many cases the search needs to meet it, by chance
alone and led. A fault that shows only where two facts meet falls with the first such case. Nothing
but the reference runs. With `--mutants`: for those that random cases kill late or never, how many
cases each takes, drawn at random and as the search has them, with its tours and led cases.
"""

from __future__ import annotations

import argparse
import statistics
from functools import cache

from facts import Figures, add_json_option, machine_facts
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.operators import Tone
from wallaroo_conformance.judge.coverage import Coverage, Kind, Pair
from wallaroo_conformance.judge.oracle import Oracle
from wallaroo_conformance.killing import Mutant, installed_mutants
from wallaroo_conformance.search.generation import Generation
from wallaroo_conformance.search.search import Search

from wallaroo.engine import Isolation, load_engine

_JOB = 256
_RARE = 1 / 4
"""A pair is rare if chance alone needs more than this share of the cases to meet it."""

_RARE_MUTANT = 1 / 10
"""A mutant needs what is rare if it takes more than this share of the cases, drawn at random."""

_SHOWN = 12
_STEP = 32  # cases between two looks whether a mutant is dead


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("--cases", type=int, default=5_000, metavar="N", help="most cases a search")
    parser.add_argument("--mutants", nargs="+", metavar="NAME", help="measure these mutants")
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    figures = Figures(__file__)
    if options.mutants:
        _mutants(options, figures)
    else:
        _pairs(options, figures)


def _pairs(options: argparse.Namespace, figures: Figures) -> None:
    """Print how many cases the search needs to meet pairs that are rare."""
    chance: list[dict[tuple[Kind, Pair], int]] = []
    led: list[dict[tuple[Kind, Pair], int]] = []
    for seed in range(options.seeds):
        chance.append(_first_met(seed, options, led=False))
        led.append(_first_met(seed, options, led=True))
        print(f"seed {seed}: {len(chance[-1])} pairs met by chance, {len(led[-1])} led", flush=True)
    never = options.cases + 1
    rows = []
    for pair in {pair for met in (*chance, *led) for pair in met}:
        by_chance = statistics.median(met.get(pair, never) for met in chance)
        steered = statistics.median(met.get(pair, never) for met in led)
        if by_chance > _RARE * options.cases:
            rows.append((steered / by_chance, by_chance, steered, pair))
    rows.sort(key=lambda row: row[:3])
    third = sum(ratio <= 1 / 3 for ratio, *_ in rows)
    middle = statistics.median(ratio for ratio, *_ in rows)
    many = f"{_RARE * options.cases:.0f} cases by chance"
    print(f"{len(rows)} pairs need more than {many}, median of the seeds")
    print(f"led, {third} of them ({third / len(rows):.0%}) need at most a third of these cases")
    print(f"median: {middle:.2f} of the cases")
    for ratio, by_chance, steered, (_, (one, other)) in rows[:: max(len(rows) // _SHOWN, 1)]:
        shown = f"more than {options.cases}" if by_chance == never else f"{by_chance:.0f}"
        print(f"  {shown:>14} -> {steered:5.0f}  {ratio:.2f}  {one.value}; {other.value}")
    figures.add("rare pairs/in a third", third / len(rows), "share")
    figures.add("rare pairs/cases led", middle, "of the cases by chance")
    figures.write(options.json)


def _first_met(
    seed: int, options: argparse.Namespace, *, led: bool
) -> dict[tuple[Kind, Pair], int]:
    """Return for each pair the number of the first case that met it."""
    oracle = Oracle(load_engine("reference"))
    coverage = Coverage()
    modes: frozenset[Isolation] = frozenset({"isolated"})
    generation = Generation(seed, modes, _JOB, coverage if led else None)
    found: dict[tuple[Kind, Pair], int] = {}
    tried = 0
    while tried < options.cases:
        chunk = generation.next_chunk(options.cases - tried)
        for meaning in oracle.ask(list(chunk)):
            tried += 1
            kind = (meaning.case.timed, meaning.case.isolation)
            new = coverage.add(meaning.case, meaning.facts, chunk[meaning.case])
            found.update(((kind, pair), tried) for pair in new)
    return found


def _mutants(options: argparse.Namespace, figures: Figures) -> None:
    """Print how many cases mutants take: as they are drawn at random, and as a search has them.

    Of those that random cases kill early there is nothing to say: they need no rare pair.
    """
    oracle = Oracle(load_engine("reference"))
    never = options.cases + 1
    enough = _RARE_MUTANT * options.cases
    print(f"cases until the first that fails, median of seeds 0 to {options.seeds - 1}")
    ratios = []
    for mutant in _chosen(options):

        def cases(*, drawn: bool, mutant: Mutant = mutant) -> float:
            return statistics.median(
                _killed_at(mutant, seed, oracle, options.cases, drawn=drawn) or never
                for seed in range(options.seeds)
            )

        if (drawn := cases(drawn=True)) <= enough:
            continue
        searched = cases(drawn=False)
        ratios.append(searched / drawn)
        shown = f"more than {options.cases}" if drawn == never else f"{drawn:.0f}"
        print(f"  {mutant.name:40} {shown:>14} -> {searched:5.0f}  {ratios[-1]:.2f}", flush=True)
    third = sum(ratio <= 1 / 3 for ratio in ratios)
    print(f"{len(ratios)} mutants need more than {enough:.0f} random cases; {third} of them die")
    print("within a third of these cases when the search is as it is")
    figures.add("mutants/rare", len(ratios), "mutants")
    figures.add("mutants/in a third", third, "mutants")
    figures.write(options.json)


def _chosen(options: argparse.Namespace) -> list[Mutant]:
    """Return the mutants that are named, or all that cases show."""
    known = [mutant for mutant in installed_mutants() if mutant.rule and mutant.home != "spark"]
    known = [mutant for mutant in known if mutant.shown_by == "cases"]
    if options.mutants != ["all"]:
        if unknown := set(options.mutants) - {mutant.name for mutant in known}:
            raise SystemExit(f"no mutant that cases show is called {', '.join(sorted(unknown))}")
        return [mutant for mutant in known if mutant.name in options.mutants]
    return known


def _killed_at(mutant: Mutant, seed: int, oracle: Oracle, most: int, *, drawn: bool) -> int | None:
    """Return the number of the first case on which a mutant fails."""
    with mutant.during():
        search = Search(mutant.make(), oracle)
        only: Isolation = "isolated"
        if only not in search.runner.capabilities.isolation:
            only = "trusting"
        cases = _drawn(seed, only, most) if drawn else _searched(seed, only, most)
        for start in range(0, len(cases), _STEP):
            search.replay(cases[start : start + _STEP])
            if search.findings.failing:
                return search.findings.tried_until_failure
    return None


@cache
def _drawn(seed: int, mode: Isolation, most: int) -> list[ConformanceCase]:
    """Return cases as they are drawn, without anything else."""
    tone: Tone = "any" if mode == "isolated" else "tame"
    plain, timed = (iter(generate(most, seed, tone, timed=timed)) for timed in (False, True))
    return [next(timed if number % 4 == 0 else plain) for number in range(most)]


@cache
def _searched(seed: int, mode: Isolation, most: int) -> list[ConformanceCase]:
    """Return the cases of a search, which depend on the reference alone."""
    oracle, coverage = Oracle(load_engine("reference")), Coverage()
    generation = Generation(seed, frozenset({mode}), _JOB, coverage)
    found: list[ConformanceCase] = []
    while len(found) < most:
        chunk = generation.next_chunk(most - len(found))
        for meaning in oracle.ask(list(chunk)):
            coverage.add(meaning.case, meaning.facts, chunk[meaning.case])
        found += chunk
    return found


if __name__ == "__main__":
    main()
