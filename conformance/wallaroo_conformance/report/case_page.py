"""A counterexample as one page: the application drawn, and where the engines begin to differ."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from wallaroo.drawing.labels import node_label
from wallaroo.drawing.svg import svg
from wallaroo.engine import Engine, load_engine
from wallaroo.topology import Application
from wallaroo_conformance.cases.building import assemble
from wallaroo_conformance.cases.counterexamples import Counterexample
from wallaroo_conformance.cases.readable import application_text, input_text, module_text, run_text
from wallaroo_conformance.judge.rules import RULES
from wallaroo_conformance.report.calls import Calls, calls_of
from wallaroo_conformance.report.html import page
from wallaroo_conformance.report.showing import (
    rule_place,
    side_by_side,
    trace_lines,
    traces_side_by_side,
)
from wallaroo_conformance.search.judging import Replayed, replayed


def case_page(example: Counterexample, engine: Engine, *, path: str) -> str:
    """Run a counterexample on an engine and on the reference, and return the page about it.

    Args:
        example: the counterexample.
        engine: what is compared with the reference.
        path: of its file, for the command that replays it.
    """
    result = replayed(example, engine)
    application = assemble(result.case)
    reference = calls_of(load_engine("reference"), result.case)
    other = {} if result.beyond else calls_of(engine, result.case, dict(result.options))
    rule = result.failure.rule if result.failure else example.rule
    return page(
        "case.html",
        engine=engine.name,
        path=path,
        option=getattr(engine, "option", "") or f"--engine {engine.name}",
        example=example,
        result=result,
        rule=RULES.get(rule),
        place=rule_place(rule) if rule in RULES else "",
        verdict=_verdict(result),
        drawing=Markup(svg(application, marked=True)),  # noqa: S704 - the drawing escapes names
        application=application_text(result.case),
        input=input_text(result.case) or "(none)",
        run=run_text(result.case),
        module=module_text(result.case, f"{example.rule} {example.law}".strip()),
        json=result.case.canonical_json(),
        way=_way(application, reference, other) if other else [],
        elsewhere=not other and not result.beyond and bool(reference),
        results=traces_side_by_side(result.meaning.trace, result.actual)
        if result.actual is not None
        else [(" ", line, "") for line in trace_lines(result.meaning.trace)],
    )


def _verdict(result: Replayed) -> str:
    if result.beyond:
        return "not judged"
    return "differs" if result.failure else "agrees"


def _way(application: Application, reference: Calls, other: Calls) -> list[dict[str, Any]]:
    """Return places in the order of the application, each with the calls of both engines.

    The engines begin to differ at the first place with a difference; later ones are consequences.
    """
    rows: list[dict[str, Any]] = []
    parted = False
    labels = [node_label(application, node) for node in application.nodes]
    titles: list[tuple[int | str, str]] = [
        (index, f"{label.kind} {label.name}".strip()) for index, label in enumerate(labels)
    ]
    states = [(each.name, f"state {each.name}") for each in application.partitions]
    for place, title in (*titles, *states):
        calls = side_by_side(reference.get(place, []), other.get(place, []))
        if not calls:
            continue
        differs = any(mark != " " for mark, _, _ in calls)
        parts = differs and not parted
        rows.append(
            {
                "title": title,
                "node": place if isinstance(place, int) else None,
                "calls": calls,
                "differs": differs,
                "parts": parts,
                "behind": parted,
            }
        )
        parted = parted or differs
    return rows
