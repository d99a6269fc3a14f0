"""Metamorphic relations of timed cases, and the comparison of answers with a plain model."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from wallaroo.records import Frame
from wallaroo.trace import Trace
from wallaroo_conformance.cases.case import ConformanceCase, Input, SourceSpec
from wallaroo_conformance.cases.operators import DECODERS, ENCODERS, GRAPH, KEYS, Trait
from wallaroo_conformance.judge.metamorphic import ANY_BATCHES, ANY_PARTITIONS, Relation, equal
from wallaroo_conformance.judge.timed_observing import TimedObservation
from wallaroo_conformance.judge.window_model import expected

_TRIPLES = {*DECODERS.having(Trait.OF_TRIPLES), *ENCODERS.having(Trait.OF_TRIPLES)}


def _model(*wanted: str) -> Any:
    """Return a variation that compares the engine with the model, in cases with such a step.

    Args:
        wanted: kinds of windows, or names of operators.
    """

    def vary(observation: TimedObservation, _rng: random.Random) -> Any:
        case = observation.case
        kinds = [step.window.kind if step.window else step.operator for step in case.steps]
        reasons = {letter.reason.value for letter in observation.trace.dead_letters}
        if not set(kinds) & set(wanted) or reasons - {"late"} or _filtered(case):
            return None
        told = expected(case)
        if told is None:
            return None

        def holds(one: Trace, other: Trace) -> bool:
            return all(_as_told(trace) for trace in (one, other))

        def _as_told(trace: Trace) -> bool:
            (lines,) = trace.outputs.values()
            dropped = sum(n for (_, what), n in trace.late.items() if what == "dropped")
            return list(lines) == told.lines and len(trace.dead_letters) + dropped == told.late

        return replace(case, batches=None if case.batches else (1,)), holds

    return vary


def _filtered(case: ConformanceCase) -> bool:
    """Whether something fails, is filtered or has no sink, which the model cannot tell."""
    nodes = (*[one.decoder for one in case.sources], *[one.encoder for one in case.sinks])
    if not {*nodes} <= _TRIPLES:
        return True
    return any(
        entry.what in ("failed", "exited")
        or (entry.what == "frame" and _text(entry).strip("0123456789") not in ("", "m"))
        for entry in case.inputs
    ) or any(source.generator for source in case.sources)


def _text(entry: Input) -> str:
    parts = entry.payload.decode("latin-1").split(" ")
    return parts[2] if len(parts) == 3 and parts[2] and parts[1].isdigit() else "?"


def _forms(observation: TimedObservation, _rng: random.Random) -> Any:
    """Write the same application in the builder's form, if that is possible."""
    case = observation.case
    graph = any(step.operator in (*KEYS, *GRAPH) for step in case.steps)
    if graph or case.plain_row is None or case.form == "builder":
        return None
    steps = tuple(
        [replace(step, route=step.route if step.window is None else None) for step in case.steps]
    )
    return replace(case, form="builder", steps=steps), equal


def _same_time_again(observation: TimedObservation, rng: random.Random) -> Any:
    """Put in a tick at a time that has already passed."""
    case = observation.case
    if not case.inputs:
        return None
    place = rng.randrange(len(case.inputs))
    tick = Input(what="tick")  # a clock that goes back repeats the last time
    inputs = (*case.inputs[: place + 1], tick, *case.inputs[place + 1 :])

    def holds(one: Trace, other: Trace) -> bool:
        forms = [one.comparable(), other.comparable()]
        same = ("outputs", "entities", "windows", "late")
        return all(forms[0][name] == forms[1][name] for name in same) and len(
            one.dead_letters
        ) == len(other.dead_letters)

    return replace(case, inputs=inputs, batches=None), holds


def _in_order(observation: TimedObservation, _rng: random.Random) -> Any:
    """Put messages in the order of their event times, if none comes behind the watermark."""
    case, trace = observation.case, observation.trace
    if trace.dead_letters or trace.late or not case.ended or _filtered(case):
        return None
    (source, *others) = case.sources
    if others or source.event_time is None or source.idle_after is not None:
        return None
    operators = [step.operator for step in case.steps]
    windows = [step.window for step in case.steps if step.window is not None]
    fits = [one for one in windows if one.kind != "count" and one.late == "dead-letter"]
    if operators not in (["texts"], ["by_letter", "texts"]) or not fits:
        return None
    if case.plain_row is None:
        return None
    if any(entry.what == "end" for entry in case.inputs):
        return None
    frames = [entry for entry in case.inputs if entry.what == "frame"]
    if fits[0].kind == "session" and not _waited_for(frames, source, fits[0].delay):
        return None
    ordered = iter(sorted(frames, key=_number))
    inputs = tuple(
        replace(next(ordered), at=entry.at) if entry.what == "frame" else entry
        for entry in case.inputs
    )

    def holds(one: Trace, other: Trace) -> bool:
        found = [sorted(map(sorted, *trace.outputs.values())) for trace in (one, other)]
        return found[0] == found[1]

    return replace(case, inputs=inputs), holds


def _waited_for(frames: Sequence[Input], source: SourceSpec, delay: int) -> bool:
    """Whether no message comes further behind another one than sessions wait.

    It may be in time all the same, since its own interval is not over yet; but a session that it
    would have joined has fired.
    """
    times = [_number(entry) for entry in frames]
    greatest = accumulate(times, max)
    in_time = all(time + delay >= most for time, most in zip(times, greatest, strict=True))
    return source.event_time == "own_time" and in_time


def _number(entry: Input) -> int:
    return int(entry.payload.split(b" ")[1])


def _received(observation: TimedObservation, _rng: random.Random) -> Any:
    """Count: each message is in a window that fired or is open, or is late."""
    case = observation.case
    windows = [step.window for step in case.steps if step.window is not None]
    if len(windows) != 1 or windows[0].kind != "range" or windows[0].slide is not None:
        return None
    last = case.steps[-1]
    if case.plain_row is None or last.window is None or _filtered(case):
        return None
    if [step.operator for step in case.steps if step.operator != "by_letter"] not in (
        ["texts"],
        ["number"],
    ):
        return None
    received = sum(isinstance(record, Frame) for record in case.input_log)

    def holds(one: Trace, other: Trace) -> bool:
        return all(_sum(trace) == received for trace in (one, other))

    def _sum(trace: Trace) -> int:
        (lines,) = trace.outputs.values()
        fired = [output.split(b" ")[2].partition(b"@")[0] for output in lines]
        still = sum(_held(window.accumulator) for window in trace.windows)
        dropped = sum(n for (_, what), n in trace.late.items() if what == "dropped")
        if last.operator == "number":
            inside = sum(map(int, fired))
        else:
            inside = sum(one.count(b"+") + 1 for one in fired)
        return inside + still + dropped + len(trace.dead_letters)

    return replace(case, batches=None if case.batches else (1,)), holds


def _held(accumulator: Any) -> int:
    """Return how many messages an accumulator holds: a list of texts, or a number."""
    kind, content = accumulator  # all that a trace has if it comes from another process
    return int(content, 16) if kind == "int" else len(content)


TIMED_RELATIONS: tuple[Relation, ...] = (
    ANY_BATCHES,
    ANY_PARTITIONS,
    Relation("graph-1", "forms", "what both forms can express gives the same trace", _forms),
    Relation(
        "time-1", "tick of no use", "a tick at a time that has already passed changes nothing",
        _same_time_again,
    ),
    Relation(
        "window-6", "within the delay",
        "messages that come in another order, none of them late, give the same windows", _in_order,
    ),
    Relation(
        "window-3", "none lost",
        "over a tumbling grid, messages fired, open, late and dead are those received", _received,
    ),
    Relation(
        "window-2", "model", "range windows hold what a plain model says they hold",
        _model("range"),
    ),
    Relation(
        "window-7", "model", "sessions hold what a plain model says they hold", _model("session")
    ),
    Relation(
        "window-8", "model", "count windows hold what a plain model says they hold",
        _model("count"),
    ),
    Relation(
        "key-4", "model", "entities expire when a plain model says they do", _model("remember")
    ),
)  # fmt: skip
