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
    assert bounds_of(given("a 5 m@-5-5")) == {(-5, 5): 1}


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


def test_a_window_of_several_messages_that_is_not_there_is_told_from_one_of_one_message() -> None:
    several, one = given("a 15 m+x@-5-15", "a 20 x@10-20"), given("a 15 m@-5-15", "a 20 x@10-20")
    actual = given("a 20 x@10-20")
    assert signs(several, actual) == {"window lost", "outputs lost"}
    assert signs(one, actual) == {"outputs lost"}
    assert "window lost" not in signs(several, given("a 15 m@-5-15", "a 20 x@10-20"))


def test_window_6_as_many_windows_of_a_moment_as_there_must_be_are_no_late_ones() -> None:
    assert "more late" not in signs(given("a 6 m@5-6"), given("a 1 m@0-1"))


def test_window_6_a_window_that_only_the_reference_fires_for_one_message_is_a_late_one_lost() -> (
    None
):
    wanted, actual = given("a 10 m@0-10", "a 6 m@5-6"), given("a 10 m@0-10", "a 10 m@0-10")
    assert signs(wanted, actual) == {"lost late"}


def test_an_open_count_window_of_one_message_is_no_late_messages_own() -> None:
    wanted, opened = given(opened=((4, 5),)), given(opened=((5, 6),))
    assert "more late" not in signs(wanted, opened)
    assert "lost late" not in signs(wanted, opened)
