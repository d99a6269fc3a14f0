"""Checks mutants, which are broken engines, to show that the suite can fail.

A package offers mutants by an entry point of the group ``wallaroo.mutants``: a function that
returns them. They are not part of this package, because they change the inside of engines.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Literal

from wallaroo.engine import Engine
from wallaroo_conformance.judge.results import Failure
from wallaroo_conformance.judge.rules import rule_id
from wallaroo_conformance.language import check_language
from wallaroo_conformance.live import PATIENCE, check_live
from wallaroo_conformance.search.budget import Budget, Check
from wallaroo_conformance.search.running import HarnessError
from wallaroo_conformance.search.search import Search, Watcher

ENTRY_POINTS = "wallaroo.mutants"

BUDGET = Budget(20_000)
"""Within which each mutant must be found; most take a few hundred cases."""

MOST_MESSAGES = 3
"""Most input messages of a counterexample that counts as a kill."""

_PATIENCE = {"live": 3.0, "brokers": 10.0}
"""Seconds to wait for something that a mutant may never do, by what shows it."""


@dataclass(frozen=True)
class Mutant:
    """A broken engine.

    Args:
        name: what it does wrong, in a few words.
        rule: id of the rule it breaks; empty for an equivalent mutant, which breaks none.
        says: a mistake in real engines that has the same effect.
        make: makes the engine.
        home: the engine whose code has the fault.
        shown_by: how it is found: by cases, by a live server, by one that reads and writes Kafka,
            or by mistakes that the language must refuse.
        during: puts the fault in place for a while, where `make` returns an engine without it.
    """

    name: str
    rule: str
    says: str
    make: Callable[[], Engine]
    home: str = "reference"
    shown_by: Literal["cases", "live", "brokers", "language"] = "cases"
    during: Callable[[], AbstractContextManager[object]] = nullcontext

    def __post_init__(self) -> None:
        if self.rule:
            rule_id(self.rule)


@dataclass(frozen=True)
class Kill:
    """What a check of a mutant gave.

    Args:
        mutant: the mutant.
        rules: the rules that its failure names, the most particular first.
        failure: the last that names the rule which the mutant breaks, filed under it; else the
            first one.
        cases: cases run.
        seconds: from the first case to the minimal one.
        problem: what the harness said, if it failed.
    """

    mutant: Mutant
    rules: tuple[str, ...]
    failure: Failure | None
    cases: int
    seconds: float
    problem: str = ""

    @property
    def messages(self) -> int | None:
        """Input messages of the counterexample."""
        if self.failure is None or self.failure.case is None:
            return None
        return self.failure.case.messages

    @property
    def place(self) -> int | None:
        """The place of the rule it breaks among those named, from 1; `None`: it is not named."""
        named = self.mutant.rule in self.rules
        return self.rules.index(self.mutant.rule) + 1 if named else None

    @property
    def ok(self) -> bool:
        """Whether the result is the one the mutant must have."""
        if self.problem:
            return False
        if not self.mutant.rule:
            return not self.rules
        small = self.messages is None or self.messages <= MOST_MESSAGES
        return small and self.mutant.rule in self.rules


def kill(
    mutant: Mutant,
    *,
    seed: int = 0,
    budget: Budget = BUDGET,
    watcher: Watcher | None = None,
    brokers: str | None = None,
) -> Kill:
    """Check a mutant until a failure names the rule it breaks.

    A mutant may break other rules too, and these may be found first. Some need `brokers` of Kafka.
    """
    begun = time.monotonic()
    with mutant.during():
        if mutant.shown_by == "brokers" and brokers is None:
            return _kill(mutant, (), begun, problem="it is shown by brokers: --brokers")
        if mutant.shown_by in _PATIENCE:
            patience = _PATIENCE[mutant.shown_by] if mutant.rule else PATIENCE
            there = brokers if mutant.shown_by == "brokers" else None
            _, failures = check_live(
                mutant.make(), mutant.rule or "*", seed, patience=patience, brokers=there
            )
        elif mutant.shown_by == "language":
            _, failures = check_language("*")
        else:
            check = Check(budget, seed, mutant.rule or "*", fail_fast=True)
            search = Search(mutant.make(), check, watcher=watcher)
            try:
                search.find_failures()
                problem = ""
            except HarnessError as error:
                problem = str(error)
            return _kill(mutant, search.findings.failures, begun, search.runner.cases, problem)
    return _kill(mutant, failures, begun)


def _kill(
    mutant: Mutant, failures: Sequence[Failure], begun: float, cases: int = 1, problem: str = ""
) -> Kill:
    on_rule = [failure for failure in failures if mutant.rule in failure.rules]
    failure = next(iter([*reversed(on_rule), *failures]), None)  # the last one ended the search
    rules, filed = ((), None) if failure is None else (failure.rules, failure.filed(mutant.rule))
    return Kill(mutant, rules, filed, cases, time.monotonic() - begun, problem)


def installed_mutants() -> list[Mutant]:
    """Return the mutants of all engines that are installed."""
    mutants: list[Mutant] = []
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda point: point.name):
        try:
            offered = point.load()
        except ImportError:  # of an engine that is not installed
            continue
        mutants += offered()
    return mutants
