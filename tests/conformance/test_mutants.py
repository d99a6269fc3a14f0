"""Every mutant is killed, on the rule it breaks, by three messages at most; none else is."""

from __future__ import annotations

import pytest
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.judge.results import INCOMPLETE
from wallaroo_conformance.killing import Kill, Mutant, kill
from wallaroo_conformance.search.budget import Budget
from wallaroo_mutants.catalogue import BROKEN_HARNESS, EQUIVALENT, REFERENCE_MUTANTS
from wallaroo_mutants.compiling import COMPILED_MUTANTS
from wallaroo_mutants.edges import EDGE_MUTANTS
from wallaroo_mutants.language import LANGUAGE_MUTANTS
from wallaroo_mutants.recovering import RECOVERY_EQUIVALENT, RECOVERY_MUTANTS
from wallaroo_mutants.spark import SPARK_EQUIVALENT, SPARK_MUTANTS

BUDGET = Budget(3_000)
MUTANTS = (
    *(*REFERENCE_MUTANTS, *COMPILED_MUTANTS, *SPARK_MUTANTS),
    *(*EDGE_MUTANTS, *RECOVERY_MUTANTS, *LANGUAGE_MUTANTS),
)
SURVIVORS = (*EQUIVALENT, SPARK_EQUIVALENT, RECOVERY_EQUIVALENT)


def _what(came: Kill) -> str:
    return f"{came.mutant.name}: breaks {came.mutant.rule}, found {came.rules}, {came.messages}"


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_is_killed_on_the_rule_it_breaks(mutant: Mutant) -> None:
    came = kill(mutant, seed=1, budget=BUDGET)
    assert came.ok, _what(came)


@pytest.mark.parametrize("mutant", SURVIVORS, ids=lambda mutant: mutant.name)
def test_an_equivalent_mutant_survives(mutant: Mutant) -> None:
    came = kill(mutant, seed=1, budget=Budget(1_000))
    assert came.ok, _what(came)


def test_a_broken_harness_is_no_verdict() -> None:
    report = check_engine(BROKEN_HARNESS.make(), Check(Budget(100), counterexamples=None))
    assert report.exit_code == INCOMPLETE
    assert "was given" in report.problems[0]
    assert kill(BROKEN_HARNESS).ok


def test_there_are_enough_mutants() -> None:
    assert len(MUTANTS) >= 30
    assert len(SPARK_MUTANTS) >= 10
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
