"""Exchanges of plain cases are cases, and of payloads and state computations alone."""

from __future__ import annotations

from dataclasses import replace

from wallaroo_conformance.cases.case import ConformanceCase, Input, PipelineSpec, StepSpec
from wallaroo_conformance.cases.either import assemble
from wallaroo_conformance.cases.exchanging import exchanges
from wallaroo_conformance.cases.operators import STATE_COMPUTATIONS, STATELESS
from wallaroo_conformance.cases.timed.case import Entry, TimedCase

FIRST, *OTHERS = STATE_COMPUTATIONS


def case_of(operator: str) -> ConformanceCase:
    return ConformanceCase((PipelineSpec(steps=(StepSpec(operator),)),), inputs=(Input(0, b"a"),))


def test_a_state_computation_is_exchanged_for_every_other_one() -> None:
    found = exchanges(case_of(FIRST))
    assert {case_of(operator) for operator in OTHERS} <= set(found)
    assert case_of(FIRST) not in found
    for other in found:
        assemble(other)


def test_of_a_stateless_case_only_payloads_are_exchanged() -> None:
    case = case_of(next(iter(STATELESS)))
    found = exchanges(case)
    assert {replace(other, inputs=case.inputs) for other in found} == {case}
    assert len({other.inputs for other in found}) == len(found) > 1


def test_a_codec_changes_messages_with_a_mark_only() -> None:
    marked, plain = (
        TimedCase(inputs=(Entry(payload=one),), codec=True) for one in (b"a 1 t", b"a 1 m")
    )
    assert marked.changed_by_codec
    assert not plain.changed_by_codec
    assert not replace(marked, codec=False).changed_by_codec
