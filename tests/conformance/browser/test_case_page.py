"""The page of a counterexample in a real browser: two widths, light and dark, nothing loaded."""

from __future__ import annotations

from pathlib import Path

import pytest
from wallaroo_conformance.cases.counterexamples import STORED, Counterexample, read_counterexample
from wallaroo_conformance.report.case_page import case_page
from wallaroo_mutants.catalogue import broken
from webdriver import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(180)]

NASTY = "<img src=x onerror=window.run=1>"
LOOK = """return {
  wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  back: getComputedStyle(document.body).backgroundColor,
  loaded: performance.getEntriesByType("resource").length,
  drawn: document.querySelector(".drawing svg").getBoundingClientRect().width,
  marked: Array.from(document.querySelectorAll(".drawing .box"),
    box => getComputedStyle(box).strokeWidth).filter(width => width === "4px").length,
  run: window.run || 0,
}"""


def test_the_page_of_a_case_can_be_looked_at(tmp_path: Path) -> None:
    stored = read_counterexample(STORED / "compute-1-falsy-77030dece7.json")
    example = Counterexample(stored.case, stored.rule, stored.law, note=NASTY)
    page = tmp_path / "case.html"
    page.write_text(case_page(example, broken("falsy filtered"), path=NASTY))
    backs = set()
    with Browser() as browser:
        for look in ({}, {"dark": True}, {"width": 390, "height": 1600}):
            browser.looks(**look)
            browser.open(page.as_uri())
            seen = browser.script(LOOK)
            backs.add(seen.pop("back"))
            assert seen.pop("drawn") > 300
            assert seen == {"wide": 0, "loaded": 0, "marked": 1, "run": 0}
            assert len(browser.picture()) > 15_000
        text = browser.text()
    assert "≠ here they part" in text
    assert NASTY in text
    assert len(backs) == 2
