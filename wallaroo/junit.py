"""Writes JUnit XML, the form in which CI systems read the results of tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as ET

Outcome = Literal["passed", "failure", "error", "skipped"]

_TOTALS = {"failure": "failures", "error": "errors", "skipped": "skipped"}
# Characters that XML cannot hold, not even escaped.
_ILLEGAL = {code: "\ufffd" for code in (*range(0x20), 0xFFFE, 0xFFFF) if code not in (9, 10, 13)}


@dataclass(frozen=True)
class JUnitCase:
    """One test case.

    Attributes:
        group: its subject, such as a rule or a workload; JUnit calls it the class.
        name: what must hold.
        outcome: `failure` when it does not, `error` when it is not known, `skipped` when it was not
            asked.
        message: what was found, on one line.
        text: more about it: what a failure's test printed, for example.
    """

    group: str
    name: str
    outcome: Outcome = "passed"
    message: str = ""
    text: str = ""


@dataclass(frozen=True)
class JUnitSuite:
    """Test cases that ran together.

    Attributes:
        name: its name.
        cases: in the order in which they are written.
        output: what the whole suite printed.
        seconds: how long it took; `None` if it is not known.
    """

    name: str
    cases: Sequence[JUnitCase]
    output: str = ""
    seconds: float | None = None


def junit(suites: Iterable[JUnitSuite]) -> str:
    """Return suites as the text of a JUnit file, in UTF-8's characters only."""
    root = ET.Element("testsuites")
    for suite in suites:
        element = ET.SubElement(root, "testsuite", name=_clean(suite.name))
        element.set("tests", str(len(suite.cases)))
        for outcome, total in _TOTALS.items():
            element.set(total, str(sum(case.outcome == outcome for case in suite.cases)))
        if suite.seconds is not None:
            element.set("time", f"{suite.seconds:.3f}")
        for case in suite.cases:
            names = {"classname": _clean(case.group), "name": _clean(case.name)}
            shown = ET.SubElement(element, "testcase", names)
            if case.outcome != "passed":
                found = ET.SubElement(shown, case.outcome, message=_clean(case.message))
                found.text = _clean(case.text) or None
            elif case.message:
                ET.SubElement(shown, "system-out").text = _clean(case.message)
        if suite.output:
            ET.SubElement(element, "system-out").text = _clean(suite.output)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _clean(text: str) -> str:
    return text.translate(_ILLEGAL).encode("utf-8", "replace").decode()
