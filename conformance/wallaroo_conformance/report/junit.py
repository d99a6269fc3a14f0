"""A report as JUnit XML: a test suite for each engine, a test case for each law.

Test cases are in the order of the specification, and have the rule's id in their names.
"""

from __future__ import annotations

from collections.abc import Sequence

from wallaroo.junit import JUnitCase, JUnitSuite, junit
from wallaroo_conformance.judge.results import LawResult, Report
from wallaroo_conformance.judge.rules import RULES
from wallaroo_conformance.report.showing import cases_text, coverage_text, failure_text


def reports_junit(reports: Sequence[Report]) -> str:
    """Return reports as JUnit XML; if a check is not complete, its reasons are errors."""
    return junit([_suite(report) for report in reports])


def _suite(report: Report) -> JUnitSuite:
    order = list(RULES)
    laws = sorted(report.laws, key=lambda law: order.index(law.rule))
    output = [cases_text(report)]
    if report.coverage is not None:
        output.append(coverage_text(report.coverage))
    return JUnitSuite(
        f"conformance.{report.engine}",
        [
            *[_case(report, law) for law in laws],
            *[JUnitCase("harness", "complete", "error", problem) for problem in report.problems],
        ],
        "\n".join(output),
        report.seconds,
    )


def _case(report: Report, law: LawResult) -> JUnitCase:
    group, name = str(RULES[law.rule]), f"{law.rule}: {law.says}"
    if law.status == "kept":
        return JUnitCase(group, name)
    if law.status == "broken":
        texts = [
            failure_text(failure, report.engine)
            for failure in report.failures
            if (failure.rule, failure.law) == (law.rule, law.name)
        ]
        return JUnitCase(group, name, "failure", law.says, "\n\n".join(texts))
    message = f"{law.status}: {law.note}" if law.note else law.status
    return JUnitCase(group, name, "skipped", message)
