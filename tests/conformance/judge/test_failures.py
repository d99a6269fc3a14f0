"""Which rules a failure names, in which order; a crash is told as a crash, two faults as two."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.judge.laws import LAWS, laws_of
from wallaroo_conformance.judge.results import BROKEN, Failure
from wallaroo_conformance.report.pages import html
from wallaroo_conformance.report.showing import failure_text
from wallaroo_conformance.search.budget import Budget
from wallaroo_mutants.catalogue import broken
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Case
from wallaroo.trace import Trace

CHECK = Check(Budget(200), counterexamples=None)
EXERCISED = frozenset(
    {
        *("decode-1/payload", "state-1/built", "state-2/refused", "state-3/changed"),
        *("route-4/number", "state-1/waits", "order-2/exact"),
    }
)


def ids(met: dict[str, int], *kinds: Any) -> list[str]:
    return [law.id for law in laws_of(EXERCISED, frozenset(kinds), met)]


def test_the_law_that_the_fewest_cases_have_met_comes_first_and_the_register_decides_ties() -> None:
    in_order = ["decode-1/payload", "state-1/built", "state-2/refused", "state-3/changed"]
    assert ids({}, "changed") == [*in_order, "order-2/exact"]
    often = {"decode-1/payload": 9, "order-2/exact": 9, "state-1/built": 5, "state-2/refused": 5}
    moved = [*in_order[3:], *in_order[1:3], in_order[0], "order-2/exact"]
    assert ids(often, "changed") == moved


def test_a_law_that_speaks_of_nothing_that_differs_is_not_named() -> None:
    assert ids({}, "numbers") == ["route-4/number", "order-2/exact"]


def test_a_rule_is_named_once_by_its_most_particular_law() -> None:
    exercised = EXERCISED | {"state-1/falsy"}
    named = laws_of(exercised, frozenset({"changed"}), {"state-1/falsy": 1, "state-1/built": 2})
    assert [law.id for law in named].count("state-1/falsy") == 1
    assert [law.rule for law in named].count("state-1") == 1


def test_a_failure_is_filed_under_the_first_of_its_rules_that_is_asked_for() -> None:
    window = next(law for law in LAWS if law.rule == "window-11")
    failure = Failure((LAWS[0], window), None)
    asked = failure.filed("window-*")
    assert (failure.rule, failure.rules) == ("frame-2", ("frame-2", "window-11"))
    assert (asked.rule, asked.rules) == ("window-11", ("window-11", "frame-2"))
    assert failure.filed("state-*") == failure


class Hurried(ReferenceEngine):
    """Loses an output beside a dead letter, and names errors by another type where it has none."""

    name = "hurried"

    def run(self, case: Case) -> Trace:
        trace = super().run(case)
        if trace.dead_letters and any(trace.outputs.values()):
            outputs = {sink: lines[:-1] for sink, lines in trace.outputs.items()}
            return replace(trace, outputs=outputs)
        renamed = [replace(letter, error_type="Error") for letter in trace.dead_letters]
        return replace(trace, dead_letters=tuple(renamed))


def test_a_case_is_not_reduced_to_one_that_differs_in_another_way() -> None:
    failures = check_engine(Hurried(), replace(CHECK, budget=Budget(20))).failures
    told = {
        failure.rule
        for failure in failures
        if isinstance(failure.actual, Trace)
        and failure.expected is not None
        and failure.actual.outputs == failure.expected.outputs
    }
    assert told == {"dead-1"}
    assert len(failures) > len(told)


def test_two_faults_of_one_engine_are_two_failures() -> None:
    report = check_engine(broken("stop told elsewhere", "flag ignored"), CHECK)
    named = [failure.rules for failure in report.failures]
    assert any("dead-4" in rules and "state-4" not in rules for rules in named)
    assert any("state-4" in rules and "dead-4" not in rules for rules in named)
    assert not report.failures[0].may_be_same


class Falling(ReferenceEngine):
    """Brings the whole job down on one kind of case."""

    name = "falling"

    def run(self, case: Case) -> Trace:
        if any(not getattr(record, "payload", b"a") for record in case.records):
            raise ConnectionError("the worker is gone")
        return super().run(case)


def test_a_crash_is_told_as_a_crash_with_its_traceback() -> None:
    report = check_engine(Falling(), Check(Budget(300), counterexamples=None))
    text = failure_text(report.failures[0], "falling")
    assert text.startswith("CRASHED  frame-2")
    assert "or another rule that this case exercises: " in text
    assert "the engine raised ConnectionError: the worker is gone" in text
    assert "in run\n" in text
    assert __file__ in text
    assert __file__ in html([report])
    form: Any = report.to_json()["failures"][0]
    assert __file__ in form["traceback"]
    assert form["rules"][0] == "frame-2"
    assert "the worker is gone" in str(form["crash"])
    assert [failure.rule for failure in report.failures] == ["frame-2"]


def test_fail_fast_reports_one_failure_and_when_it_was_met() -> None:
    live: list[str] = []

    def check_live(engine: Any, rules: str, seed: int) -> Any:
        live.append(engine.name)
        return [], []

    report = check_engine(
        broken("stop told elsewhere"),  # which is met soon
        Check(counterexamples=None, live=check_live, fail_fast=True),
    )
    assert len(report.failures) == 1
    assert report.exit_code == BROKEN
    assert report.cases < 1_000  # of the profile's, reductions included
    assert live == []
    assert report.first_failure is not None
    assert report.first_failure < report.seconds


@pytest.mark.parametrize(
    ("rule", "name"),
    [("dead-4", "stop missed at an encoder"), ("compute-2", "items sent while consuming")],
)
def test_the_rule_that_a_fault_breaks_is_among_those_named_first(rule: str, name: str) -> None:
    check = replace(CHECK, budget=Budget(600), fail_fast=True)
    report = check_engine(broken(name), check)
    assert rule in report.failures[0].rules[:3]
