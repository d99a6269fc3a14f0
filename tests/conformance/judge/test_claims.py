"""What an engine does not claim is not held against it, and costs no time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from wallaroo_conformance.cases.case import (
    ConformanceCase,
    Input,
    PartitionSpec,
)
from wallaroo_conformance.cases.composing import graph, row, step, together
from wallaroo_conformance.cases.counterexamples import Counterexample
from wallaroo_conformance.checking import Check, check_engine
from wallaroo_conformance.judge.claims import Claims
from wallaroo_conformance.judge.oracle import reference_oracle
from wallaroo_conformance.search.budget import Budget
from wallaroo_conformance.search.judging import replayed
from wallaroo_mutants.catalogue import broken
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import Capabilities, Case
from wallaroo.trace import Trace

KEYED = PartitionSpec("keyed", "Notebook")
SINGLE = PartitionSpec("single", "Notebook")
COUNT = step("count")
COUNT_AGAIN = step("count", partition=1)
INPUTS = (Input(0, b"a"), Input(0, b"b"), Input(0, b"a"))


def beyond(case: ConformanceCase, **claims: str) -> str | None:
    [meaning] = reference_oracle().ask([case])
    return Claims(Capabilities(**claims)).beyond(meaning)


def counting(*partitions: PartitionSpec) -> ConformanceCase:
    steps = (COUNT, COUNT_AGAIN)[: len(partitions)]
    return row(*steps, partitions=partitions, inputs=INPUTS)


def test_order_1_behind_several_entities_an_engine_without_total_order_is_not_asked() -> None:
    assert beyond(counting(KEYED, KEYED), order="total") is None
    assert "met different entities" in beyond(counting(KEYED, KEYED), order="entity")
    assert "met different entities" in beyond(counting(KEYED, SINGLE), order="entity")
    assert beyond(counting(SINGLE, KEYED), order="entity") is None  # one entity keeps the order
    assert beyond(counting(KEYED), order="entity") is None


def test_order_1_of_messages_that_have_met_different_entities_an_engine_keeps_none() -> None:
    first = counting(SINGLE, SINGLE)
    direct = row(COUNT_AGAIN, partitions=first.partitions)
    both = together([first, direct], INPUTS)
    assert "met different entities" in beyond(both, order="entity")
    assert beyond(both, order="total") is None
    same = together([first, first], INPUTS)
    assert beyond(same, order="entity") is None


def test_order_1_without_any_order_no_entity_may_be_met_twice() -> None:
    assert "met again" in beyond(counting(KEYED), order="none")
    once = replace(counting(KEYED), inputs=INPUTS[:2])
    assert beyond(once, order="none") is None


def test_dead_4_without_a_stop_a_case_that_stops_goes_on() -> None:
    case = replace(counting(KEYED), on_error="stop")
    assert Claims(Capabilities(stop="none")).adapted(case).on_error == "skip"
    assert Claims(Capabilities(stop="batch")).adapted(case) is case


class Shuffled(ReferenceEngine):
    """Its sinks get outputs in another order."""

    name = "shuffled"
    order = "entity"

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), order=self.order, live=False)

    def run(self, case: Case) -> Trace:
        trace = super().run(case)
        return replace(trace, outputs={sink: out[::-1] for sink, out in trace.outputs.items()})


class Careless(Shuffled):
    """It claims an order."""

    order = "total"


class Lossy(Shuffled):
    """It loses outputs."""

    def run(self, case: Case) -> Trace:
        trace = super().run(case)
        return replace(trace, outputs={sink: out[1:] for sink, out in trace.outputs.items()})


class Late(ReferenceEngine):
    """It stops a message too late."""

    name = "late"
    stop = "batch"

    def capabilities(self) -> Capabilities:
        return replace(super().capabilities(), stop=self.stop, live=False)

    def run(self, case: Case) -> Trace:
        trace = super().run(case)
        if trace.ended is None:
            return trace
        return replace(trace, outputs={sink: (*out, b"!") for sink, out in trace.outputs.items()})


class Exact(Late):
    """It claims not to."""

    stop = "exact"


class NoDeadLetters(ReferenceEngine):
    """It loses dead letters, and says so."""

    name = "no dead letters"

    def capabilities(self) -> Capabilities:
        unclaimed = frozenset({"dead-1"})
        return replace(super().capabilities(), unsupported_rules=unclaimed, live=False)

    def run(self, case: Case) -> Trace:
        return replace(super().run(case), dead_letters=())


def test_a_replayed_case_says_nothing_where_what_differs_is_not_claimed() -> None:
    case = row(step("note_in_secret"), partitions=(SINGLE,), inputs=(Input(0, b"a"),))
    unclaimed = Capabilities(frozenset({"isolated"}), unsupported_rules=frozenset({"state-4"}))
    found = replayed(Counterexample(case), broken("flag ignored", claims=unclaimed))
    assert found.failure is None
    assert "state-4" in found.beyond


class Fragile(ReferenceEngine):
    """It has no answer in trusting mode."""

    def run(self, case: Case) -> Trace:
        if case.isolation == "trusting":
            raise RuntimeError("altered")
        return super().run(case)


def test_where_nothing_is_promised_an_engine_answers_all_the_same() -> None:
    case = graph(step("by_number"), inputs=(Input(0, b"a 1 m"),))
    trusting = Counterexample(replace(case, isolation="trusting", small=True))
    answered, crashed = replayed(trusting, ReferenceEngine()), replayed(trusting, Fragile())
    assert answered.failure is None
    assert "not promised" in answered.beyond
    assert crashed.failure is not None


CHECK = Check(Budget(256), counterexamples=None)


@pytest.mark.parametrize(
    ("engine", "broken"),
    [
        (Shuffled(), False),
        (Careless(), True),
        (Lossy(), True),
        (Late(), False),
        (Exact(), True),
        (NoDeadLetters(), False),
    ],
    ids=lambda one: getattr(one, "__class__", one).__name__,
)
def test_only_what_is_claimed_can_be_broken(engine: ReferenceEngine, broken: bool) -> None:
    report = check_engine(engine, replace(CHECK, fail_fast=True))
    assert bool(report.failures) is broken, report.failures
    if not broken:
        claimed = engine.capabilities()
        assert report.rules["order-1"] == ("kept" if claimed.order == "total" else "unsupported")
        assert report.rules["dead-4"] == ("kept" if claimed.stop == "exact" else "unsupported")
        for rule in claimed.unsupported_rules:
            assert report.rules[rule] == "unsupported"
