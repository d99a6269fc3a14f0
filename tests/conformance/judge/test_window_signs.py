"""Signs of windows: what differs in their bounds, fired and open, and what fired alone."""

from __future__ import annotations

import pytest
from wallaroo_conformance.judge.differences import signs
from wallaroo_conformance.judge.window_signs import bounds_of

from wallaroo.topology import SinkId
from wallaroo.trace import OpenWindow, Trace

SINK: SinkId = ("first", 0)


def given(*lines: str, opened: tuple[tuple[int, int], ...] = ()) -> Trace:
    """Return a trace of what windows gave, and of windows that are open."""
    windows = tuple([OpenWindow("texts", (), start, end, None, None) for start, end in opened])
    outputs = tuple([f"{line}\n".encode() for line in lines])
    return Trace({SINK: outputs}, windows=windows)


def test_bounds_are_those_of_fired_and_of_open_windows() -> None:
    assert bounds_of(given("a 10 m@0-10", "plain", opened=((0, 10),))) == {(0, 10): 2}


@pytest.mark.parametrize(
    ("actual", "expected"),
    [
        (given("a 10 m+m@0-10"), {"same bounds"}),
        (given("a 9 m@0-9"), {"other ends", "new bounds"}),
        (given("a 20 m@10-20"), {"new bounds"}),
        (given(), {"outputs lost"}),
        (given("a 6 m@5-6"), {"more late"}),
    ],
)
def test_signs_of_windows(actual: Trace, expected: set[str]) -> None:
    assert signs(given("a 10 m@0-10"), actual) == expected


def test_window_6_a_window_that_only_the_reference_fires_for_one_message_is_a_late_one_lost() -> (
    None
):
    wanted, actual = given("a 10 m@0-10", "a 6 m@5-6"), given("a 10 m@0-10", "a 10 m@0-10")
    assert signs(wanted, actual) == {"lost late"}
