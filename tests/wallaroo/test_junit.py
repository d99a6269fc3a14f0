from __future__ import annotations

from xml.etree import ElementTree as ET

from wallaroo.junit import JUnitCase, JUnitSuite, junit


def test_counts_times_and_texts_are_what_xml_can_hold() -> None:
    outcomes = ("passed", "failure", "error", "skipped")
    cases = [JUnitCase("<g>", f"\x00{outcome}", outcome, "a & b", "\ud800") for outcome in outcomes]
    suite = ET.fromstring(junit([JUnitSuite("s", cases, "printed", 1.5)]))[0]
    assert [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] == list("4111")
    assert suite.get("time") == "1.500"
    assert suite[-1].text == "printed"
    assert [case.get("name") for case in suite[:4]] == [f"\ufffd{name}" for name in outcomes]
    assert [case[0].get("message") for case in suite[1:4]] == ["a & b"] * 3
    assert suite[1][0].text == "?"
