"""A report as one HTML page that loads nothing: no script, no font, no picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from wallaroo_conformance.cases.readable import application_text, input_text, module_text, run_text
from wallaroo_conformance.judge.results import Failure, Report
from wallaroo_conformance.judge.rules import RULES, Rule
from wallaroo_conformance.killing import Kill
from wallaroo_conformance.report.showing import (
    cases_text,
    coverage_text,
    rule_place,
    traces_side_by_side,
)

_CHAPTERS = Path(__file__).parents[3] / "docs" / "spec"  # of a checkout
_MARKS = {"kept": "✓", "broken": "✗", "unsupported": "·", "not exercised": "?"}


def chapters_for(page: Path | None, published: str | None) -> str | None:
    """Return where the specification's chapters are, seen from a page.

    Args:
        page: the file that the page is written to; `None`: no page is.
        published: address of the chapters' folder on a site, where the user names one.

    Returns:
        The part of a link before a chapter's file name; `None` if there are no chapters, as in an
        installed wheel.
    """
    if published is not None:
        return published
    if page is None or not _CHAPTERS.is_dir():
        return None
    return os.path.relpath(_CHAPTERS, page.resolve().parent)


def html(reports: Sequence[Report], kills: Sequence[Kill] = (), *, spec: str | None = None) -> str:
    """Return reports, and a kill matrix if there is one, as a page.

    Args:
        reports: the reports.
        kills: the kill matrix.
        spec: where the specification's chapters are, seen from the page; `None`: without links.
    """
    return page(
        "report.html",
        reports=reports,
        matrix=_matrix(reports, spec),
        why_so_many=cases_text,
        coverage_text=coverage_text,
        failures=[_failure(failure, report) for report in reports for failure in report.failures],
        marks=_MARKS,
        mutants=kills,
    )


def page(template: str, **values: Any) -> str:
    """Return one of the package's templates as a page that holds these values, escaped."""
    environment = Environment(
        loader=PackageLoader("wallaroo_conformance.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = environment.get_template(template).render(**values)
    # A case's text may hold characters that UTF-8 refuses; a page shows a replacement.
    return text.encode("utf-8", "replace").decode()


def _matrix(reports: Sequence[Report], spec: str | None) -> list[dict[str, Any]]:
    """Return the rows: rules by chapter, with a cell for each engine."""
    asked = {rule for report in reports for rule in report.rules}
    rows: list[dict[str, Any]] = []
    for rule in [one.id for one in RULES.values() if one.id in asked]:
        chapter = RULES[rule].chapter.title
        if not rows or rows[-1]["chapter"] != chapter:
            rows.append({"chapter": chapter, "rules": []})
        rows[-1]["rules"].append(
            {
                "rule": RULES[rule],
                "place": rule_place(rule),
                "link": _link(RULES[rule], spec),
                "laws": [
                    {
                        "says": says,
                        "cells": [_law_cell(report, rule, name) for report in reports],
                    }
                    for name, says in _laws(reports, rule)
                ],
                "cells": [_rule_cell(report, rule) for report in reports],
            }
        )
    return rows


def _link(rule: Rule, spec: str | None) -> str | None:
    """Return the address of a rule's section; a site's chapters end in .html."""
    if spec is None:
        return None
    # In a checkout the chapters are Markdown. On the site they are HTML; so they are for a page
    # within docs/, which is published with the site.
    link = rule.link if spec.endswith("docs/spec") else rule.link.replace(".md#", ".html#")
    return f"{spec.rstrip('/')}/{link}"


def _laws(reports: Sequence[Report], rule: str) -> list[tuple[str, str]]:
    found = {law.name: law.says for report in reports for law in report.laws if law.rule == rule}
    return list(found.items())


def _rule_cell(report: Report, rule: str) -> dict[str, Any]:
    laws = [law for law in report.laws if law.rule == rule]
    return {
        "status": report.rules.get(rule, "not exercised"),
        "count": max((law.exercised for law in laws), default=0),
        "note": "",
    }


def _law_cell(report: Report, rule: str, name: str) -> dict[str, Any]:
    for law in report.laws:
        if (law.rule, law.name) == (rule, name):
            return {"status": law.status, "count": law.exercised, "note": law.note}
    return {"status": "not exercised", "count": 0, "note": "not asked for"}


def _failure(failure: Failure, report: Report) -> dict[str, Any]:
    case = failure.case
    return {
        "engine": report.engine,
        "option": report.option or f"--engine {report.engine}",
        "json": "" if case is None else case.canonical_json(),
        "module": "" if case is None else module_text(case, f"{failure.rule} {failure.law}"),
        "failure": failure,
        "application": "" if case is None else application_text(case),
        "input": "" if case is None else input_text(case) or "(none)",
        "run": "" if case is None else run_text(case),
        "messages": 0 if case is None else case.messages,
        "rows": [] if case is None else traces_side_by_side(failure.expected, failure.actual),
    }
