"""What was found about an application: as text, JSON, JUnit XML, Markdown and a page."""

from __future__ import annotations

from typing import Any

from wallaroo.junit import JUnitCase, JUnitSuite, junit
from wallaroo.text import escaped
from wallaroo.topology import Application
from wallaroo.trace import InputLog
from wallaroo_conformance.portability.results import Look
from wallaroo_conformance.report.html import page
from wallaroo_conformance.report.markdown import folded

FORMAT = "wallaroo-app-findings/2"

_CALLED = ("decoder", "computation", "encoder")


def application_text(look: Look, app: str, application: Application) -> str:
    """Return findings, kinds of dead letter, what was not reached, and a last line with counts."""
    lines = [line for titled in (*_findings(look), *_letters(look)) for line in titled]
    if missed := _missed(look, application):
        lines.append(f"not reached by any input: {missed}")
    return "\n".join([*lines, f"{escaped(app)}: {_counts(look)}"])


def application_form(look: Look) -> dict[str, Any]:
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
            for finding in look.findings
        ],
        "dead letters": [
            {
                **vars(letters.kind),
                "number": letters.number,
                "error": letters.error,
                "input": _form(letters.log),
            }
            for letters in look.letters.values()
        ],
        "inputs": look.inputs,
        "messages": look.messages,
        "footer": {"findings": len(look.findings), "dead letters": len(look.letters)},
    }


def application_junit(look: Look, app: str) -> str:
    """Return what was found as JUnit XML: a failed test for each finding, or one that passed."""
    cases = [
        JUnitCase(app, title, "failure", finding.text, text)
        for finding, (title, text) in zip(look.findings, _findings(look), strict=True)
    ]
    cases = cases or [JUnitCase(app, "the same everywhere")]
    return junit([JUnitSuite(app, cases, _counts(look))])


def application_html(look: Look, app: str, application: Application) -> str:
    """Return what was found as a page that needs no other files."""
    return page(
        "application.html",
        app=app,
        counts=_counts(look),
        findings=_findings(look),
        letters=_letters(look),
        missed=_missed(look, application),
    )


def application_markdown(look: Look, app: str, application: Application) -> str:
    """Return what was found as Markdown, each with its smallest input folded away."""
    lines = [f"## Is `{app}` the same everywhere?", "", _counts(look), ""]
    for title, text in _findings(look):
        lines += folded(f"✗ {title}", text)
    for title, text in _letters(look):
        lines += folded(title, text)
    if missed := _missed(look, application):
        lines.append(f"Not reached by any input: {missed}")
    return "\n".join(lines) + "\n"


def _missed(look: Look, application: Application) -> str:
    """Return the decoders, computations and encoders that no input has reached."""
    uses = [use for use in application.components() if use.role in _CALLED]
    missed = [use for use in uses if use.component.name not in look.called]
    return escaped(", ".join([f"{use.component.name} ({use.where})" for use in missed]))


def _findings(look: Look) -> list[tuple[str, str]]:
    """Return a title and a text for each finding."""
    return [
        (
            f"{finding.kind}: step {finding.step!r}"
            + escaped(f", key {finding.key}" * bool(finding.key)),
            _with_input(finding.text, finding.log),
        )
        for finding in look.findings
    ]


def _letters(look: Look) -> list[tuple[str, str]]:
    """Return a title and a text for each kind of dead letter."""
    return [
        (escaped(f"dead letters ({one.number}): {one.kind}"), _with_input(one.error, one.log))
        for one in look.letters.values()
    ]


def _with_input(text: str, log: InputLog) -> str:
    lines = [f"  {line}" for line in text.split("\n")] + ["  smallest input:"] * bool(log)
    lines += [f"    {source}  {payload!r}" for source, payload in log]
    return "\n".join(map(escaped, lines))


def _form(log: InputLog) -> list[list[str]]:
    return [[source, payload.decode("latin-1")] for source, payload in log]


def _counts(look: Look) -> str:
    inputs = f"{look.messages} messages of {look.inputs} inputs"
    findings = _number(len(look.findings), "finding")
    kinds = _number(len(look.letters), "kind")
    return f"{findings}, {kinds} of dead letter, on {inputs}"


def _number(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"
