"""The search and its parts: what is generated when, and what is not counted as a failure."""

from __future__ import annotations

from datetime import date

import pytest
from wallaroo_conformance.cases.operators import Tone
from wallaroo_conformance.cases.tour import pairs
from wallaroo_conformance.judge.claims import Divergence
from wallaroo_conformance.search.budget import PROFILES, Budget, chosen_budget
from wallaroo_conformance.search.generation import Generation
from wallaroo_conformance.search.running import MOST_CASES_A_JOB
from wallaroo_conformance.search.search import Search
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Isolation

BOTH: frozenset[Isolation] = frozenset({"isolated", "trusting"})


def test_a_budget_is_named_by_what_ends_it_and_must_end() -> None:
    assert [Budget(500).name, Budget(None, 2.5).name] == ["500 cases", "2.5 seconds"]
    assert chosen_budget("ci") is PROFILES["ci"]
    assert chosen_budget("ci", 7) == Budget(7)
    assert chosen_budget("ci", seconds=3.0) == Budget(None, 3.0)
    with pytest.raises(ValueError, match="never ends"):
        Budget(None)


def test_what_every_search_has_comes_between_chance_and_what_is_led() -> None:
    generation = Generation(0, BOTH, most=100)
    drawn, led, tours, again, third, later = (generation.next_chunk(None) for _ in range(6))
    assert [len(drawn), len(later)] == [100, 50]
    assert not led  # there is nothing to lead them
    assert not again
    assert sum(case.timed for case in drawn) == 33
    assert sum(case.timed for case in later) == 12
    assert {(case.timed, case.isolation) for case in tours} == {
        (timed, isolation) for timed in (False, True) for isolation in BOTH
    }
    assert set(third) == set(pairs("any"))
    assert set(third.values()) == {"fixed"}
    assert set(later.values()) == {"chance"}
    assert len(generation.next_chunk(6)) == 3


def test_a_search_for_the_first_failure_gets_the_tours_in_parts() -> None:
    few, whole = Generation(0, BOTH, most=100, few=True), Generation(0, BOTH, most=100)
    tours = [whole.next_chunk(None) for _ in range(3)][2]
    assert len(few.next_chunk(None)) == 32
    few.next_chunk(None)
    found = few.next_chunk(None)
    assert len(found) == 128
    while len(found) < len(tours):
        found |= few.next_chunk(None)
    assert list(found) == list(tours)
    assert not few.next_chunk(None)  # led


def test_half_of_the_later_cases_are_led() -> None:
    search = Search(ReferenceEngine(), give_up_early=True)
    search.search(Budget(32, variant_every=0))
    generation = Generation(1, BOTH, 100, search.findings.coverage)
    origins = [set(generation.next_chunk(100).values()) for _ in range(6)]
    assert origins == [{"chance"}, {"led"}, {"fixed"}, {"led"}, {"fixed"}, {"chance", "led"}]


@pytest.mark.parametrize(
    ("modes", "tone"),
    [(BOTH, "any"), (frozenset({"isolated"}), "any"), (frozenset({"trusting"}), "tame")],
    ids=["both", "isolated", "trusting"],
)
def test_a_check_tries_every_pair_of_operators(modes: frozenset[Isolation], tone: Tone) -> None:
    generation = Generation(0, modes, MOST_CASES_A_JOB)
    begun = [case for _ in range(5) for case in generation.next_chunk(None)]
    assert set(pairs(tone)) <= set(begun)
    led = 2 * 256  # there are none here, as nothing has been met
    assert all(len(begun) + led <= (budget.cases or 10**9) for budget in PROFILES.values())


def test_equal_seeds_give_equal_chunks() -> None:
    def chunks(seed: int) -> list[object]:
        generation = Generation(seed, BOTH, most=50)
        return [generation.next_chunk(50), generation.next_chunk(20), generation.more()]

    assert chunks(3) == chunks(3)
    assert chunks(3)[0] != chunks(4)[0]


def test_a_known_divergence_counts_as_unsupported_until_it_expires(
    no_state: ReferenceEngine,
) -> None:
    divergence = Divergence(
        "no state", "it will have them one day", date(2027, 1, 1), lambda case, facts: True
    )

    def failing(today: date) -> int:
        search = Search(no_state, divergences=(divergence,), today=today)
        search.search(Budget(50))
        return len(search.findings.failing)

    assert failing(date(2026, 12, 31)) == 0
    assert failing(date(2027, 1, 1)) > 0
