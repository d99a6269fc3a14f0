"""A counterexample as one page: the application drawn, and where the engines begin to differ.

Engines may go through messages and steps in another order than the reference, as long as the same
comes out. So calls of user code are kept by the place that made them: each node sees its messages
in order.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeAlias

from markupsafe import Markup

from wallaroo.canonical import structure_or_kind
from wallaroo.drawing.labels import node_label
from wallaroo.drawing.svg import svg
from wallaroo.engine import Engine
from wallaroo.readable import structure_text
from wallaroo.topology import Application
from wallaroo.user_code.calls import Call, CallSite, instrument
from wallaroo_conformance.cases.building import assemble, engine_case
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.counterexamples import Counterexample
from wallaroo_conformance.judge.oracle import Judging, oracle_for
from wallaroo_conformance.judge.rules import RULES
from wallaroo_conformance.report.pages import case_texts, rendered
from wallaroo_conformance.report.showing import (
    rule_place,
    side_by_side,
    trace_lines,
    traces_side_by_side,
)
from wallaroo_conformance.search.judging import Replayed, replayed

Calls: TypeAlias = dict[int | str, list[str]]
"""For each place, a node's index or a state partition's name, its calls: a line each, in order."""

_LONGEST = 160  # characters of a value
_NOT_SHOWN = ("initial_value", "apply", "initial_accumulator")


def case_page(example: Counterexample, engine: Engine, *, path: str) -> str:
    """Run a counterexample on an engine and on what judges it, and return the page about it.

    Args:
        example: the counterexample.
        engine: what is judged.
        path: of its file, for the command that replays it.
    """
    result = replayed(example, engine)
    application = assemble(result.meaning.case)
    judged_by = oracle_for(engine).reference
    reference = calls_of(judged_by, result.meaning.case)
    other = {} if result.beyond else calls_of(engine, result.meaning.case, dict(result.options))
    rule = result.failure.rule if result.failure else example.rule
    return rendered(
        "case.html",
        engine=engine.name,
        judged_by=f"the {judged_by.name}",
        path=path,
        option=getattr(engine, "option", "") or f"--engine {engine.name}",
        example=example,
        result=result,
        rule=RULES.get(rule),
        place=rule_place(rule) if rule in RULES else "",
        verdict=_verdict(result),
        drawing=Markup(svg(application, marked=True)),  # noqa: S704 - the drawing escapes names
        texts=case_texts(result.meaning.case, f"{example.rule} {example.law}".strip()),
        way=_way(application, reference, other) if other else [],
        elsewhere=not other and not result.beyond and bool(reference),
        results=traces_side_by_side(result.meaning.trace, result.actual)
        if result.actual is not None
        else [(" ", line, "") for line in trace_lines(result.meaning.trace)],
    )


def calls_of(
    engine: Judging, case: ConformanceCase, options: dict[str, Any] | None = None
) -> Calls:
    """Run a case and return the calls of its user code.

    They are empty where an engine runs user code in another process.
    """
    calls: Calls = {}

    def around(site: CallSite, call: Call) -> Call:
        if site.method in _NOT_SHOWN:
            return call

        def shown_call(*arguments: Any) -> Any:
            given = ", ".join([_shown(argument) for argument in arguments])
            lines = calls.setdefault(site.place, [])
            try:
                result = call(*arguments)
            except BaseException as error:
                lines.append(f"{site.method}({given}) raises {type(error).__name__}")
                raise
            lines.append(f"{site.method}({given}) gives {_shown(result)}")
            return result

        return shown_call

    with suppress(Exception):  # the run that counts has already reported a crash
        engine.run(engine_case(case, instrument(assemble(case), around), options))
    return calls


def _shown(value: Any) -> str:
    text = structure_text(structure_or_kind(value))
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


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
    titles: dict[int | str, str] = {}
    for number, node in enumerate(application.nodes):
        label = node_label(application, node)
        titles[number] = f"{label.kind} {label.name}".strip()
    titles |= {each.name: f"state {each.name}" for each in application.partitions}
    for place, title in titles.items():
        calls = side_by_side(reference.get(place, []), other.get(place, []))
        if not calls:
            continue
        differs = any(mark != " " for mark, _, _ in calls)
        index = place if isinstance(place, int) else None
        state = {"differs": differs, "parts": differs and not parted, "behind": parted}
        rows.append({"title": title, "node": index, "calls": calls, **state})
        parted = parted or differs
    return rows
