"""Who is blamed: the rule that a fault breaks; a crash is told as a crash, one fault once."""

from __future__ import annotations

from typing import Any

import pytest
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.judge.fact import Fact
from wallaroo_conformance.judge.laws import blame
from wallaroo_conformance.judge.results import BROKEN
from wallaroo_conformance.killing import kill
from wallaroo_conformance.report.html import html
from wallaroo_conformance.report.showing import failure_text
from wallaroo_conformance.search.budget import Budget
from wallaroo_mutants.catalogue import REFERENCE_MUTANTS
from wallaroo_mutants.edges import EDGE_MUTANTS
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Case
from wallaroo.trace import Trace

BUDGET = Budget(1_500, top_up=0)
MUTANTS = {mutant.name: mutant for mutant in (*REFERENCE_MUTANTS, *EDGE_MUTANTS)}


@pytest.mark.parametrize(
    "name",
    [
        "stop missed at an encoder",
        "stop told elsewhere",
        "exit taken for a stop",
        "items sent while consuming",
    ],
)
def test_the_rule_that_a_fault_breaks_is_blamed_first(name: str) -> None:
    mutant = MUTANTS[name]
    report = check_engine(mutant.make(), Check(BUDGET, counterexamples=None, fail_fast=True))
    assert [failure.rule for failure in report.failures] == [mutant.rule]


def test_a_law_that_other_failing_cases_do_not_exercise_is_not_to_blame() -> None:
    """A merge holds sessions open in the reduced case; the other cases fail without one."""
    facts = frozenset({Fact.TIMED, Fact.FIRED, Fact.FIRED_SESSION, Fact.SESSIONS_COMBINED})
    merged = facts | {Fact.SEVERAL_WAYS}
    assert blame(merged, ["changed"]).id == "time-3/least"
    assert blame(merged, ["changed"], others=[facts, facts, merged]).id == "window-7/merged"
    assert blame(merged, ["changed"], others=[merged, merged, merged]).id == "time-3/least"


def test_frame_1_a_parsers_fault_is_not_one_of_several_connections() -> None:
    assert kill(MUTANTS["one frame a read"]).rules == ("frame-1",)


class Falling(ReferenceEngine):
    """Brings the whole job down on one kind of case."""

    name = "falling"

    def run(self, case: Case) -> Trace:
        if any(not payload for _, payload in case.input_log):
            raise ConnectionError("the worker is gone")
        return super().run(case)


def test_a_crash_is_told_as_a_crash_with_its_traceback() -> None:
    report = check_engine(Falling(), Check(Budget(100), counterexamples=None))
    text = failure_text(report.failures[0], "falling")
    assert text.startswith("CRASHED  frame-2")
    assert "the engine raised ConnectionError: the worker is gone" in text
    assert "in run\n" in text
    assert __file__ in text
    assert __file__ in html([report])
    form: Any = report.to_json()["failures"][0]
    assert __file__ in form["traceback"]


def test_fail_fast_reports_one_failure_and_when_it_was_met() -> None:
    live: list[str] = []

    def check_live(engine: Any, rules: str, seed: int) -> Any:
        live.append(engine.name)
        return [], []

    report = check_engine(
        MUTANTS["flag ignored"].make(),
        Check(counterexamples=None, live=check_live, fail_fast=True),
    )
    assert len(report.failures) == 1
    assert report.exit_code == BROKEN
    assert report.cases < 1_000  # of the profile's, reductions included
    assert live == []
    assert report.first_failure is not None
    assert report.first_failure < report.seconds
