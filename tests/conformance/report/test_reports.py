"""Reports: whole or refused, as JSON, as JUnit XML, as a page."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import version
from xml.etree import ElementTree as ET

import pytest
from wallaroo_conformance.judge.results import (
    INCOMPLETE,
    Report,
    TruncatedReportError,
    read_reports,
    reports_to_json,
    worst,
)
from wallaroo_conformance.report.html import html
from wallaroo_conformance.report.junit import junit

pytestmark = pytest.mark.xdist_group("checks")  # they share reports, and what cases mean


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


def test_a_report_names_the_versions_of_what_took_part(kept: Report) -> None:
    assert kept.versions["wallaroo"] == version("wallaroo-streams")
