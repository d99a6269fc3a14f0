"""Verdicts as JUnit XML, for CI: a test case for each SLO, bound or history.

A result that is not known, such as the latency of an invalid run, is an error and not a failure:
the target may be as good as ever. A target that ended is a failure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as ET

from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.control.verdict import INVALID, TARGET_ENDED, show, verdict

# Characters that XML cannot hold, not even escaped.
_ILLEGAL = {code: "\ufffd" for code in (*range(0x20), 0xFFFE, 0xFFFF) if code not in (9, 10, 13)}

Outcome = Literal["passed", "failure", "error", "skipped"]


@dataclass(frozen=True)
class Case:
    """One test case.

    Attributes:
        group: its subject, such as a workload and its rate; JUnit calls it the class.
        name: what must hold.
        outcome: `failure` when it does not, `error` when it is not known, `skipped` when it was not
            asked.
        words: what was found.
    """

    group: str
    name: str
    outcome: Outcome
    words: str


def junit(suite: str, cases: Sequence[Case]) -> str:
    """Return test cases as the text of a JUnit file with one suite."""
    root = ET.Element("testsuites")
    element = ET.SubElement(root, "testsuite", name=suite, tests=str(len(cases)))
    totals = (("failure", "failures"), ("error", "errors"), ("skipped", "skipped"))
    for outcome, total in totals:
        element.set(total, str(sum(case.outcome == outcome for case in cases)))
    for case in cases:
        shown = ET.SubElement(
            element, "testcase", classname=_clean(case.group), name=_clean(case.name)
        )
        if case.outcome == "passed":
            ET.SubElement(shown, "system-out").text = _clean(case.words)
        else:
            ET.SubElement(shown, case.outcome, message=_clean(case.words))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def of_runs(runs: Sequence[Result]) -> list[Case]:
    """Return a case for the validity of each run, and one for each of its SLOs."""
    cases = []
    for number, run in enumerate(runs, 1):
        name = f"run {number} of {len(runs)}: " if len(runs) > 1 else ""
        wrong = "; ".join([*run.invalid, *(["interrupted"] if run.partial else [])])
        outcome: Outcome = "error" if wrong else "passed"
        if verdict(run) == TARGET_ENDED:
            outcome = "failure"
        cases.append(Case(run.label, f"{name}valid", outcome, wrong or "valid"))
        for slo in run.slos:
            words = f"{slo['text']}: {show(slo['value'])}"
            if wrong:
                words, outcome = f"{words}, but {wrong}", "error"
            else:
                outcome = "passed" if slo["met"] else "failure"
            cases.append(Case(run.label, name + slo["text"], outcome, words))
    return cases


def of_search(found: Search) -> list[Case]:
    """Return the one case of a search; it does not fail because a run on the way fails."""
    name = "a rate is sustained"
    if any(result.partial for result in found.results):
        return [Case(found.label, name, "error", "interrupted")]
    if found.best is not None:
        return [Case(found.label, name, "passed", f"{found.best:,.0f} messages/s")]
    outcome: Outcome = "error" if verdict(found.results[-1]) == INVALID else "failure"
    return [Case(found.label, name, outcome, str(found.points[-1]["why"]))]


def _clean(text: str) -> str:
    return text.translate(_ILLEGAL).encode("utf-8", "replace").decode()
