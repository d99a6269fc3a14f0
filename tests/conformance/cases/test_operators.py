"""Operators of generated applications: no case made of them may take a check's whole time."""

from __future__ import annotations

import pytest
from wallaroo_conformance.cases.operators import BUILDERS, STATE_MULTI_COMPUTATIONS
from wallaroo_conformance.cases.operators.common import PAYLOADS

from wallaroo.components import state_computation_of
from wallaroo.judging import items_of

MOST = 4


@pytest.mark.parametrize("name", STATE_MULTI_COMPUTATIONS.choices("any"))
def test_a_state_that_was_visited_often_does_not_make_more_and_more_messages(name: str) -> None:
    computation = state_computation_of(STATE_MULTI_COMPUTATIONS[name])
    for payload in [one for one in PAYLOADS if one != b"many"]:  # it makes many from any state
        state = BUILDERS["Notebook"]()
        state.pages = 1_000
        try:
            items, _ = computation.call(payload.decode("latin-1"), state)
            found = [*items_of(items)]
        except BaseException:  # noqa: BLE001 - operators raise what user code can raise
            continue
        assert len(found) <= MOST
