"""Every mutant is killed, on the rule it breaks, by three messages at most; none else is.

Those that cases show are told by stored cases, in milliseconds. That a search finds such cases is
seen on some of them each time, and on all under the profile *nightly*.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from killing_many import kills
from wallaroo_conformance.cases.counterexamples import Counterexample, stored
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.judge.results import INCOMPLETE
from wallaroo_conformance.killing import Kill, Mutant, kill, kill_by
from wallaroo_conformance.search.budget import Budget
from wallaroo_mutants.catalogue import BROKEN_HARNESS, EQUIVALENT, REFERENCE_MUTANTS
from wallaroo_mutants.compiling import COMPILED_MUTANTS
from wallaroo_mutants.compiling_windows import COMPILED_WINDOW_MUTANTS
from wallaroo_mutants.edges import EDGE_MUTANTS
from wallaroo_mutants.language import LANGUAGE_MUTANTS
from wallaroo_mutants.recovering import RECOVERY_EQUIVALENT, RECOVERY_MUTANTS
from wallaroo_mutants.second_part import SECOND_PART_MUTANTS
from wallaroo_mutants.spark import SPARK_EQUIVALENT, SPARK_MUTANTS

BUDGET = Budget(5_000)
MUTANTS = (
    *(*REFERENCE_MUTANTS, *COMPILED_MUTANTS, *SPARK_MUTANTS),
    *(*EDGE_MUTANTS, *RECOVERY_MUTANTS, *LANGUAGE_MUTANTS),
    *(*SECOND_PART_MUTANTS, *COMPILED_WINDOW_MUTANTS),
)
SHOWN_BY_CASES, SHOWN_LIVE, SHOWN_BY_MISTAKES = (
    [mutant for mutant in MUTANTS if mutant.shown_by == by] for by in ("cases", "live", "language")
)
SURVIVORS = (*EQUIVALENT, SPARK_EQUIVALENT, RECOVERY_EQUIVALENT)

SEARCHED = (
    "None passed on",  # in the tour of all operators
    "keys by their text",  # behind another rule that it breaks, too
    "lines counted without comments",  # on the compiled path
    "windows open when input stops",  # in the first few timed cases
    "segments not written back",  # in the Spark engine's own code
)


def _searched() -> list[Mutant]:
    if settings.get_current_profile_name() == "nightly":
        return SHOWN_BY_CASES
    return [mutant for mutant in SHOWN_BY_CASES if mutant.name in SEARCHED]


def _by_name(mutant: Mutant) -> str:
    return mutant.name


def _what(came: Kill) -> str:
    found = f"{came.mutant.name}: breaks {came.mutant.rule}, found {came.rules}, {came.messages}"
    return f"{found}\n{came.failure.text}" if came.failure else found


@pytest.fixture(scope="module")
def examples() -> list[Counterexample]:
    return list(stored())


@pytest.mark.parametrize("mutant", SHOWN_BY_CASES, ids=_by_name)
def test_a_mutant_is_killed_by_a_stored_case_of_the_rule_it_breaks(
    mutant: Mutant, examples: list[Counterexample]
) -> None:
    came = kill_by([one.case for one in examples if one.rule == mutant.rule], mutant)
    assert came.ok, (
        f"{_what(came)}: no case in conformance/counterexamples kills it on its rule any more. "
        "If the mutant and the rule are as they should be, let a search find one: wallaroo conform "
        f"--mutants '{mutant.name}' --store conformance/counterexamples"
    )


@pytest.mark.parametrize("mutant", _searched(), ids=_by_name)
def test_a_search_finds_what_kills_a_mutant(mutant: Mutant) -> None:
    came = kill(mutant, seed=1, budget=BUDGET)
    assert came.ok, _what(came)


@pytest.fixture(scope="module")
def live() -> dict[str, tuple[bool, str]]:
    return kills(SHOWN_LIVE)


@pytest.mark.xdist_group("live mutants")  # which are killed side by side
@pytest.mark.parametrize("mutant", SHOWN_LIVE, ids=_by_name)
def test_a_mutant_of_the_edges_is_killed_on_the_rule_it_breaks(
    mutant: Mutant, live: dict[str, tuple[bool, str]]
) -> None:
    killed, found = live[mutant.name]
    assert killed, found


@pytest.mark.parametrize("mutant", SHOWN_BY_MISTAKES, ids=_by_name)
def test_a_mutant_of_the_language_is_killed_on_the_rule_it_breaks(mutant: Mutant) -> None:
    came = kill(mutant)
    assert came.ok, _what(came)


@pytest.mark.parametrize("mutant", SURVIVORS, ids=_by_name)
def test_an_equivalent_mutant_survives(mutant: Mutant) -> None:
    nightly = settings.get_current_profile_name() == "nightly"
    came = kill(mutant, seed=1, budget=Budget(1_000 if nightly else 100))
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
    assert set(SEARCHED) <= {mutant.name for mutant in SHOWN_BY_CASES}
