"""Facts of timed cases that few cases meet: which cases meet them, and which do not."""

from __future__ import annotations

from dataclasses import replace

import pytest
from wallaroo_conformance.cases.case import Input, SourceSpec, StepSpec, WindowSpec
from wallaroo_conformance.cases.composing import TIMED_SOURCE, graph, record, step
from wallaroo_conformance.cases.operators import KEYS
from wallaroo_conformance.cases.operators.aggregations import AGGREGATIONS
from wallaroo_conformance.judge.fact import Fact
from wallaroo_conformance.judge.oracle import reference_oracle

TEXTS, LETTER = next(iter(AGGREGATIONS)), next(iter(KEYS))
KEY, COLLECT, SAME = step(LETTER), step("collect"), step("same")
BY_ARRIVAL = replace(TIMED_SOURCE, event_time=None)
RAISING = "u"  # the mark on which update raises


def counted(count: int, timeout: int | None = None) -> StepSpec:
    return step(TEXTS, window=WindowSpec("count", count, timeout=timeout))


def frames(*texts: str) -> tuple[Input, ...]:
    """Return records that arrive five nanoseconds after one another."""
    return tuple(
        Input(at=5 * number, payload=f"a {number} {text}".encode())
        for number, text in enumerate(texts)
    )


def meets(
    fact: Fact,
    steps: tuple[StepSpec, ...],
    inputs: tuple[Input, ...],
    source: SourceSpec = TIMED_SOURCE,
) -> bool:
    case = graph(*steps, sources=(source,), inputs=inputs, ended=False)
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
    window: StepSpec, at: int, timed_out: bool
) -> None:
    inputs = (*frames("m", "m"), Input(what="tick", at=at))
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
def test_key_2_a_key_is_taken_before_windows(steps: tuple[StepSpec, ...], taken: bool) -> None:
    assert meets(Fact.KEY_TAKEN, steps, frames("m", "m")) is taken


NO_MESSAGE = b"nothing"  # which the decoder refuses


@pytest.mark.parametrize(
    ("inputs", "lost"),
    [
        ([record(0, "a 0 m"), Input(at=20, payload=NO_MESSAGE)], True),
        ([record(0, "a 0 m"), Input(at=20, payload=NO_MESSAGE), record(20, "a 0 m")], True),
        ([record(0, "a 0 m"), record(20, "a 0 m")], False),
        ([record(0, "a 0 m"), Input(at=5, payload=NO_MESSAGE), Input(what="tick", at=20)], False),
        ([record(0, "a 0 m"), Input(at=5, payload=NO_MESSAGE), Input(what="end", at=20)], False),
    ],
)
def test_time_4_a_frame_that_gives_no_message_makes_windows_due(
    inputs: list[Input], lost: bool
) -> None:
    windows = step(TEXTS, window=WindowSpec())
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
    steps = (KEY, step(TEXTS, window=WindowSpec(size=1, delay=10)))
    inputs = (*[Input(payload=payload) for payload in payloads], Input(what="end"))
    assert meets(Fact.DUE_TOGETHER, steps, inputs) is several
    assert meets(Fact.ONE_KEY_DUE, steps, inputs) is one
