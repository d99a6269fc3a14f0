"""A report as Markdown, short enough for the summary page of a CI run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from wallaroo_conformance.judge.results import BROKEN, KEPT, Report
from wallaroo_conformance.judge.rules import RULES
from wallaroo_conformance.report.showing import cases_text, coverage_text, failure_text, rule_note

VERDICTS = {KEPT: "✓ kept", BROKEN: "✗ broken"}
"""By exit code; any other is an incomplete check."""

_COUNTED = ("kept", "broken", "not exercised", "unsupported")
_MOST_SHOWN = 12  # failures of an engine in full: a summary page holds 1 MiB
_LONGEST = 20_000  # characters of one failure


def markdown(reports: Sequence[Report]) -> str:
    """Return reports as Markdown: a line an engine, what is broken, and all rules folded away."""
    lines = [
        "## Conformance",
        "",
        "| engine | | " + " | ".join(_COUNTED) + " | runs | seconds | seed |",
        "|---|---|" + "---:|" * (len(_COUNTED) + 3),
    ]
    for report in reports:
        statuses = list(report.rules.values())
        counts = " | ".join(str(statuses.count(status)) for status in _COUNTED)  # type: ignore[arg-type]
        verdict = VERDICTS.get(report.exit_code, "? incomplete")
        lines.append(
            f"| {_cell(report.engine)} | {verdict} | {counts} | {report.cases} "
            f"| {report.seconds:.0f} | {report.seed} |"
        )
    for report in reports:
        lines += ["", *_engine(report)]
    return "\n".join(lines) + "\n"


def folded(title: str, text: str) -> Iterator[str]:
    """Yield the lines of a text as it stands, behind a title that opens it."""
    text = text.encode("utf-8", "replace").decode()
    if len(text) > _LONGEST:
        text = text[:_LONGEST] + "\n… the rest is in the other reports"
    # A fence must be longer than what the text itself has.
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from (f"<details><summary>{_escaped(title)}</summary>", "", f"{fence}text", text, fence)
    yield from ("", "</details>", "")


def _engine(report: Report) -> Iterator[str]:
    for problem in report.problems:
        yield f"- {_cell(report.engine)}: incomplete: {_cell(problem)}"
    if report.problems:
        yield ""
    for failure in report.failures[:_MOST_SHOWN]:
        title = f"{report.engine}: {RULES[failure.rule]} ({failure.law})"
        yield from folded(title, failure_text(failure, report.engine, option=report.option))
    if left := [str(RULES[failure.rule]) for failure in report.failures[_MOST_SHOWN:]]:
        yield f"{len(left)} more: {_cell('; '.join(left))}"
        yield ""
    yield f"<details><summary>{_escaped(report.engine)}: all rules</summary>"
    yield from ("", "| rule | | cases | |", "|---|---|---:|---|")
    for rule, status in report.rules.items():
        note = rule_note(report, rule) or RULES[rule].title
        yield f"| {rule} | {status} | {report.exercised(rule)} | {_cell(note)} |"
    yield from ("", _cell(cases_text(report)))
    if report.coverage is not None:
        yield from ("", _cell(coverage_text(report.coverage)))
    yield from ("", "</details>")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _cell(text: str) -> str:
    return _escaped(" ".join(text.split())).replace("|", "\\|")
