"""What leading the search to rare pairs of facts is worth: cases until a fault is found.

    python benchmarks/steering.py [--seeds N] [--cases N] [--part PART] [--mutants NAME …]

Without `--mutants`: for each pair of facts, how many cases the search needs to meet it, by chance
alone and led. A fault that shows only where two facts meet falls with the first such case. Nothing
but the reference runs. With `--mutants`: cases until the first failing one, for each of them.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator

from facts import Figures, add_json_option, machine_facts
from wallaroo_conformance.cases.timed.case import TimedCase
from wallaroo_conformance.judge.coverage import Coverage, Kind, Pair
from wallaroo_conformance.judge.oracle import Oracle
from wallaroo_conformance.judge.rules import RULES
from wallaroo_conformance.killing import Mutant, installed_mutants
from wallaroo_conformance.search.budget import Budget
from wallaroo_conformance.search.generation import Generation, Part
from wallaroo_conformance.search.search import Search
from wallaroo_conformance.search.steering import Steering

from wallaroo.engine import Isolation, load_engine

_JOB = 256
_RARE = 1 / 4
"""A pair is rare if chance alone needs more than this share of the cases to meet it."""

_SHOWN = 12


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3, metavar="N")
    parser.add_argument("--cases", type=int, default=5_000, metavar="N", help="most cases a search")
    parser.add_argument("--mutants", nargs="+", metavar="NAME", help="measure these mutants")
    parser.add_argument("--part", choices=["first", "second", "both"], default="both")
    add_json_option(parser)
    options = parser.parse_args()
    print(machine_facts())
    figures = Figures(__file__)
    if options.mutants:
        _mutants(options)
    else:
        _pairs(options, figures)
    figures.write(options.json)


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


def _first_met(
    seed: int, options: argparse.Namespace, *, led: bool
) -> dict[tuple[Kind, Pair], int]:
    """Return for each pair the number of the first case that met it."""
    oracle = Oracle(load_engine("reference"))
    coverage = Coverage()
    modes: frozenset[Isolation] = frozenset({"isolated"})
    steering = Steering(coverage) if led else None
    generation = Generation(seed, modes, _JOB, steering, part=options.part)
    found: dict[tuple[Kind, Pair], int] = {}
    tried = 0
    while tried < options.cases:
        chunk = generation.next_chunk(options.cases - tried)
        for meaning in oracle.ask(list(chunk)):
            tried += 1
            kind = (isinstance(meaning.case, TimedCase), meaning.case.isolation)
            new = coverage.add(meaning.case, meaning.facts, chunk[meaning.case])
            found.update(((kind, pair), tried) for pair in new)
    return found


def _mutants(options: argparse.Namespace) -> None:
    """Print how many cases each mutant takes."""
    print(f"cases until the first that fails, seeds 0 to {options.seeds - 1}")
    print(f"{'mutant':40} {'by chance':>24} {'led':>24}  medians")
    for mutant in _named(options.mutants):
        counts = [
            [
                _until_failure(mutant, seed, options.cases, by_chance=by_chance)
                for seed in range(options.seeds)
            ]
            for by_chance in (True, False)
        ]
        texts = [" ".join(str(one or f">{options.cases}") for one in row) for row in counts]
        one, other = (statistics.median(n or options.cases + 1 for n in row) for row in counts)
        print(f"{mutant.name:40} {texts[0]:>24} {texts[1]:>24}  {one:.0f} -> {other:.0f}, ", end="")
        print(f"{other / one:.2f}", flush=True)


def _named(names: list[str]) -> Iterator[Mutant]:
    known = {mutant.name: mutant for mutant in installed_mutants()}
    for name in names:
        if name not in known:
            raise SystemExit(f"no mutant is called {name!r}")
        yield known[name]


def _until_failure(mutant: Mutant, seed: int, cases: int, *, by_chance: bool) -> int | None:
    part: Part = "second" if RULES[mutant.rule].second_part else "first"
    with mutant.during():
        search = Search(
            mutant.make(),
            seed=seed,
            job=mutant.job,
            options=mutant.options,
            give_up_early=True,
            part=part,
            by_chance=by_chance,
        )
        search.search(Budget(cases, variant_every=0))
    return search.findings.tried_until_failure


if __name__ == "__main__":
    main()
