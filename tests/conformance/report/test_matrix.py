"""The matrix of several engines: one page, one JSON, a badge of each."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from wallaroo_conformance.judge.results import Report
from wallaroo_conformance.report.matrix import badge, write_matrix

pytestmark = pytest.mark.xdist_group("checks")  # they share reports


def test_the_matrix_has_rules_down_and_engines_across(
    kept: Report, broken: Report, tmp_path: Path
) -> None:
    written = {path.name for path in write_matrix([kept, broken], tmp_path)}
    assert written == {"index.html", "matrix.json", "reference.svg", "no-state.svg"}
    form = json.loads((tmp_path / "matrix.json").read_text())
    assert [engine["name"] for engine in form["engines"]] == ["reference", "no state"]
    assert all(engine["date"] for engine in form["engines"])
    found = [rule["engines"] for rule in form["rules"]]
    assert all(rule["reference"]["status"] == "kept" for rule in found if "reference" in rule)
    failures = [one for rule in found for one in rule["no state"]["failures"]]
    assert failures
    assert all(one["case"]["format"] and "import wallaroo" in one["python"] for one in failures)
    page = (tmp_path / "index.html").read_text()
    assert "The case as JSON, and as Python" in page


def test_a_badge_is_a_picture_that_says_how_many_rules_are_kept(broken: Report) -> None:
    picture = ElementTree.fromstring(badge(broken))
    said = list(picture.itertext())
    assert "conformance" in said
    assert any("rules" in text for text in said)
