"""Every mutant is killed, on the rule it breaks, by three messages at most; none else is.

Those that cases show are told by stored cases, in milliseconds. That a search finds such cases is
seen on some of them each time, and on all under the profile *nightly*.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import settings
from killing_many import kills
from wallaroo_conformance.cases.counterexamples import Counterexample, stored
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.judge.results import INCOMPLETE
from wallaroo_conformance.killing import MOST_MESSAGES, Kill, Mutant, installed_mutants, kill
from wallaroo_conformance.search.budget import Budget
from wallaroo_conformance.search.judging import replayed
from wallaroo_mutants.__main__ import main
from wallaroo_mutants.patching import Change, Patch, PatchError
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Case
from wallaroo.keys import is_u64
from wallaroo.trace import Trace

NIGHTLY = settings.get_current_profile_name() == "nightly"
BUDGET = Budget(5_000 if NIGHTLY else 600)
ALL = installed_mutants()
MUTANTS = [mutant for mutant in ALL if mutant.rule]
SURVIVORS = [mutant for mutant in ALL if not mutant.rule]
SHOWN_BY_CASES, SHOWN_LIVE, SHOWN_BY_BROKERS, SHOWN_BY_MISTAKES = (
    [mutant for mutant in MUTANTS if mutant.shown_by == by]
    for by in ("cases", "live", "brokers", "language")
)

SEARCHED = (
    "lines counted without comments",  # on the compiled path
    "keys by their text",  # behind another rule that it breaks, too
    "windows open when input stops",  # in the first few timed cases
    "last frame of a run lost",  # in the Spark engine's own code
)


def _searched() -> list[Mutant]:
    if NIGHTLY:
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
    own = [one for one in examples if one.rule == mutant.rule]
    small = [one for one in own if one.case.messages <= MOST_MESSAGES]
    failures = (replayed(one, mutant.make()).failure for one in small)
    assert any(failure is not None and mutant.rule in failure.rules for failure in failures), (
        f"{mutant.name}: no case in conformance/counterexamples kills it on its rule any more. "
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


@pytest.mark.xdist_group("Kafka")  # one broker for all of them
@pytest.mark.parametrize("mutant", SHOWN_BY_BROKERS, ids=_by_name)
def test_a_mutant_that_brokers_show_is_killed_on_the_rule_it_breaks(
    mutant: Mutant, kafka: Any
) -> None:
    came = kill(mutant, brokers=kafka.address)
    assert came.ok, _what(came)


@pytest.mark.parametrize("mutant", SHOWN_BY_MISTAKES, ids=_by_name)
def test_a_mutant_of_the_language_is_killed_on_the_rule_it_breaks(mutant: Mutant) -> None:
    came = kill(mutant)
    assert came.ok, _what(came)


@pytest.mark.parametrize("mutant", SURVIVORS, ids=_by_name)
def test_an_equivalent_mutant_survives(mutant: Mutant) -> None:
    came = kill(mutant, seed=1, budget=Budget(1_000 if NIGHTLY else 100))
    assert came.ok, _what(came)


class TracesLost(ReferenceEngine):
    """Answers with a trace less than it was given cases."""

    def run_many(self, cases: Sequence[Case]) -> list[Trace]:
        return super().run_many(cases)[:-1]


def test_a_broken_harness_is_no_verdict() -> None:
    report = check_engine(TracesLost(), Check(Budget(100), counterexamples=None))
    assert report.exit_code == INCOMPLETE
    assert "was given" in report.problems[0]
    assert not kill(Mutant("traces lost", "order-2", "answers mixed up", TracesLost)).ok


def test_every_patch_applies(capsys: pytest.CaptureFixture[str]) -> None:
    assert main() == 0, capsys.readouterr().out


def test_there_are_enough_mutants() -> None:
    assert len(MUTANTS) >= 270
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)
    assert set(SEARCHED) <= {mutant.name for mutant in SHOWN_BY_CASES}


@pytest.mark.parametrize(
    ("function", "before", "after", "problem"),
    [
        ("wallaroo.keys:is_u64", "is_not_there", "", "is gone"),
        ("wallaroo.keys:identity", "return", "", "occurs"),
        ("wallaroo.keys:is_u65", "key", "", "no such function"),
        ("wallaroo.locks:is_u64", "key", "", "no such module"),
        ("wallaroo.keys:is_u64", "return type(key)", "return )", "no Python"),
    ],
)
def test_a_patch_that_does_not_fit_says_why(
    function: str, before: str, after: str, problem: str
) -> None:
    patch = Patch("a mutant", (Change(function, before, after),))
    with (
        pytest.raises(PatchError, match=f"mutant 'a mutant', {function}: .*{problem}"),
        patch.in_place(),
    ):
        pass


def test_a_patch_is_in_place_only_inside_its_block() -> None:
    patch = Patch("a mutant", (Change("wallaroo.keys:is_u64", "", "return 'patched'"),))
    with patch.in_place():
        assert is_u64(0) == "patched"
    assert is_u64(0) is True
