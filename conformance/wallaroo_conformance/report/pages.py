"""Reports in the forms that people and CI systems read: each is a rendering of the same results."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from wallaroo.junit import JUnitCase, JUnitSuite, junit
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.readable import application_text, input_text, module_text, run_text
from wallaroo_conformance.judge.law import Law, LawResult
from wallaroo_conformance.judge.results import Report, reports_to_json
from wallaroo_conformance.judge.rules import RULES, Rule
from wallaroo_conformance.killing import Kill
from wallaroo_conformance.report import showing
from wallaroo_conformance.report.showing import cases_text, failure_text

_CHAPTERS = Path(__file__).parents[3] / "docs" / "spec"  # of a checkout
_LONGEST = 20_000  # characters of one text in Markdown: a summary page holds 1 MiB


def rendered(template: str, **values: Any) -> str:
    """Return one of the package's templates with these values in it; in HTML they are escaped."""
    text = _environment().get_template(template).render(**values)
    # A case's text may hold characters that UTF-8 refuses; a page shows a replacement.
    return text.encode("utf-8", "replace").decode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("wallaroo_conformance.report", "templates"),
        autoescape=select_autoescape(["html", "svg"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"fenced": _fenced, "inline": _inline, "cell": _cell}
    environment.globals |= {"rules": RULES, "showing": showing}
    return environment


def _fenced(text: str) -> str:
    """Return a text as it stands, as a block of Markdown."""
    text = text.encode("utf-8", "replace").decode()
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + "\n… the rest is in the other reports"
    # A fence must be longer than what the text itself has.
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def _inline(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cell(text: str) -> str:
    return _inline(" ".join(text.split())).replace("|", "\\|")


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
    """Return reports, and a kill matrix if there is one, as a page that loads nothing.

    Args:
        reports: the reports.
        kills: the kill matrix.
        spec: where the specification's chapters are, seen from the page; `None`: without links.
    """
    chapters = groupby(_asked(reports), key=lambda rule: rule.chapter.title)
    return rendered(
        "report.html",
        reports=reports,
        chapters=[(title, list(rules)) for title, rules in chapters],
        link=lambda rule: _link(rule, spec),
        laws=lambda rule: _laws(reports, rule),
        case_texts=case_texts,
        mutants=kills,
    )


def _asked(reports: Sequence[Report]) -> list[Rule]:
    """Return the rules that were asked for, in the specification's order."""
    asked = {rule for report in reports for rule in report.rules}
    return [rule for rule in RULES.values() if rule.id in asked]


def _link(rule: Rule, spec: str | None) -> str | None:
    """Return the address of a rule's section; a site's chapters end in .html."""
    if spec is None:
        return None
    # In a checkout the chapters are Markdown. On the site they are HTML; so they are for a page
    # within docs/, which is published with the site.
    link = rule.link if spec.endswith("docs/spec") else rule.link.replace(".md#", ".html#")
    return f"{spec.rstrip('/')}/{link}"


def _laws(reports: Sequence[Report], rule: str) -> dict[str, list[LawResult]]:
    """Return a rule's laws by what they say, each with its result in each report."""
    results = [{law.says: law for law in report.laws if law.rule == rule} for report in reports]
    return {
        says: [
            laws.get(says, Law(rule, "", says).result("not exercised", 0, note="not asked for"))
            for laws in results
        ]
        for says in dict.fromkeys([says for laws in results for says in laws])
    }


def case_texts(case: ConformanceCase, title: str) -> dict[str, str]:
    """Return a case as people read it: application, input, how it is run, as Python, as JSON."""
    return {
        "application": application_text(case),
        "input": input_text(case) or "(none)",
        "run": run_text(case),
        "module": module_text(case, title),
        "json": case.canonical_json(),
    }


def markdown(reports: Sequence[Report]) -> str:
    """Return reports as Markdown, short enough for the summary page of a CI run."""
    return rendered("report.md", reports=reports)


def reports_junit(reports: Sequence[Report]) -> str:
    """Return reports as JUnit XML: a suite for each engine, a test case for each law.

    Test cases are in the order of the specification, and have the rule's id in their names. If a
    check is not complete, its reasons are errors.
    """
    return junit([_suite(report) for report in reports])


def _suite(report: Report) -> JUnitSuite:
    order = list(RULES)
    laws = sorted(report.laws, key=lambda law: order.index(law.rule))
    return JUnitSuite(
        f"conformance.{report.engine}",
        [
            *[_junit_case(report, law) for law in laws],
            *[JUnitCase("harness", "complete", "error", problem) for problem in report.problems],
        ],
        cases_text(report),
        report.seconds,
    )


def _junit_case(report: Report, law: LawResult) -> JUnitCase:
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


def write_matrix(
    reports: Sequence[Report], directory: Path, published: str | None = None
) -> Iterator[Path]:
    """Write a page, the reports as JSON (``matrix.json``) and badges ``ENGINE.svg``; yield each.

    Args:
        reports: of the engines, in the order of the columns.
        directory: where to; it is made.
        published: address of the specification's chapters on a site, for links.
    """
    directory.mkdir(parents=True, exist_ok=True)
    page = directory / "index.html"
    files = {
        page: html(reports, spec=chapters_for(page, published)),
        directory / "matrix.json": reports_to_json(reports),
    }
    for report in reports:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", report.engine)
        files[directory / f"{name}.svg"] = badge(report)
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
        yield path


def badge(report: Report) -> str:
    """Return an SVG for an engine's README: how many rules it keeps, of those it claims."""
    statuses = list(report.rules.values())
    claimed = len(statuses) - statuses.count("unsupported")
    said = f"{statuses.count('kept')} of {claimed} rules"
    return rendered("badge.svg", report=report, said=said)
