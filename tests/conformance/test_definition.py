"""The definition judges the interpreter: it finds what mutants plant there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from wallaroo_conformance.cases.counterexamples import stored
from wallaroo_conformance.checking import check_engine
from wallaroo_conformance.judge.oracle import REFERENCE, definition_oracle, reference_oracle
from wallaroo_conformance.report.showing import failure_text
from wallaroo_conformance.search.budget import Budget, Check
from wallaroo_conformance.search.judging import replayed
from wallaroo_mutants.catalogue import broken, read

from wallaroo.engine import load_engine

INSIDE = Path(__file__).parents[2] / "conformance/wallaroo_conformance/definition"
MOST_LINES = 1_000


def test_it_is_small():
    lines = [line for path in INSIDE.glob("*.py") for line in path.read_text("utf-8").splitlines()]
    assert len(lines) <= MOST_LINES


def test_it_finds_each_fault_that_a_mutant_plants_in_the_interpreter():
    reference = load_engine(REFERENCE)
    examples = [replace(one, case=replace(one.case, isolation="isolated")) for one in stored()]
    missed = []
    for mutant in read("reference"):
        own = [one for one in examples if one.rule == mutant.rule]
        with mutant.patch.in_place():
            if mutant.rule and not any(replayed(one, reference).failure for one in own):
                missed.append(mutant.name)
    assert missed == []


@pytest.fixture
def forgotten():
    """What cases mean is found out anew: a broken reference says so otherwise."""
    yield
    reference_oracle.cache_clear()
    definition_oracle.cache_clear()


@pytest.mark.usefixtures("forgotten")
def test_a_failure_of_the_reference_says_who_judged_it():
    with broken("None passed on").patch.in_place():
        report = check_engine(REFERENCE, Check(Budget(200), rules="compute-1", fail_fast=True))
    text = failure_text(report.failures[0], REFERENCE)
    assert "the definition" in text
    assert "the reference may be" not in text


@pytest.mark.usefixtures("forgotten")
def test_a_reference_that_raises_is_broken_not_the_check():
    with broken("falsy filtered").patch.in_place():  # it asks for the truth of what refuses
        report = check_engine(REFERENCE, Check(Budget(500), counterexamples=None, fail_fast=True))
    assert report.problems == ()
    assert ["compute-1" in failure.rules for failure in report.failures] == [True]


@pytest.mark.usefixtures("forgotten")
def test_a_failure_of_another_engine_says_if_the_reference_is_the_broken_side():
    with broken("None passed on").patch.in_place():
        report = check_engine("compiled", Check(Budget(200), rules="compute-1", fail_fast=True))
    assert "the reference may be the broken side" in failure_text(report.failures[0], "compiled")
