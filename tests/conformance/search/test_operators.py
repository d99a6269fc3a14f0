"""Which operators of an engine are wrong is known before rules are judged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from wallaroo_conformance.cases.building import GeneratedCase, engine_case, operators_of
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.catalogue import catalogue
from wallaroo_conformance.cases.tour import edges, steps
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.judge.results import INCOMPLETE
from wallaroo_conformance.report.showing import operators_text
from wallaroo_conformance.search.budget import Budget
from wallaroo_conformance.search.operators import wrong_operators
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Case
from wallaroo.trace import Trace

pytestmark = pytest.mark.xdist_group("checks")

GUESSED = {
    "latin": "escaped",
    "Framed": "line",
    "shout": "identity",
    "fork": "both",
    "by_text": "by_first",
    "Slotted": "Notebook",
    "Thinly": "Stocked",
    "note": "read",
    "own_moment": "own_time",
    "begun_texts": "texts",
    "by_pair": "by_letter",
    "few": "letters",
}
"""Operators, and those that an engine has in their places."""


class Guessing(ReferenceEngine):
    """Has other operators than the catalogue."""

    name = "guessing"

    def run(self, case: Case) -> Trace:
        assert isinstance(case, GeneratedCase)
        return super().run(engine_case(guessed(case.made_from), options=case.options))

    def run_many(self, cases: Any) -> list[Trace]:
        return [self.run(case) for case in cases]


def guessed(case: ConformanceCase) -> ConformanceCase:
    def instead(values: Any, *names: str) -> Any:
        return tuple(
            [
                replace(one, **{name: GUESSED.get(was, was) for name, was in fields.items()})
                for one in values
                for fields in [{name: getattr(one, name) for name in names}]
            ]
        )

    return replace(
        case,
        sources=instead(case.sources, "decoder", "event_time"),
        steps=instead(case.steps, "operator", "route"),
        sinks=instead(case.sinks, "encoder"),
        partitions=instead(case.partitions, "builder", "keys"),
    )


def test_operators_that_are_guessed_are_named_and_left_out() -> None:
    engine = Guessing()
    wrong = wrong_operators(engine)
    assert {one.names for one in wrong} == {(name,) for name in GUESSED}
    said = operators_text([one for one in wrong if one.names == ("shout",)], engine.name)
    assert said.splitlines()[:4] == [
        "shout, in shout, anything, described:",
        "  input     0: first  b'a'",
        "  expected  first[0]  b\"'A';\"",
        "  got       first[0]  b\"'a';\"",
    ]
    check = Check(Budget(60, top_up=0), counterexamples=None, wrong_operators=tuple(GUESSED))
    report = check_engine(engine, check)
    assert report.failures == ()
    assert report.exit_code == INCOMPLETE
    assert any("latin, Framed, shout" in problem for problem in report.problems)


def test_every_operator_of_the_catalogue_is_tried_and_shown_whole() -> None:
    operators = catalogue()["operators"]
    tried = {name for case in (*edges(), *steps()) for name in operators_of(case)}
    assert {one["name"] for one in operators} == tried
    assert all(one["python"] for one in operators if "vectors" in one)
