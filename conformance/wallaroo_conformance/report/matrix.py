"""A matrix of several engines: rules down, engines across; as a page, as JSON, and badges."""

from __future__ import annotations

import html as standard_html
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from wallaroo_conformance.cases.readable import module_text
from wallaroo_conformance.judge.results import BROKEN, KEPT, Failure, Report
from wallaroo_conformance.judge.rules import RULES
from wallaroo_conformance.report.html import chapters_for, html

FORMAT = "wallaroo-matrix/1"

_CHARACTER = 6.6  # width of a badge's character, in pixels
_LABEL = "conformance"


def write_matrix(
    reports: Sequence[Report], directory: Path, published: str | None = None
) -> Iterator[Path]:
    """Write ``index.html``, ``matrix.json`` and ``ENGINE.svg``; yield each file.

    Args:
        reports: of the engines, in the order of the columns.
        directory: where to; it is made.
        published: address of the specification's chapters on a site, for links.
    """
    directory.mkdir(parents=True, exist_ok=True)
    page = directory / "index.html"
    files = {
        page: html(reports, spec=chapters_for(page, published)),
        directory / "matrix.json": json.dumps(matrix(reports), indent=1) + "\n",
    }
    for report in reports:
        files[directory / f"{_file_name(report.engine)}.svg"] = badge(report)
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
        yield path


def matrix(reports: Sequence[Report]) -> dict[str, Any]:
    """Return the matrix as JSON values: engines, then rules with a cell for each engine."""
    asked = {rule for report in reports for rule in report.rules}
    return {
        "format": FORMAT,
        "engines": [_engine(report) for report in reports],
        "rules": [
            {
                "rule": rule.id,
                "title": rule.title,
                "engines": {report.engine: _cell(report, rule.id) for report in reports},
            }
            for rule in RULES.values()
            if rule.id in asked
        ],
    }


def badge(report: Report) -> str:
    """Return an SVG for an engine's README: how many rules it keeps, of those it claims."""
    statuses = list(report.rules.values())
    kept, unsupported = statuses.count("kept"), statuses.count("unsupported")
    said = f"{kept} of {len(statuses) - unsupported} rules"
    colour = {KEPT: "#12703f", BROKEN: "#b42318"}.get(report.exit_code, "#935f00")
    left, right = (round(_CHARACTER * len(text) + 14) for text in (_LABEL, said))
    title = standard_html.escape(f"{report.engine}: {said} kept")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" '
        f'role="img" aria-label="{title}"><title>{title}</title>'
        f'<rect width="{left + right}" height="20" rx="3" fill="#475467"/>'
        f'<rect x="{left}" width="{right}" height="20" rx="3" fill="{colour}"/>'
        f'<rect x="{left}" width="4" height="20" fill="{colour}"/>'
        '<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11" '
        'text-anchor="middle">'
        f'<text x="{left / 2:g}" y="14">{_LABEL}</text>'
        f'<text x="{left + right / 2:g}" y="14">{said}</text></g></svg>\n'
    )


def _engine(report: Report) -> dict[str, Any]:
    return {
        "name": report.engine,
        "versions": dict(report.versions),
        "date": report.date,
        "seed": report.seed,
        "profile": report.profile,
        "cases": report.supported,
        "runs": report.cases,
        "seconds": round(report.seconds, 1),
        "exit": report.exit_code,
        "problems": list(report.problems),
        "coverage": None if report.coverage is None else report.coverage.to_json(),
    }


def _cell(report: Report, rule: str) -> dict[str, Any]:
    laws = [law for law in report.laws if law.rule == rule]
    failures = [failure for failure in report.failures if failure.rule == rule]
    return {
        "status": report.rules.get(rule, "not exercised"),
        "cases": report.exercised(rule),
        "notes": sorted({law.note for law in laws if law.note and law.status != "kept"}),
        "failures": [_failure(failure) for failure in failures],
    }


def _failure(failure: Failure) -> dict[str, Any]:
    case = failure.case
    return {
        "law": failure.law,
        "rules": list(failure.rules),
        "says": failure.says,
        "crash": None if failure.crash is None else failure.crash.error,
        "case": None if case is None else case.to_json(),
        "python": None if case is None else module_text(case, f"{failure.rule} {failure.law}"),
    }


def _file_name(engine: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", engine)
