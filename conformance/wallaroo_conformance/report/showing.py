"""Traces and failures as text for people."""

from __future__ import annotations

import textwrap
from difflib import SequenceMatcher
from itertools import zip_longest

from wallaroo.readable import (
    dead_letter_line,
    ended_line,
    entity_line,
    late_lines,
    output_text,
    window_line,
)
from wallaroo.trace import canonical_json
from wallaroo_conformance.cases.readable import application_text, input_text, run_text
from wallaroo_conformance.judge.differences import Crash, Result
from wallaroo_conformance.judge.results import Failure, Report
from wallaroo_conformance.judge.rules import RULES

_LONGEST = 160  # characters of a line of a trace


def rule_place(rule: str) -> str:
    """Return where a rule stands in the specification, seen from the project's folder."""
    return f"docs/spec/{RULES[rule].link}"


def rule_note(report: Report, rule: str) -> str:
    """Return why a rule was not kept or not exercised, or was hidden; empty: it was kept."""
    notes = sorted({law.note for law in report.laws if law.rule == rule and law.note})
    return notes[0] if notes and report.rules[rule] != "kept" else ""


def trace_lines(result: Result | None, *, whole: bool = False) -> list[str]:
    """Return a trace line by line: outputs by sink, dead letters, entities, how it ended.

    Args:
        result: what an engine gave.
        whole: show all that is compared, as JSON, and nothing shortened.
    """
    if result is None:
        return ["(nothing)"]
    if isinstance(result, Crash):
        return [f"no trace: {result.error}"]
    if whole:
        return [
            f"{part}: {canonical_json(each)}"
            for part, values in result.comparable().items()
            for each in (values if isinstance(values, list) else [values])
        ]
    lines = [
        f"{pipeline}[{index}]  {output_text(output)}"
        for (pipeline, index), outputs in sorted(result.outputs.items())
        for output in outputs
    ]
    lines += [f"dead letter {dead_letter_line(letter)}" for letter in result.dead_letters]
    lines += [f"entity {entity_line(entity)}" for entity in result.entities]
    lines += [f"open window {window_line(window)}" for window in result.windows]
    lines += [f"late at {line}" for line in late_lines(result.late)]
    lines += [] if result.ended is None else [f"ended {ended_line(result.ended)}"]
    shortened = [line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…" for line in lines]
    return shortened or ["(nothing)"]


def traces_side_by_side(
    expected: Result | None, actual: Result | None
) -> list[tuple[str, str, str]]:
    """Return rows as `side_by_side` does; at least one has a mark if anything differs."""
    rows = side_by_side(trace_lines(expected), trace_lines(actual))
    if expected is None or actual is None or expected.comparable() == actual.comparable():
        return rows
    if any(mark != " " for mark, _, _ in rows):
        return rows
    return side_by_side(trace_lines(expected, whole=True), trace_lines(actual, whole=True))


def side_by_side(left: list[str], right: list[str]) -> list[tuple[str, str, str]]:
    """Return rows of (mark, left, right); the mark of rows that differ is ``≠``."""
    rows: list[tuple[str, str, str]] = []
    for change in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        mark = " " if change[0] == "equal" else "≠"
        sides = left[change[1] : change[2]], right[change[3] : change[4]]
        rows += [(mark, *pair) for pair in zip_longest(*sides, fillvalue="")]
    return rows


def failure_text(failure: Failure, engine: str, *, option: str = "", width: int = 100) -> str:
    """Return a failure, whole: rules, application, input, traces, how to replay it.

    Args:
        failure: the failure.
        engine: the engine's name.
        option: how a command line names the engine; empty: by its name.
        width: of the text, in characters.
    """
    crash = failure.crash
    named = option or f"--engine {engine}"
    parts = [
        f"{'CRASHED' if crash else 'BROKEN'}  {RULES[failure.rule]}  ({failure.law})",
        f"  the rule says: {failure.says}",
        f"  {rule_place(failure.rule)}",
    ]
    if others := failure.rules[1:]:
        parts.append(f"  or another rule that this case exercises: {', '.join(others)}")
    if failure.may_be_same:
        parts.append("  may be the same fault as the first that is shown")
    if failure.cut_short:
        parts.append("  not as small as it gets: the check ended before the case was reduced")
    if crash is not None:
        parts += [
            f"  the engine raised {crash.error}",
            textwrap.indent(crash.traceback.rstrip(), "  "),
        ]
    if failure.text:
        parts.append(textwrap.indent(failure.text, "  "))
    case = failure.case
    if case is not None:
        parts += [
            "",
            "  the application",
            textwrap.indent(application_text(case).rstrip(), "    "),
            "",
            f"  the input ({run_text(case)})",
            textwrap.indent(input_text(case) or "(none)", "    "),
            "",
            _columns(failure, engine, width),
        ]
    if not failure.alone:
        parts.append("  alone it succeeds: the cases of one job are not isolated from each other")
    if failure.stored:
        parts.append(f"  replay: wallaroo replay {failure.stored} {named}")
    return "\n".join(parts)


def cases_text(report: Report) -> str:
    """Return how many cases were asked for and run, and why these numbers differ."""
    asked, generated = report.asked, report.generated - report.stored
    if asked is None:
        parts = [f"{generated} cases in the time given"]
    elif generated < asked:
        parts = [f"{asked} cases asked for, {generated} of them when the search ended"]
    else:
        parts = [f"{asked} cases asked for"]
    if report.stored:
        parts.append(f"{report.stored} stored ones before them")
    if beyond := report.generated - report.supported:
        parts.append(f"{beyond} not run, because they need what the engine does not claim")
    if more := report.cases - report.supported:
        parts.append(f"{more} more runs, of cases that it refused, or to reduce failures")
    return "; ".join([*parts, f"{report.cases} runs in all"])


def _columns(failure: Failure, engine: str, width: int) -> str:
    column = max(24, (width - 8) // 2)
    lines = [f"    {f'the {failure.judged_by}':{column}}  {engine}"]
    for mark, left, right in traces_side_by_side(failure.expected, failure.actual):
        cells = [textwrap.wrap(text, column) for text in (left, right)]
        for row in zip_longest(*cells, fillvalue=""):
            lines.append(f"  {mark} {row[0]:{column}}  {row[1]}".rstrip())
    return "\n".join(lines)
