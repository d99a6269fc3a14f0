"""Facts of timed cases that few cases meet: which cases meet them, and which do not."""

from __future__ import annotations

import pytest
from wallaroo_conformance.cases.timed.aggregations import AGGREGATIONS
from wallaroo_conformance.cases.timed.case import Entry, TimedCase, TimedStep, WindowSpec
from wallaroo_conformance.cases.timed.operators import KEYS
from wallaroo_conformance.judge.fact import Fact
from wallaroo_conformance.judge.oracle import reference_oracle

TEXTS, LETTER = next(iter(AGGREGATIONS)), next(iter(KEYS))
KEY, COLLECT = TimedStep(LETTER), TimedStep("collect")
SAME = TimedStep()
RAISING = "u"  # the mark on which update raises


def counted(count: int, timeout: int | None = None) -> TimedStep:
    return TimedStep(TEXTS, window=WindowSpec("count", count, timeout=timeout))


def frames(*texts: str) -> tuple[Entry, ...]:
    """Return records that arrive five nanoseconds after one another."""
    return tuple(
        Entry(at=5 * number, payload=f"a {number} {text}".encode())
        for number, text in enumerate(texts)
    )


def meets(fact: Fact, steps: tuple[TimedStep, ...], inputs: tuple[Entry, ...]) -> bool:
    [meaning] = reference_oracle().ask([TimedCase(steps=steps, inputs=inputs, ended=False)])
    return fact in meaning.facts


@pytest.mark.parametrize(
    ("texts", "within"), [(("m", RAISING), True), ((RAISING, "m"), False), (("m", "m"), False)]
)
def test_window_9_update_raises_for_a_window_that_had_messages(
    texts: tuple[str, ...], within: bool
) -> None:
    assert meets(Fact.UPDATE_RAISED_WITHIN, (counted(3),), frames(*texts)) is within


@pytest.mark.parametrize(
    ("window", "at", "timed_out"),
    [
        (counted(9, timeout=10), 10, True),
        (counted(9, timeout=10), 9, False),
        (counted(9), 10, False),
        (counted(2, timeout=10), 10, False),  # it fired by its count
        (counted(1, timeout=10), 10, False),
    ],
)
def test_window_8_a_window_of_several_messages_times_out(
    window: TimedStep, at: int, timed_out: bool
) -> None:
    inputs = (*frames("m", "m"), Entry("tick", at=at))
    assert meets(Fact.TIMEOUT_OF_SEVERAL, (window,), inputs) is timed_out


@pytest.mark.parametrize(
    ("steps", "taken"),
    [
        ((KEY, COLLECT, counted(2)), True),
        ((KEY, COLLECT, SAME, counted(2)), True),
        ((KEY, counted(2)), False),
        ((COLLECT, counted(2)), False),
        ((KEY, COLLECT, SAME), False),
    ],
)
def test_key_2_a_key_is_taken_before_windows(steps: tuple[TimedStep, ...], taken: bool) -> None:
    assert meets(Fact.KEY_TAKEN, steps, frames("m", "m")) is taken
