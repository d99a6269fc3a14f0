"""Traces as text: what differs is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from wallaroo_conformance.cases.case import ConformanceCase, Input
from wallaroo_conformance.judge.oracle import reference_oracle
from wallaroo_conformance.report.showing import trace_lines, traces_side_by_side


@pytest.mark.parametrize("altered", [{"payload": None}, {"source": "another"}])
def test_dead_letters_that_differ_in_what_is_not_shown_otherwise_are_shown_whole(altered) -> None:
    case = ConformanceCase(inputs=(Input(0, b"\xff\xfe"),))
    trace = reference_oracle().ask([case])[0].trace
    [letter] = trace.dead_letters
    other = replace(trace, dead_letters=(replace(letter, **altered),))
    assert trace_lines(trace) == trace_lines(other)
    [(mark, left, right)] = traces_side_by_side(trace, other)
    assert mark == "≠"
    assert left.endswith(r"payload b'\xff\xfe'")
    assert left != right
    assert {mark for mark, _, _ in traces_side_by_side(trace, trace)} == {" "}
