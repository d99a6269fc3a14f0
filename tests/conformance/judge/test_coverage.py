"""Coverage: which pairs of facts were met, and what that says of those that were not."""

from __future__ import annotations

from wallaroo_conformance.cases.case import ConformanceCase, Input
from wallaroo_conformance.judge.coverage import Coverage
from wallaroo_conformance.report.showing import coverage_text

A, B, C, D = "dead letter", "ended by exit", "parallel", "several keys"


def case(number: int) -> ConformanceCase:
    return ConformanceCase(inputs=(Input(0, b"a"),) * number)


def test_a_pair_is_never_met_where_each_of_its_facts_was() -> None:
    coverage = Coverage()
    coverage.add(case(1), frozenset({A, B}), drawn=True)
    coverage.add(case(2), frozenset({B, C}), drawn=True)
    result = coverage.result()
    assert (result.pairs, result.pairs_never, result.facts) == (2, 1, 3)
    assert result.never == {A: (C,)}
    assert D in result.facts_never
    assert A not in result.facts_never


def test_facts_of_both_modes_are_not_missed_together() -> None:
    coverage = Coverage()
    coverage.add(case(1), frozenset({A, B}), drawn=True)
    coverage.add(ConformanceCase(isolation="trusting"), frozenset({C, D}), drawn=True)
    assert coverage.result().pairs_never == 0


def test_good_turing_counts_the_cases_of_the_second_half_with_a_pair_of_their_own() -> None:
    coverage = Coverage()
    for number in range(4):
        coverage.add(case(number), frozenset({A, B}), drawn=False)
    coverage.add(case(4), frozenset({A, B}), drawn=True)  # known
    coverage.add(case(5), frozenset({A, C}), drawn=True)  # new, and soon another has it
    coverage.add(case(6), frozenset({A, D}), drawn=True)  # new
    coverage.add(case(7), frozenset({A, C}), drawn=True)
    result = coverage.result()
    assert (result.alone, result.drawn, result.unseen) == (1, 4, 0.25)


def test_a_pair_that_a_case_of_every_search_met_before_is_not_new() -> None:
    coverage = Coverage()
    coverage.add(case(0), frozenset({A, B}), drawn=False)
    coverage.add(case(1), frozenset({A, B}), drawn=True)
    result = coverage.result()
    assert (result.alone, result.drawn) == (0, 1)
    assert "chance of below 1 in 1 " in coverage_text(result)


def test_without_chance_there_is_no_estimate() -> None:
    coverage = Coverage()
    coverage.add(case(0), frozenset({A, B}), drawn=False)
    result = coverage.result()
    assert result.unseen is None
    assert "Good-Turing" not in coverage_text(result)


def test_the_text_says_how_fast_new_pairs_still_came() -> None:
    coverage = Coverage()
    for number in range(3):
        coverage.add(case(number), frozenset({A, B}), drawn=True)
    coverage.add(case(3), frozenset({A, B, C}), drawn=True)
    text = coverage_text(coverage.result())
    begins = "3 pairs of 3 facts met in one case, 0 never; 2 were new in their mode in the last"
    assert text.startswith(begins)
    assert "about 50.00%" in text
