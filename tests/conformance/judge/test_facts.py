"""Facts of timed cases that few cases meet: which cases meet them, and which do not."""

from __future__ import annotations

import pytest
from wallaroo_conformance.cases.timed.aggregations import AGGREGATIONS
from wallaroo_conformance.cases.timed.case import (
    Entry,
    SourceSpec,
    TimedCase,
    TimedStep,
    WindowSpec,
)
from wallaroo_conformance.cases.timed.operators import KEYS
from wallaroo_conformance.judge.fact import Fact
from wallaroo_conformance.judge.oracle import reference_oracle

TEXTS, LETTER = next(iter(AGGREGATIONS)), next(iter(KEYS))
KEY, COLLECT = TimedStep(LETTER), TimedStep("collect")
SAME = TimedStep()
BY_EVENT_TIME, BY_ARRIVAL = SourceSpec(), SourceSpec(event_time=None)
RAISING = "u"  # the mark on which update raises


def counted(count: int, timeout: int | None = None) -> TimedStep:
    return TimedStep(TEXTS, window=WindowSpec("count", count, timeout=timeout))


def frames(*texts: str) -> tuple[Entry, ...]:
    """Return records that arrive five nanoseconds after one another."""
    return tuple(
        Entry(at=5 * number, payload=f"a {number} {text}".encode())
        for number, text in enumerate(texts)
    )


def meets(
    fact: Fact,
    steps: tuple[TimedStep, ...],
    inputs: tuple[Entry, ...],
    source: SourceSpec = BY_EVENT_TIME,
) -> bool:
    case = TimedCase(sources=(source,), steps=steps, inputs=inputs, ended=False)
    [meaning] = reference_oracle().ask([case])
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


NO_MESSAGE = b"nothing"  # which the decoder refuses


@pytest.mark.parametrize(
    ("inputs", "lost"),
    [
        ([Entry(at=0), Entry(at=20, payload=NO_MESSAGE)], True),
        ([Entry(at=0), Entry(at=20, payload=NO_MESSAGE), Entry(at=20)], True),
        ([Entry(at=0), Entry(at=20)], False),
        ([Entry(at=0), Entry(at=5, payload=NO_MESSAGE), Entry("tick", at=20)], False),
        ([Entry(at=0), Entry(at=5, payload=NO_MESSAGE), Entry("end", at=20)], False),
    ],
)
def test_time_4_a_frame_that_gives_no_message_makes_windows_due(
    inputs: list[Entry], lost: bool
) -> None:
    windows = TimedStep(TEXTS, window=WindowSpec())
    assert meets(Fact.FIRED_BY_LOST, (windows,), tuple(inputs), BY_ARRIVAL) is lost


@pytest.mark.parametrize(
    ("payloads", "several", "one"),
    [
        ([b"a 5 m", b"a 0 m"], False, True),
        ([b"a 0 m", b"b 0 m"], True, False),
        ([b"a 0 m", b"a 0 m"], False, False),
    ],
)
def test_time_4_windows_of_one_key_or_of_several_are_due_together(
    payloads: list[bytes], several: bool, one: bool
) -> None:
    steps = (KEY, TimedStep(TEXTS, window=WindowSpec(size=1, delay=10)))
    inputs = (*[Entry(payload=payload) for payload in payloads], Entry("end"))
    assert meets(Fact.DUE_TOGETHER, steps, inputs) is several
    assert meets(Fact.ONE_KEY_DUE, steps, inputs) is one
