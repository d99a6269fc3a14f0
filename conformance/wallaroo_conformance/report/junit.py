"""A report as JUnit XML: a test suite for each engine, a test case for each law.

Test cases are in the order of the specification, and have the rule's id in their names.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from wallaroo_conformance.judge.results import Report
from wallaroo_conformance.judge.rules import RULES
from wallaroo_conformance.report.showing import cases_text, coverage_text, failure_text

# Characters that XML cannot hold, not even escaped.
_ILLEGAL = {code: "\ufffd" for code in (*range(0x20), 0xFFFE, 0xFFFF) if code not in (9, 10, 13)}


def junit(reports: Sequence[Report]) -> str:
    """Return reports as JUnit XML; if a check is not complete, its reasons are errors."""
    order = list(RULES)
    root = ET.Element("testsuites")
    for report in reports:
        suite = ET.SubElement(root, "testsuite", name=f"conformance.{report.engine}")
        counts = {"failures": 0, "errors": len(report.problems), "skipped": 0}
        for law in sorted(report.laws, key=lambda law: order.index(law.rule)):
            case = ET.SubElement(
                suite,
                "testcase",
                classname=str(RULES[law.rule]),
                name=f"{law.rule}: {law.says}",
            )
            if law.status == "broken":
                counts["failures"] += 1
                texts = [
                    failure_text(failure, report.engine)
                    for failure in report.failures
                    if (failure.rule, failure.law) == (law.rule, law.name)
                ]
                failure = ET.SubElement(case, "failure", message=in_xml(law.says))
                failure.text = in_xml("\n\n".join(texts))
            elif law.status != "kept":
                counts["skipped"] += 1
                message = f"{law.status}: {law.note}" if law.note else law.status
                ET.SubElement(case, "skipped", message=in_xml(message))
        for problem in report.problems:
            case = ET.SubElement(suite, "testcase", classname="harness", name="complete")
            ET.SubElement(case, "error", message=in_xml(problem))
        said = [cases_text(report)]
        if report.coverage is not None:
            said.append(coverage_text(report.coverage))
        ET.SubElement(suite, "system-out").text = "\n".join(said)
        suite.set("tests", str(len(report.laws) + len(report.problems)))
        suite.set("time", f"{report.seconds:.3f}")
        for name, count in counts.items():
            suite.set(name, str(count))
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def in_xml(text: str) -> str:
    """Return a text in which characters that XML cannot hold are replaced."""
    return text.translate(_ILLEGAL).encode("utf-8", "replace").decode()
