"""What was found about an application: as text, JSON, JUnit XML, Markdown and a page."""

from __future__ import annotations

from typing import Any

from wallaroo.junit import JUnitCase, JUnitSuite, junit
from wallaroo.text import escaped
from wallaroo.topology import Application
from wallaroo_conformance.portability.results import AppFinding, Letters, Look
from wallaroo_conformance.report.pages import rendered

FORMAT = "wallaroo-app-findings/2"

_CALLED = ("decoder", "computation", "encoder")


def application_text(look: Look, app: str, application: Application) -> str:
    """Return findings, kinds of dead letter, what was not reached, and a last line with counts."""
    shown: list[AppFinding | Letters] = [*look.findings, *look.letters]
    lines = [line for each in shown for line in _titled(each)]
    if missed := _missed(look, application):
        lines.append(f"not reached by any input: {missed}")
    return "\n".join([*lines, f"{escaped(app)}: {_counts(look)}"])


def application_form(look: Look) -> dict[str, Any]:
    """Return what was found as JSON values; the footer repeats what must be there."""
    letters = [_form(each) for each in look.letters]
    return {
        "format": FORMAT,
        "findings": [_form(each) for each in look.findings],
        "dead letters": [{**form, "error": form.pop("text")} for form in letters],
        "inputs": look.inputs,
        "messages": look.messages,
        "footer": {"findings": len(look.findings), "dead letters": len(look.letters)},
    }


def application_junit(look: Look, app: str) -> str:
    """Return what was found as JUnit XML: a failed test for each finding, or one that passed."""
    cases = [
        JUnitCase(app, title, "failure", finding.text, text)
        for finding in look.findings
        for title, text in [_titled(finding)]
    ]
    cases = cases or [JUnitCase(app, "the same everywhere")]
    return junit([JUnitSuite(app, cases, _counts(look))])


def application_page(template: str, look: Look, app: str, application: Application) -> str:
    """Return what was found as a page or as Markdown, each with its smallest input."""
    return rendered(
        template,
        app=app,
        counts=_counts(look),
        findings=[_titled(each) for each in look.findings],
        letters=[_titled(each) for each in look.letters],
        missed=_missed(look, application),
    )


def _missed(look: Look, application: Application) -> str:
    """Return the decoders, computations and encoders that no input has reached."""
    uses = [use for use in application.components() if use.role in _CALLED]
    missed = [use for use in uses if use.component.name not in look.called]
    return escaped(", ".join([f"{use.component.name} ({use.where})" for use in missed]))


def _titled(shown: AppFinding | Letters) -> tuple[str, str]:
    """Return a title, and what was seen with the smallest input."""
    lines = [f"  {line}" for line in shown.text.split("\n")]
    lines += ["  smallest input:"] * bool(shown.log)
    lines += [f"    {source}  {payload!r}" for source, payload in shown.log]
    return escaped(str(shown)), "\n".join(map(escaped, lines))


def _form(shown: AppFinding | Letters) -> dict[str, Any]:
    form = dict(vars(shown))
    form["input"] = [[source, payload.decode("latin-1")] for source, payload in form.pop("log")]
    return form


def _counts(look: Look) -> str:
    inputs = f"{look.messages} messages of {look.inputs} inputs"
    findings = _number(len(look.findings), "finding")
    kinds = _number(len(look.letters), "kind")
    return f"{findings}, {kinds} of dead letter, on {inputs}"


def _number(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"
