"""Steering: cases that are led to rare pairs of facts are cases, and meet what chance does not."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from wallaroo_conformance.cases.building import assemble
from wallaroo_conformance.cases.case import ConformanceCase, Input
from wallaroo_conformance.cases.composing import row, step
from wallaroo_conformance.cases.crossing import MOST_INPUTS, crossed
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.operators import MULTI_COMPUTATIONS, STATE_MULTI_COMPUTATIONS
from wallaroo_conformance.cases.reading import case_from_json
from wallaroo_conformance.judge.coverage import Coverage
from wallaroo_conformance.judge.oracle import reference_oracle
from wallaroo_conformance.search.generation import Generation

from wallaroo.engine import Isolation

CHANCE, LED = 64, 48
MODES: frozenset[Isolation] = frozenset({"isolated"})
MULTIPLYING = {*MULTI_COMPUTATIONS, *STATE_MULTI_COMPUTATIONS}


def leading(coverage: Coverage) -> Generation:
    return Generation(0, MODES, CHANCE, coverage)


def drawn(*, timed: bool, seed: int = 5, count: int = CHANCE) -> list[ConformanceCase]:
    return [*generate(count, seed, timed=timed)]


def covered(cases: list[ConformanceCase]) -> Coverage:
    coverage = Coverage()
    for meaning in reference_oracle().ask(cases):
        coverage.add(meaning.case, meaning.facts, "chance")
    return coverage


@pytest.mark.parametrize("timed", [False, True], ids=["plain", "timed"])
def test_crossed_cases_are_cases(timed: bool) -> None:
    parents, rng = drawn(timed=timed), Random(1)
    for _ in range(300):
        one, other = rng.sample(parents, 2)
        child = crossed(one, other, rng)
        assert case_from_json(child.to_json()) == child
        assemble(child)
        child.input_log  # noqa: B018 - a generator's values are decoded here


def test_children_of_children_multiply_messages_no_further() -> None:
    wide = row(step(next(iter(STATE_MULTI_COMPUTATIONS))), step("fork"))
    case, rng = replace(wide, inputs=(Input(0, b"a"),)), Random(2)
    for _ in range(20):
        case = crossed(case, replace(wide, inputs=(Input(0, b"a"),) * 3), rng)
        for source in case.sources:
            operators = [one.operator for one in case.row(source.id)]
            assert sum(operator in MULTIPLYING for operator in operators) <= 5
    assert len(case.inputs) == MOST_INPUTS


def test_a_long_payload_does_not_meet_steps_that_make_an_item_of_each_byte() -> None:
    plain = ConformanceCase(inputs=(Input(0, b"a"), Input(0, b"a" * 70_000)))
    wide = row(step("thousands"), inputs=(Input(0, b"b"),))
    for one, other in ((plain, wide), (wide, plain)):
        assert {entry.payload for entry in crossed(one, other, Random(3)).inputs} == {b"a", b"b"}


@pytest.mark.parametrize("timed", [False, True], ids=["plain", "timed"])
def test_led_cases_bring_facts_together_that_chance_does_not(timed: bool) -> None:
    begun = drawn(timed=timed)
    coverage = covered(begun)
    [met] = coverage.kinds.values()
    known, apart = set(met.count), set(met.of)
    led = leading(coverage).led(LED, 0, (timed, "isolated"))
    assert len(led) > LED // 2

    def brought_together(cases: list[ConformanceCase]) -> int:
        [met] = covered(cases).kinds.values()
        return sum(apart >= set(pair) for pair in met.count.keys() - known)

    assert brought_together(led) > 1.5 * brought_together(drawn(timed=timed, seed=6, count=LED))


def test_equal_seeds_lead_to_equal_cases() -> None:
    begun = drawn(timed=False)
    one, other = (leading(covered(begun)).led(20, 3, (False, "isolated")) for _ in range(2))
    assert one == other


def test_nothing_is_led_before_anything_is_met() -> None:
    assert leading(Coverage()).led(20, 0, (False, "isolated")) == []
