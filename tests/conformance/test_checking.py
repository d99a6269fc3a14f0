"""`check_engine`, from generation to report; and what the harness must notice about itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from wallaroo_conformance.cases.counterexamples import read_counterexample
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.judge.differences import Crash
from wallaroo_conformance.judge.laws import DUE
from wallaroo_conformance.judge.oracle import Oracle
from wallaroo_conformance.judge.results import (
    BROKEN,
    INCOMPLETE,
    KEPT,
    Report,
)
from wallaroo_conformance.language import check_language
from wallaroo_conformance.search.budget import Budget
from wallaroo_mutants.catalogue import broken
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Case
from wallaroo.errors import UnsupportedTopology
from wallaroo.operations import Stateful
from wallaroo.topology import Application
from wallaroo.trace import Trace

pytestmark = pytest.mark.xdist_group("checks")  # they share reports, and what cases mean

FEW = Budget(200)


def engine(name: str, **methods: Any) -> Any:
    """Return the reference under another name, with other methods."""
    return type(name, (ReferenceEngine,), {"name": name, **methods})()


def gives(given: Callable[[Trace], Any]) -> Any:
    """Return an engine that gives of every case what `given` makes of the reference's trace."""
    return engine("odd", run=lambda self, case: given(ReferenceEngine.run(self, case)))


def refuse_state(_self: object, application: Application) -> None:
    for step in application.steps:
        if isinstance(step.operation, Stateful):
            raise UnsupportedTopology("state-3", step.name, "there is no state here")


def refuse_all(_self: object, application: Application) -> None:
    raise UnsupportedTopology("decode-1", application.name, "there is nothing here")


def run_if_not_refused(self: Any, case: Case) -> Trace:
    self.check(case.application)
    return ReferenceEngine.run(self, case)


def entities_of_the_first(self: Any, cases: Any) -> list[Trace]:
    traces = [self.run(case) for case in cases]
    return [traces[0], *[replace(trace, entities=traces[0].entities) for trace in traces[1:]]]


def test_the_reference_keeps_every_rule(kept: Report) -> None:
    assert kept.problems == ()
    assert [law for law in kept.laws if law.status != "kept"] == []
    assert kept.exit_code == KEPT


def test_the_compiled_path_keeps_every_rule_it_is_promised_for() -> None:
    report = check_engine("compiled", Check(Budget(300)))
    assert report.failures == ()
    assert report.exit_code == KEPT
    assert set(report.rules.values()) <= {"kept", "unsupported"}


def test_a_broken_engine_is_told_with_a_case_that_can_be_replayed(broken: Report) -> None:
    assert broken.exit_code == BROKEN
    failure = broken.failures[0]
    assert failure.case is not None
    assert failure.stored is not None
    assert len(failure.case.inputs) == 1
    assert read_counterexample(Path(failure.stored)).case == failure.case


def test_rules_that_are_not_asked_for_are_not_reported() -> None:
    report = check_engine("reference", Check(Budget(50), rules="state-*,order-2"))
    assert set(report.rules) == {*[f"state-{number}" for number in range(1, 10)], "order-2"}


@pytest.mark.parametrize(
    ("rules", "found"), [("dead-4", ["dead-4"]), ("state-4", ["state-4"]), ("frame-2", [])]
)
def test_fail_fast_looks_for_the_rules_that_are_asked_for(rules: str, found: list[str]) -> None:
    check = Check(Budget(100), counterexamples=None, fail_fast=True, rules=rules)
    # dead-4 is met soon
    report = check_engine(broken("stop told elsewhere", "flag ignored"), check)
    assert [failure.rule for failure in report.failures] == found
    assert report.exit_code == (BROKEN if found else KEPT)
    assert (report.first_failure is None) == (not found)


def test_build_2_an_engine_may_refuse_if_it_says_so() -> None:
    report = check_engine(
        engine("refusing", check=refuse_state, run=run_if_not_refused),
        Check(FEW, counterexamples=None),
    )
    assert report.failures == ()
    assert report.rules["state-3"] == "unsupported"
    assert report.rules["build-2"] == "kept"


def test_an_engine_that_has_run_no_case_is_not_checked() -> None:
    report = check_engine(
        engine("refusing all", check=refuse_all, run=run_if_not_refused),
        Check(Budget(20), counterexamples=None),
    )
    assert report.exit_code == INCOMPLETE
    assert "no case" in report.problems[0]


@pytest.mark.parametrize(
    "nothing",
    [lambda _: Trace({}), lambda trace: Trace(dict.fromkeys(trace.outputs, ()))],
    ids=["no sinks", "sinks without outputs"],
)
def test_an_engine_that_answers_nothing_keeps_no_rule(nothing: Callable[[Trace], Trace]) -> None:
    report = check_engine(gives(nothing), Check(FEW, counterexamples=None))
    kept = {law.rule for law in report.laws if law.status == "kept"}
    # Of the language no engine is asked; and it still steps as the reference does.
    assert kept == {law.rule for law in check_language("*")[0]} | {DUE.rule}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (lambda _: None, "it answered with a NoneType, not a Trace"),
        (
            lambda trace: replace(
                trace,
                dead_letters=tuple(
                    [replace(one, lineage=(b"x",)) for one in trace.dead_letters],
                ),
            ),
            "not a trace: a lineage is a list of whole numbers, not [b'x']",
        ),
        (
            lambda trace: replace(
                trace, entities=tuple([replace(one, state=b"x") for one in trace.entities])
            ),
            "TypeError: Object of type bytes is not JSON serializable",
        ),
    ],
    ids=["no trace", "lineage", "state"],
)
def test_a_trace_that_is_none_is_the_engine_s_failure(
    given: Callable[[Trace], Any], said: str
) -> None:
    report = check_engine(gives(given), Check(Budget(60), counterexamples=None, fail_fast=True))
    assert report.problems == ()
    actual = report.failures[0].actual
    assert isinstance(actual, Crash)
    assert said in actual.error


def test_build_2_an_engine_that_answers_what_it_refuses_is_broken() -> None:
    report = check_engine(engine("answering", check=refuse_state), Check(FEW, counterexamples=None))
    assert report.rules["build-2"] == "broken"


def test_cases_that_are_not_isolated_in_a_job_are_told_from_wrong_ones() -> None:
    report = check_engine(
        engine("crowded", run_many=entities_of_the_first), Check(Budget(40), counterexamples=None)
    )
    assert report.exit_code == BROKEN
    assert not report.failures[0].alone


def leave_at_an_exit(trace: Trace) -> Trace:
    if trace.ended is not None and trace.ended.kind == "exit":
        raise SystemExit(3)
    return trace


def test_dead_3_user_code_that_ends_the_engine_does_not_end_the_check() -> None:
    report = check_engine(gives(leave_at_an_exit), Check(Budget(150), counterexamples=None))
    assert report.failures
    for failure in report.failures:  # one of them of a builder that exits
        assert "dead-3" in [law.rule for law in failure.laws]
    assert report.problems == ()


def interrupted(interrupt: KeyboardInterrupt) -> Any:
    def run(_self: object, _case: Case) -> Trace:
        raise interrupt

    return engine("interrupted", run=run)


def test_a_check_that_exits_itself_is_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    def exits(*_: object) -> None:
        raise SystemExit("out of the oracle")

    monkeypatch.setattr(Oracle, "ask", exits)
    report = check_engine("compiled", Check(Budget(20), counterexamples=None))
    assert report.exit_code == INCOMPLETE
    assert "the check itself failed: SystemExit: out of the oracle" in report.problems


def test_an_interrupt_of_user_code_is_the_engine_s_answer_and_ctrl_c_is_not() -> None:
    check = Check(Budget(20), counterexamples=None)
    report = check_engine(interrupted(KeyboardInterrupt("halt")), check)
    assert report.exit_code == BROKEN
    with pytest.raises(KeyboardInterrupt):
        check_engine(interrupted(KeyboardInterrupt()), check)
