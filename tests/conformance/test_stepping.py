"""An engine that can step is asked when it is due (time-1)."""

from __future__ import annotations

import pytest
from wallaroo_conformance.stepping import check_due
from wallaroo_mutants.patching import Change, Patch

from wallaroo.engine import load_engine

SAYS = Change("wallaroo_reference.engine:_Stepper.due", "self._machine.due()", "")


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ("(self._machine.due() or -1) + 1 or None", "nothing is due before"),
        ("self._machine.due() and self._machine.due() - 1", "nothing happens"),
        ("None", "nothing is due, and something happens"),
    ],
    ids=["too late", "too early", "never"],
)
def test_time_1_an_engine_that_does_not_know_when_it_is_due_is_broken(says: str, told: str) -> None:
    with Patch("due", (SAYS._replace(after=says),)).in_place():
        _, [failure] = check_due(load_engine("compiled"), "*", 0)
    assert told in failure.text
    assert failure.case is not None
    assert failure.case.messages <= 1


def test_time_1_idle_sources_and_those_with_windows_behind_windows_know_too() -> None:
    for name in ("reference", "compiled"):
        [result], failures = check_due(load_engine(name), "time-*", 1)
        assert failures == []
        assert result.exercised > 20
