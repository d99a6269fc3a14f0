"""What was found about an application: as text, JSON, JUnit XML, Markdown and a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jinja2 import Template

from wallaroo.junit import JUnitCase, JUnitSuite, junit
from wallaroo.topology import Application
from wallaroo.trace import InputLog
from wallaroo_conformance.portability.check import Look
from wallaroo_conformance.portability.finding import AppFinding
from wallaroo_conformance.portability.letters import Letters
from wallaroo_conformance.report.markdown import folded

FORMAT = "wallaroo-app-findings/2"

_PAGE = """\
<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{{ app }}</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
pre { background: #f2f4f7; padding: .75rem; overflow-x: auto }
.broken { color: #b42318 }
</style>
<h1>Is {{ app }} the same everywhere?</h1>
<p>{{ counts }}</p>
{% for title, text in findings %}<h2 class="broken">✗ {{ title }}</h2>
<pre>{{ text }}</pre>
{% endfor %}{% for title, text in letters %}<h2>{{ title }}</h2>
<pre>{{ text }}</pre>
{% endfor %}{% if missed %}<p>Not reached by any input: {{ missed }}</p>
{% endif %}"""

_CALLED = ("decoder", "computation", "encoder")


def application_text(found: Look, app: str, application: Application) -> str:
    """Return findings, kinds of dead letter, what was not reached, and a last line with counts."""
    lines: list[str] = []
    for finding in found.findings:
        lines += [_title(finding), *_finding(finding)]
    for letters in found.letters:
        lines += [_letters_title(letters), _letters(letters)]
    if missed := not_reached(found, application):
        lines.append(f"not reached by any input: {', '.join(missed)}")
    return "\n".join([*lines, f"{app}: {_counts(found)}"])


def application_form(found: Look) -> dict[str, Any]:
    """Return what was found as JSON values; the footer repeats what must be there."""
    return {
        "format": FORMAT,
        "findings": [
            {
                "kind": finding.kind,
                "step": finding.step,
                "key": finding.key,
                "text": finding.text,
                "input": _form(finding.log),
            }
            for finding in found.findings
        ],
        "dead letters": [
            {
                **vars(letters.kind),
                "number": letters.number,
                "error": letters.error,
                "input": _form(letters.log),
            }
            for letters in found.letters
        ],
        "inputs": found.inputs,
        "messages": found.messages,
        "footer": {"findings": len(found.findings), "dead letters": len(found.letters)},
    }


def application_junit(found: Look, app: str) -> str:
    """Return what was found as JUnit XML: a failed test for each finding, or one that passed."""
    cases = [
        JUnitCase(app, _title(finding), "failure", finding.text, "\n".join(_finding(finding)))
        for finding in found.findings
    ]
    suite = JUnitSuite(app, cases or [JUnitCase(app, "the same everywhere")], _counts(found))
    return junit([suite])


def application_html(found: Look, app: str, application: Application) -> str:
    """Return what was found as a page that needs no other files."""
    page: str = Template(_PAGE, autoescape=True).render(
        app=app,
        counts=_counts(found),
        findings=[(_title(one), "\n".join(_finding(one))) for one in found.findings],
        letters=[(_letters_title(one), _letters(one)) for one in found.letters],
        missed=", ".join(not_reached(found, application)),
    )
    return page.encode("utf-8", "replace").decode()


def application_markdown(found: Look, app: str, application: Application) -> str:
    """Return what was found as Markdown, each with its smallest input folded away."""
    lines = [f"## Is `{app}` the same everywhere?", "", _counts(found), ""]
    for finding in found.findings:
        lines += folded(f"✗ {_title(finding)}", "\n".join(_finding(finding)))
    for letters in found.letters:
        lines += folded(_letters_title(letters), _letters(letters))
    if missed := not_reached(found, application):
        lines.append(f"Not reached by any input: {', '.join(missed)}")
    return "\n".join(lines) + "\n"


def not_reached(found: Look, application: Application) -> list[str]:
    """Return the decoders, computations and encoders that no input has reached."""
    return [
        f"{use.component.name} ({use.where})"
        for use in application.components()
        if use.role in _CALLED and use.component.name not in found.called
    ]


def _title(finding: AppFinding) -> str:
    key = f", key {finding.key}" if finding.key else ""
    return f"{finding.kind}: step {finding.step!r}{key}"


def _finding(finding: AppFinding) -> Iterator[str]:
    yield f"  {finding.text}"
    yield from _input(finding.log)


def _letters_title(letters: Letters) -> str:
    return f"dead letters ({letters.number}): {letters.kind}"


def _letters(letters: Letters) -> str:
    return "\n".join([f"  {letters.error}", *_input(letters.log)])


def _input(log: InputLog) -> Iterator[str]:
    if log:
        yield "  smallest input:"
    for source, payload in log:
        yield f"    {source}  {payload!r}"


def _form(log: InputLog) -> list[list[str]]:
    return [[source, payload.decode("latin-1")] for source, payload in log]


def _counts(found: Look) -> str:
    inputs = f"{found.messages} messages of {found.inputs} inputs"
    findings = _number(len(found.findings), "finding")
    kinds = _number(len(found.letters), "kind")
    return f"{findings}, {kinds} of dead letter, on {inputs}"


def _number(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"
