"""``wallaroo conform --mutants``: can the suite fail? The kill matrix."""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
from dataclasses import replace
from pathlib import Path

from wallaroo_conformance.cases.counterexamples import Counterexample
from wallaroo_conformance.cli.output import progress_shown, write_reports
from wallaroo_conformance.judge.results import BROKEN, INCOMPLETE, KEPT
from wallaroo_conformance.killing import BUDGET, Kill, Mutant, installed_mutants, kill
from wallaroo_conformance.report.pages import html

_EQUIVALENT_CASES = 1_500  # none of which may fail


def kill_matrix(options: argparse.Namespace) -> int:
    """Run the command; 0: all killed that must be, and no other."""
    chosen = [mutant for mutant in installed_mutants() if _fits(mutant, options.mutants)]
    if not chosen:
        print(f"wallaroo conform: no mutant fits {options.mutants!r}", file=sys.stderr)
        return INCOMPLETE
    kills: list[Kill] = []
    heading = f"{'':3} {'mutant':40} {'home':10} {'breaks':10} {'messages':>8} {'time':>7}  found"
    print(heading)
    for mutant in chosen:
        budget = BUDGET
        if not mutant.rule:
            budget = replace(budget, cases=_EQUIVALENT_CASES)
        with progress_shown(mutant.name, sys.stderr) as watcher:
            came = kill(
                mutant,
                seed=options.seed,
                budget=budget,
                watcher=watcher,
                brokers=options.brokers,
            )
        kills.append(came)
        if options.store is not None and came.ok:
            _store(came, options.store)
        print(_line(came), flush=True)
    good = sum(came.ok for came in kills)
    print(f"{good} of {len(kills)} came out as expected")
    places = [came.place for came in kills if came.mutant.shown_by == "cases" and came.place]
    if places:
        early = [sum(place <= most for place in places) for most in (1, 3)]
        print(
            f"of {len(places)} found by cases, {early[0]} have the rule they break named first, "
            f"{early[1]} among the first three"
        )
    write_reports(
        {
            options.html: lambda: html([], kills),
            options.json: lambda: json.dumps(_form(kills), indent=1) + "\n",
        }
    )
    return KEPT if good == len(kills) else BROKEN


def _fits(mutant: Mutant, pattern: str) -> bool:
    names = (mutant.name, mutant.home, mutant.rule)
    return any(fnmatch.fnmatchcase(name, pattern) for name in names)


def _store(came: Kill, directory: Path) -> None:
    """Store the case that killed a mutant, as a counterexample of the engine it is made of."""
    mutant, failure = came.mutant, came.failure
    if failure is None or failure.case is None:
        return
    note = f"kills the mutant {mutant.name!r}"
    example = Counterexample(failure.case, failure.rule, failure.law, mutant.home, note=note)
    print(f"    stored as {example.store(directory)}")


def _line(came: Kill) -> str:
    mutant = came.mutant
    mark = "ok " if came.ok else "BAD"
    messages = "" if came.messages is None else came.messages
    rules = came.problem or ", ".join(came.rules) or "nothing"
    return (
        f"{mark} {mutant.name:40} {mutant.home:10} {mutant.rule or '(nothing)':10} {messages!s:>8} "
        f"{came.seconds:6.1f}s  {rules}"
    )


def _form(kills: list[Kill]) -> dict[str, object]:
    return {
        "format": "wallaroo-mutants/1",
        "mutants": [
            {
                "name": came.mutant.name,
                "home": came.mutant.home,
                "breaks": came.mutant.rule,
                "says": came.mutant.says,
                "found": list(came.rules),
                "messages": came.messages,
                "seconds": round(came.seconds, 2),
                "ok": came.ok,
            }
            for came in kills
        ],
        "footer": {"mutants": len(kills), "ok": sum(came.ok for came in kills)},
    }
