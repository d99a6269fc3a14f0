"""Timed cases out of bytes, as `wallaroo_conformance.cases.strategies` makes the others.

Each choice has its byte at a place of its own, scaled so that 0 is the plainest choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from wallaroo_conformance.cases.timed.aggregations import AGGREGATIONS, COMBINING
from wallaroo_conformance.cases.timed.case import (
    Entry,
    SourceSpec,
    TimedCase,
    TimedStep,
    What,
    WindowSpec,
)
from wallaroo_conformance.cases.timed.marks import MARKS

T = TypeVar("T")

_SOURCES, _STEPS, _INPUTS = 3, 6, 24
_HEAD, _SOURCE_BYTES, _STEP_BYTES, _INPUT_BYTES = 14, 3, 10, 6
LENGTH = _HEAD + _SOURCES * _SOURCE_BYTES + _STEPS * _STEP_BYTES + _INPUTS * _INPUT_BYTES
"""Bytes a timed case is made of."""

_OPERATORS = (
    *("texts", "texts", "texts", "greatest", "altered_texts", "halves", "number"),
    *("prepended", "parity", "by_any"),
    *("by_letter", "by_letter", "by_pair", "by_number", "same", "drop", "twice"),
    *("remember", "remember", "remember_each", "collect", "merge", "merge"),
)
_WINDOWED = tuple(AGGREGATIONS)
_TAME = {"by_number": "by_letter", "altered_texts": "texts"}
_EVENT_TIMES = (*(("own_time",) * 4), None, "time_that_alters", "own_moment")
_RANGES = ((10, None), (10, None), (10, 4), (10, 5), (6, 2), (12, 3), (7, None), (1, None))
_DELAYS = (0, 0, 0, 0, 3, 5, 10, 30)
_BEGINNINGS = (*((0,) * 6), 1_000, 1_790_000_000_000_000_000)
"""Arrival times of first records: mostly 1970, which reduces well, and now and then a real one."""
_PLAIN = 180
_POLICIES = (
    *("dead-letter", "dead-letter", "drop", "fire-per-message"),
    *("place-in-oldest-window", "place-in-oldest-window"),
)


def timed_cases() -> st.SearchStrategy[TimedCase]:
    """Return a strategy of timed cases."""
    return st.binary(min_size=LENGTH, max_size=LENGTH).map(timed_case_from_bytes)


def generate_timed(count: int, random_seed: int, *, tame: bool) -> list[TimedCase]:
    """Return `count` different cases, the same for equal seeds.

    Args:
        count: how many, fewer only if there are no more.
        random_seed: of the generation.
        tame: for `trusting` mode; without the operators that alter messages: they make findings,
            and then that mode promises nothing.
    """
    return list(_generated(count, random_seed, tame))


@lru_cache(maxsize=24)
def _generated(count: int, random_seed: int, tame: bool) -> tuple[TimedCase, ...]:
    found: dict[TimedCase, None] = {}

    @seed(random_seed)
    @settings(
        max_examples=count,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.binary(min_size=LENGTH, max_size=LENGTH))
    def collect(drawn: bytes) -> None:
        found[timed_case_from_bytes(drawn, tame=tame)] = None

    collect()
    return tuple(found)


def timed_case_from_bytes(drawn: bytes, *, tame: bool = False) -> TimedCase:
    """Return the case that `LENGTH` bytes stand for."""
    head, position = drawn[:_HEAD], _HEAD
    sources = []
    for number in range(_SOURCES):
        byte = drawn[position : position + _SOURCE_BYTES]
        position += _SOURCE_BYTES
        if number < _pick(head[0], (1, 1, 1, 2, 2, 3)):
            source = _source(byte)
            altering = tame and source.event_time == "time_that_alters"
            sources.append(replace(source, event_time="own_time") if altering else source)
    steps = []
    for number in range(_STEPS):
        byte = drawn[position : position + _STEP_BYTES]
        position += _STEP_BYTES
        if number < _pick(head[1], (1, 1, 2, 2, 3, 3, 4, 5, 6)):
            steps.append(_step(byte, tame=tame))
    if len(sources) > 1 and head[7] % 4:
        steps[0] = TimedStep("merge", other=1)
    count = 1 + head[2] * head[2] * _INPUTS // 65536
    builder = head[3] > 200
    marks = head[4] > 128
    if head[10] > _PLAIN:  # of a shape that the relations know
        time = "own_time" if sources[0].event_time == "own_moment" else sources[0].event_time
        sources = [SourceSpec(time)]
        steps, builder, marks = _plain_steps(head[11], steps), False, False
    return TimedCase(
        sources=tuple(sources),
        steps=tuple(steps),
        inputs=_inputs(
            drawn[position:],
            count,
            sources,
            began=_BEGINNINGS[head[6] % len(_BEGINNINGS)],
            marks=marks,
            codec=head[8] > 220,
        ),
        ended=head[5] < 160,
        form="builder" if builder else "pipelines",
        expire_after=_pick(head[6], (None, None, 10, 5, 20)),
        shared=head[7] > 200,
        codec=head[8] > 220,
        batches=None if head[9] < 128 else tuple([1 + byte % 4 for byte in head[9:12]]),
        number=_pick(head[12], (None, None, 1, 2, 3, 4, 7)),
        isolation="trusting" if tame else "isolated",
        on_error="stop" if head[13] > 240 else "skip",
        small=head[13] % 4 == 1,
    )


def _plain_steps(byte: int, steps: list[TimedStep]) -> list[TimedStep]:
    """Return one step with windows or state, perhaps behind a key."""
    last = next((step for step in steps if step.window is not None), TimedStep("remember"))
    last = replace(last, origin=0, other=0, route=None, sink=False)
    alone = byte % 3 == 0
    if last.window is not None and (last.operator in COMBINING or not alone):
        last = replace(last, operator="texts")
    return [last] if alone else [TimedStep("by_letter"), last]


def _source(byte: bytes) -> SourceSpec:
    return SourceSpec(
        _pick(
            byte[0],
            (
                "own_time",
                "own_time",
                "own_time",
                "own_time",
                None,
                "time_that_alters",
                "own_moment",
            ),
        ),
        _pick(byte[1], (None, None, 15, 30)),
        byte[2] > 215,
    )


def _step(byte: bytes, *, tame: bool) -> TimedStep:
    operator = _pick(byte[0], _OPERATORS)
    if tame:
        operator = _TAME.get(operator, operator)
    return TimedStep(
        operator,
        _pick(byte[1], (0, 0, 0, 0, 0, 0, 1, 2, 3)),
        _pick(byte[2], (0, 1, 1, 2, 2)),
        _window(byte[4:], operator) if operator in _WINDOWED else None,
        _pick(byte[3], (None, "by_letter", "by_letter")) if byte[9] < 250 else "by_letter",
        byte[9] > 225,
    )


def _window(byte: bytes, operator: str) -> WindowSpec:
    kind = _pick(byte[0], ("range", "range", "range", "session", "session", "count"))
    if operator not in COMBINING and kind == "session":
        kind = "range"  # it has no combine
    if kind == "count":
        return WindowSpec("count", _pick(byte[1], (2, 3, 1)), timeout=_pick(byte[2], (None, 10, 5)))
    delay, late = _pick(byte[3], _DELAYS), _pick(byte[4], _POLICIES)
    if kind == "session":
        allowed = "drop" if late == "place-in-oldest-window" else late
        return WindowSpec("session", _pick(byte[1], (5, 3, 8)), delay=delay, late=allowed)
    size, slide = _pick(byte[1], _RANGES)
    return WindowSpec("range", size, slide if operator in COMBINING else None, delay, late)


def _inputs(
    drawn: bytes,
    count: int,
    sources: Sequence[SourceSpec],
    *,
    began: int,
    marks: bool,
    codec: bool,
) -> tuple[Entry, ...]:
    """Return records whose event times go on with some disorder and a few gaps."""
    entries: list[Entry] = []
    event, at = 0, began
    for number in range(count):
        byte = drawn[number * _INPUT_BYTES :][:_INPUT_BYTES]
        what = _pick(byte[0], _WHATS)
        source = byte[1] * len(sources) >> 8
        event += _pick(byte[2], (0, 1, 2, 3, 4, 5, 10, 40))
        at = max(at + _pick(byte[3], (0, 0, 1, 2, 5, 10, 15, 40, -3)), 0)
        if what != "frame":
            if what == "failed" and not sources[source].generator:
                what = "end"
            entries.append(Entry(what, 0 if what == "tick" else source, at))
            continue
        time = max(event - _pick(byte[4], (0, 0, 0, 0, 1, 2, 3, 5, 8, 10, 14, 25)), 0)
        mark = byte[5] * _MARK_SPACE >> 8
        text = str(number)
        shown = str(time)
        if codec and byte[5] % 16 == 1:
            text += "p"
        elif marks and mark < len(_MARKS):
            text += _MARKS[mark]
        elif marks and mark == len(_MARKS):
            shown = _pick(byte[4], ("x", "yes", "half", "below"))  # no event time
        elif marks and mark == len(_MARKS) + 1 and not sources[source].generator:
            text = ""  # filtered
        elif marks and mark == len(_MARKS) + 2 and not sources[source].generator:
            shown = "0 0"  # not decoded
        letter = "abc"[byte[5] % 3]
        entries.append(Entry("frame", source, at, f"{letter} {shown} {text}".encode()))
    return tuple(entries)


_MARKS = tuple(MARKS)
_MARK_SPACE = 40  # a third of it are marks
_WHATS: tuple[What, ...] = (*(("frame",) * 20), *(("tick",) * 4), "end", "failed")


def _pick(byte: int, table: Sequence[T]) -> T:
    """Return one of `table`: for 0 the first."""
    return table[byte * len(table) >> 8]
