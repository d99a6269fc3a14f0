"""`check_engine`, from generation to report; and what the harness must notice about itself."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from wallaroo_conformance.cases.counterexamples import STORED, read_counterexample, stored
from wallaroo_conformance.checking import check_engine
from wallaroo_conformance.judge.divergences import Divergence
from wallaroo_conformance.judge.results import (
    BROKEN,
    INCOMPLETE,
    KEPT,
    Report,
    TruncatedReportError,
    read_reports,
    reports_to_json,
    worst,
)
from wallaroo_conformance.report.html import html
from wallaroo_conformance.report.junit import junit
from wallaroo_conformance.search.search import Profile, Search
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Case
from wallaroo.errors import UnsupportedTopology
from wallaroo.topology import Application, Stateful
from wallaroo.trace import Trace

pytestmark = pytest.mark.xdist_group("checks")  # they share reports, and what cases mean

FEW = Profile("few", 200, top_up=0)  # what is refused is never exercised: nothing to look for


@pytest.fixture(scope="module")
def kept() -> Report:
    return check_engine("reference", cases=600)


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return check_engine(NoState(), cases=300, store=tmp_path_factory.mktemp("found"))


class NoState(ReferenceEngine):
    """Tells no final entities."""

    name = "no state"

    def run(self, case: Case) -> Trace:
        return replace(super().run(case), entities=())


class Refusing(ReferenceEngine):
    """Has no state, and says so."""

    name = "refusing"

    def check(self, application: Application) -> None:
        for step in application.steps:
            if isinstance(step.operation, Stateful):
                raise UnsupportedTopology("state-3", step.name, "there is no state here")

    def run(self, case: Case) -> Trace:
        self.check(case.application)
        return super().run(case)


class Answering(Refusing):
    """Refuses when asked, and answers all the same."""

    name = "answering"

    def run(self, case: Case) -> Trace:
        return ReferenceEngine.run(self, case)


class Crowded(ReferenceEngine):
    """Lets one case of a job show in the next."""

    name = "crowded"

    def run_many(self, cases: Any) -> list[Trace]:
        traces = [self.run(case) for case in cases]
        return [traces[0], *[replace(trace, entities=traces[0].entities) for trace in traces[1:]]]


class Falling(ReferenceEngine):
    """Brings the whole job down on one kind of case."""

    name = "falling"

    def run(self, case: Case) -> Trace:
        if any(not payload for _, payload in case.input_log):
            raise ConnectionError("the worker is gone")
        return super().run(case)


def test_the_reference_keeps_every_rule(kept: Report) -> None:
    assert kept.problems == ()
    assert [law for law in kept.laws if law.status != "kept"] == []
    assert kept.exit_code == KEPT


def test_the_compiled_path_keeps_every_rule_it_is_promised_for() -> None:
    report = check_engine("compiled", cases=600)
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
    report = check_engine("reference", cases=200, rules="state-*,order-2")
    assert set(report.rules) == {*[f"state-{number}" for number in range(1, 10)], "order-2"}


def test_build_2_an_engine_may_refuse_if_it_says_so() -> None:
    report = check_engine(Refusing(), profile=FEW, counterexamples=None)
    assert report.failures == ()
    assert report.rules["state-3"] == "unsupported"
    assert report.rules["build-2"] == "kept"


def test_build_2_an_engine_that_answers_what_it_refuses_is_broken() -> None:
    report = check_engine(Answering(), profile=FEW, counterexamples=None)
    assert report.rules["build-2"] == "broken"


def test_cases_that_are_not_isolated_in_a_job_are_told_from_wrong_ones() -> None:
    report = check_engine(Crowded(), cases=100, counterexamples=None)
    assert report.exit_code == BROKEN
    assert not report.failures[0].alone


def test_a_case_that_brings_a_job_down_is_found_among_the_others() -> None:
    report = check_engine(Falling(), cases=100, counterexamples=None)
    assert [failure.rule for failure in report.failures] == ["frame-2"]
    assert "the worker is gone" in str(report.failures[0].to_json()["crash"])


class Leaving(ReferenceEngine):
    """Lets user code end the process it runs in."""

    name = "leaving"

    def run(self, case: Case) -> Trace:
        trace = super().run(case)
        if trace.ended is not None and trace.ended.kind == "exit":
            raise SystemExit(3)
        return trace


def test_dead_3_user_code_that_ends_the_engine_does_not_end_the_check() -> None:
    report = check_engine(Leaving(), cases=600, counterexamples=None)
    assert [failure.rule for failure in report.failures] == ["dead-3"]
    assert report.problems == ()


def test_a_known_divergence_counts_as_unsupported_until_it_expires() -> None:
    divergence = Divergence(
        "no state", "it will be told one day", date(2027, 1, 1), lambda case, facts: True
    )

    def failing(today: date) -> int:
        search = Search(NoState(), divergences=(divergence,), today=today)
        search.search(Profile("test", 50))
        return len(search.failing)

    assert failing(date(2026, 12, 31)) == 0
    assert failing(date(2027, 1, 1)) > 0


def test_stored_counterexamples_are_cases() -> None:
    assert STORED.is_dir()
    assert len(list(stored())) > 0


def test_a_report_is_read_back_and_a_truncated_one_refused(kept: Report, broken: Report) -> None:
    text = reports_to_json([kept, broken])
    assert [report["engine"] for report in read_reports(text)] == ["reference", "no state"]
    for damaged in (text[: len(text) // 2], "", "{}", reports_to_json([])):
        with pytest.raises(TruncatedReportError):
            read_reports(damaged)
    form = json.loads(text)
    form["reports"][0]["laws"].pop()
    with pytest.raises(TruncatedReportError):
        read_reports(json.dumps(form))


def test_no_report_is_no_pass() -> None:
    assert worst([]) == INCOMPLETE
    assert Report("none", "dev", 0, 0, 0, 0.0, ()).exit_code == INCOMPLETE


def test_junit_counts_what_is_broken(broken: Report) -> None:
    suite = ET.fromstring(junit([broken])).find("testsuite")
    assert suite is not None
    told = {law.rule + law.name for law in broken.laws if law.status == "broken"}
    assert suite.get("failures") == str(len(told))
    assert "wallaroo replay" in "".join(suite.itertext())


def test_the_page_stands_alone_and_escapes(kept: Report, broken: Report) -> None:
    nasty = replace(broken, problems=("<script>alert(1)</script>",))
    page = html([kept, nasty])
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "http" not in page
    assert page.count("<details") > 30


class Unhashable(ReferenceEngine):
    """Gives outputs that are not bytes, and cannot be hashed."""

    name = "unhashable"

    def run(self, case: Case) -> Trace:
        trace = super().run(case)
        outputs: Any = {
            sink: tuple(bytearray(output + b"?") for output in given)
            for sink, given in trace.outputs.items()
        }
        return replace(trace, outputs=outputs)


def test_outputs_of_any_type_are_told_apart() -> None:
    report = check_engine(Unhashable(), cases=60, counterexamples=None)
    assert report.exit_code == BROKEN
    assert report.problems == ()


class Interrupted(ReferenceEngine):
    """Lets an interrupt through: one that user code raised, or Ctrl-C."""

    name = "interrupted"

    def __init__(self, interrupt: KeyboardInterrupt) -> None:
        self.interrupt = interrupt

    def run(self, case: Case) -> Trace:
        raise self.interrupt


def test_an_interrupt_of_user_code_is_the_engine_s_answer_and_ctrl_c_is_not() -> None:
    report = check_engine(Interrupted(KeyboardInterrupt("halt")), cases=20, counterexamples=None)
    assert report.exit_code == BROKEN
    with pytest.raises(KeyboardInterrupt):
        check_engine(Interrupted(KeyboardInterrupt()), cases=20, counterexamples=None)
