"""A case that was written by hand, or by another version, is refused by what is wrong with it."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from wallaroo_conformance.cases.case import ConformanceCase
from wallaroo_conformance.cases.counterexamples import stored
from wallaroo_conformance.cases.reading import BadCaseError, case_from_json

CASE = next(
    one.case.to_json()
    for one in stored()
    if isinstance(one.case, ConformanceCase)
    and one.case.pipelines[0].steps
    and one.case.pipelines[0].sinks
    and one.case.inputs
)


@pytest.mark.parametrize(
    ("way", "value", "message"),
    [
        (["pipelines"], [], "0 pipelines; there are 1 to"),
        (["partitions"], [], "0 state partitions; there are 1 to"),
        (["pipelines", 0, "decoder"], "x", "no decoder is called 'x'"),
        (["pipelines", 0, "sinks", 0], "x", "no encoder is called 'x'"),
        (["pipelines", 0, "steps", 0, "operator"], "x", "no computation is called 'x'"),
        (["pipelines", 0, "steps", 0, "route"], "x", "no partition function is called 'x'"),
        (["partitions", 0, "shape"], "x", "no state partition is 'x'"),
        (["partitions", 0, "builder"], "x", "no builder is called 'x'"),
        (["partitions", 0, "keys"], "x", "no list of keys for a .* partition is called 'x'"),
        (["inputs", 0, 0], 9, "a frame for pipeline 9 of"),
        (["batches"], [0], "a batch of less than 1"),
        (["number"], 0, "0 partitions"),
        (["isolation"], "x", "no isolation is 'x'"),
        (["on_error"], "x", "no on_error is 'x'"),
        (["small"], 1, "small is true or false, not 1"),
    ],
)
def test_what_is_wrong_with_a_case_is_said(way: list[Any], value: Any, message: str) -> None:
    form: Any = copy.deepcopy(CASE)
    place = form
    for name in way[:-1]:
        place = place[name]
    place[way[-1]] = value
    with pytest.raises(BadCaseError, match=f"no case: {message}"):
        case_from_json(form)
