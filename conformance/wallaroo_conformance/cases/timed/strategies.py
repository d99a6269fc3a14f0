"""Timed cases out of bytes, as `wallaroo_conformance.cases.strategies` makes the others.

Each choice has its byte at a place of its own, scaled so that 0 is the plainest choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from wallaroo.times import TIME_END
from wallaroo_conformance.cases.operators import Tone
from wallaroo_conformance.cases.timed.aggregations import AGGREGATIONS, COMBINING
from wallaroo_conformance.cases.timed.case import (
    Entry,
    SourceSpec,
    TimedCase,
    TimedStep,
    What,
    WindowSpec,
)
from wallaroo_conformance.cases.timed.marks import ENDS_THE_RUN, MARKS
from wallaroo_conformance.cases.timed.operators import (
    EVENT_TIMES,
    GRAPH,
    KEYS,
    STATEFUL,
    STATELESS,
)

T = TypeVar("T")

_SOURCES, _STEPS, _INPUTS = 3, 6, 24
_HEAD, _SOURCE_BYTES, _STEP_BYTES, _INPUT_BYTES = 20, 3, 10, 9
LENGTH = _HEAD + _SOURCES * _SOURCE_BYTES + _STEPS * _STEP_BYTES + _INPUTS * _INPUT_BYTES
"""Bytes a timed case is made of."""

_RANGES = ((10, None), (10, None), (10, 4), (10, 5), (6, 2), (12, 3), (7, None), (1, None))
_DELAYS = (0, 0, 0, 0, 3, 5, 10, 30)
_BEGINNINGS = (*((0,) * 6), 1_000, 1_790_000_000_000_000_000)
"""Arrival times of first records: mostly 1970, which reduces well, and now and then a real one."""
_POLICIES = (
    *("dead-letter", "dead-letter", "drop", "fire-per-message"),
    *("place-in-oldest-window", "place-in-oldest-window"),
)


class _Tables:
    """The choices, each repeated by how often it is to be chosen."""

    def __init__(self, tone: Tone) -> None:
        self.keys = KEYS.choices(tone, common=1)
        self.operators = (
            *AGGREGATIONS.choices(tone, common=2),
            *self.keys,
            *STATELESS,
            *STATEFUL.choices(tone, common=2),
            *(*GRAPH, "merge"),
        )
        self.event_times = (*EVENT_TIMES.choices(tone, common=3), None)


_TABLES: dict[Tone, _Tables] = {"any": _Tables("any"), "tame": _Tables("tame")}
_TEXTS, _LETTER, _STATE = (next(iter(table)) for table in (AGGREGATIONS, KEYS, STATEFUL))


def timed_case_from_bytes(drawn: bytes, tone: Tone = "any") -> TimedCase:
    """Return the case that `LENGTH` bytes stand for.

    `tame`: for `trusting` mode; without the operators that alter messages, since they make
    findings, and then that mode promises nothing.
    """
    tables = _TABLES[tone]
    head, position = drawn[:_HEAD], _HEAD
    sources = []
    for number in range(_SOURCES):
        byte = drawn[position : position + _SOURCE_BYTES]
        position += _SOURCE_BYTES
        if number < _pick(head[0], (1, 1, 1, 2, 2, 3)):
            sources.append(_source(byte, tables))
    steps = []
    for number in range(_STEPS):
        byte = drawn[position : position + _STEP_BYTES]
        position += _STEP_BYTES
        if number < _pick(head[1], (1, 1, 2, 2, 3, 3, 4, 5, 6)):
            steps.append(_step(byte, tables))
    if len(sources) > 1 and head[2] > 64:
        steps[0] = TimedStep("merge", other=1)
    builder, marks, codec = head[3] > 200, head[4] > 128, head[5] > 220
    if head[6] > 180:  # of a shape that the relations know
        time = None if sources[0].event_time is None else SourceSpec.event_time
        sources = [SourceSpec(time)]
        steps, builder, marks = _plain_steps(head[7], steps), False, False
    return TimedCase(
        sources=tuple(sources),
        steps=tuple(steps),
        inputs=_inputs(
            drawn[position:],
            1 + head[8] * head[8] * _INPUTS // 65536,
            sources,
            began=_pick(head[9], _BEGINNINGS),
            marks=marks,
            codec=codec,
        ),
        ended=head[10] < 160,
        form="builder" if builder else "pipelines",
        expire_after=_pick(head[11], (None, None, 10, 5, 20)),
        shared=head[12] > 200,
        codec=codec,
        batches=None if head[13] < 128 else tuple([1 + byte % 4 for byte in head[14:17]]),
        number=_pick(head[17], (None, None, 1, 2, 3, 4, 7)),
        isolation="isolated" if tone == "any" else "trusting",
        on_error="stop" if head[18] > 240 else "skip",
        small=head[19] > 191,
        done=190 < head[12] <= 200,
    )


def _plain_steps(byte: int, steps: list[TimedStep]) -> list[TimedStep]:
    """Return one step with windows or state, perhaps behind a key."""
    last = next((step for step in steps if step.window is not None), TimedStep(_STATE))
    last = replace(last, origin=0, other=0, route=None, sink=False)
    alone = _pick(byte, (False, False, True))
    if last.window is not None and (last.operator in COMBINING or not alone):
        last = replace(last, operator=_TEXTS)
    return [last] if alone else [TimedStep(_LETTER), last]


def _source(byte: bytes, tables: _Tables) -> SourceSpec:
    return SourceSpec(
        _pick(byte[0], tables.event_times),
        _pick(byte[1], (None, None, 15, 30)),
        byte[2] > 215,
    )


def _step(byte: bytes, tables: _Tables) -> TimedStep:
    operator = _pick(byte[0], tables.operators)
    return TimedStep(
        operator,
        _pick(byte[1], (0, 0, 0, 0, 0, 0, 1, 2, 3)),
        _pick(byte[2], (0, 1, 1, 2, 2)),
        _window(byte[3:8], operator) if operator in AGGREGATIONS else None,
        _pick(byte[8], (None, *tables.keys)),
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
            elif what == "failed" and byte[7] > 180:
                what = "exited"
            entries.append(Entry(what, 0 if what == "tick" else source, at))
            continue
        time = max(event - _pick(byte[4], (0, 0, 0, 0, 1, 2, 3, 5, 8, 10, 14, 25)), 0)
        mark = _pick(byte[5], _MARK_SPACE) if marks else None
        shown, text = str(time), str(number)
        if codec and byte[6] > 239:
            text += "p" if byte[6] > 247 else "r"
        elif mark == "no event time":
            shown = _pick(byte[7], _ODD_TIMES)
        elif mark in MARKS:
            text += mark + ENDS_THE_RUN * (byte[7] > 247)
        elif mark is not None and not sources[source].generator:
            shown, text = (shown, "") if mark == "filtered" else ("0 0", text)
        letter = _pick(byte[8], "abc")
        entries.append(Entry("frame", source, at, f"{letter} {shown} {text}".encode()))
    return tuple(entries)


_ODD_TIMES = (*(("x", "yes", "half", "below") * 2), str(TIME_END - 1))
"""Mostly no event times; and the last one."""
_WRONG = (*MARKS, "no event time", "filtered", "not decoded")
_MARK_SPACE = (*((None,) * 25), *_WRONG)
_WHATS: tuple[What, ...] = (*(("frame",) * 20), *(("tick",) * 4), "end", "failed")


def _pick(byte: int, table: Sequence[T]) -> T:
    """Return one of `table`: for 0 the first."""
    return table[byte * len(table) >> 8]
