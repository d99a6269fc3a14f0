"""The search and its parts: what is generated when, and what is not counted as a failure."""

from __future__ import annotations

import logging

import pytest
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.generating import generate
from wallaroo_conformance.cases.tour import tour
from wallaroo_conformance.search.budget import (
    MOST_CASES_A_JOB,
    PROFILES,
    Budget,
    Check,
    chosen_budget,
)
from wallaroo_conformance.search.generation import Generation
from wallaroo_conformance.search.search import Search
from wallaroo_reference.engine import CompiledEngine, ReferenceEngine

from wallaroo.engine import Isolation
from wallaroo.errors import UnsupportedTopology
from wallaroo.operations import KeyBy, Windowed
from wallaroo.topology import Application

BOTH: frozenset[Isolation] = frozenset({"isolated", "trusting"})


def test_a_budget_is_named_by_what_ends_it_and_must_end() -> None:
    assert [Budget(500).name, Budget(None, 2.5).name] == ["500 cases", "2.5 seconds"]
    assert Budget(7, 2.5).name == "7 cases or 2.5 seconds"
    assert chosen_budget("ci") is PROFILES["ci"]
    assert chosen_budget("ci", 7) == Budget(7)
    assert chosen_budget("ci", seconds=3.0) == Budget(None, 3.0)
    assert chosen_budget("dev", 7, 2.5) == Budget(7, 2.5)
    with pytest.raises(ValueError, match="never ends"):
        Budget(None)


def test_the_tour_comes_behind_the_first_cases_of_chance() -> None:
    generation = Generation(0, BOTH, most=100)
    drawn, fixed, later = (generation.next_chunk(None) for _ in range(3))
    assert fixed == [*tour("any"), *tour("tame")]
    assert [len(drawn), len(later)] == [100, 100]
    assert len(generation.next_chunk(6)) == 6


def test_a_search_for_the_first_failure_begins_with_few_cases() -> None:
    few = Generation(0, frozenset({"isolated"}), MOST_CASES_A_JOB, few=True)
    chunks = [few.next_chunk(None) for _ in range(5)]
    assert [len(chunks[at]) for at in (0, 1, 2, 4)] == [32, 64, 128, 512]
    assert chunks[3] == tour("any")


def test_an_engine_that_refuses_graphs_gets_no_more_of_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_self: object, application: Application) -> None:
        if any(isinstance(step.operation, KeyBy | Windowed) for step in application.steps):
            raise UnsupportedTopology("window-1", application.name, "there are only rows here")

    asked: list[bool] = []

    def next_chunk(_self: object, _left: int | None, *, simple: bool) -> list[ConformanceCase]:
        asked.append(simple)
        return [*generate(100, len(asked), simple=float(simple))]

    monkeypatch.setattr(ReferenceEngine, "check", refuse)
    monkeypatch.setattr(Generation, "next_chunk", next_chunk)
    Search(ReferenceEngine(), Check(Budget(300))).search()
    assert asked == [False, True, True]
    assert {case.form for case in generate(100, 1, simple=1.0)} == {"builder"}


def test_an_engine_that_runs_graphs_keeps_getting_them() -> None:
    # The tour has few graphs, which trusting mode is not promised to.
    search = Search(CompiledEngine(), Check(Budget(1_200)))
    search.search()
    fired = next(law for law in search.findings.law_results("window-3") if law.name == "once")
    assert fired.exercised > 200


def test_what_an_engine_warns_of_in_a_generated_case_is_not_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def warn(_self: object, _application: Application) -> None:
        logging.getLogger("engine").warning("a state cannot be pickled")

    monkeypatch.setattr(ReferenceEngine, "check", warn)
    Search(ReferenceEngine(), Check(Budget(20))).search()
    assert not caplog.records
    logging.getLogger("engine").warning("shown again")
    assert caplog.messages == ["shown again"]


def test_equal_seeds_give_equal_chunks() -> None:
    def chunks(seed: int) -> list[object]:
        generation = Generation(seed, BOTH, most=50)
        return [generation.next_chunk(50), generation.next_chunk(20)]

    assert chunks(3) == chunks(3)
    assert chunks(3)[0] != chunks(4)[0]
