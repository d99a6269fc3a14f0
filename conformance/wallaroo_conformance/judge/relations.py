"""Relations between two answers of one engine, without the reference.

A relation makes a second case from a case, and says what must agree between their traces. If it is
broken although both traces are the same as the reference's, the reference itself is wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from wallaroo.records import Frame
from wallaroo.trace import Trace
from wallaroo_conformance.cases.case import PARTITIONS, SOURCES, ConformanceCase, Input
from wallaroo_conformance.cases.operators import GRAPH, KEYS
from wallaroo_conformance.cases.records import input_log_of
from wallaroo_conformance.judge.law import Law
from wallaroo_conformance.judge.oracle import Meaning
from wallaroo_conformance.judge.window_model import expected

Holds: TypeAlias = Callable[[Trace, Trace], bool]
"""Whether the traces of the first and the second case agree as they must."""

Varied: TypeAlias = tuple[ConformanceCase, Holds] | None
"""The second case; `None` where a relation says nothing about the first."""

_MOST_BATCHES = 5  # each costs an engine that runs jobs a micro-batch


@dataclass(frozen=True)
class Variant:
    """A second case, and what must agree.

    Args:
        relation: which relation it stands for.
        case: the second case.
        holds: whether the two traces agree.
    """

    relation: Relation
    case: ConformanceCase
    holds: Holds

    def agree(self, first: Trace, second: Trace) -> bool:
        """Whether the two traces agree; an engine's trace may hold anything."""
        try:
            return self.holds(first, second)
        except Exception:  # noqa: BLE001 - a sink or number that the case does not have, or worse
            return False


@dataclass(frozen=True, kw_only=True)
class Relation(Law):
    """A law about two runs.

    Args:
        vary: makes the second case.
        of_any_order: it holds for traces in whatever order outputs stand.
    """

    vary: Callable[[Meaning, random.Random], Varied]
    of_any_order: bool = False

    def variant(self, meaning: Meaning, rng: random.Random) -> Variant | None:
        """Return the second case for a case, if there is one."""
        if meaning.trace.ended is not None or meaning.case.on_error != "skip":
            return None  # the run's end depends on everything before it
        varied = self.vary(meaning, rng)
        return None if varied is None else Variant(self, *varied)


def _other_batches(meaning: Meaning, rng: random.Random) -> Varied:
    case = meaning.case
    if len(case.inputs) < 2:
        return None
    batches: tuple[int, ...] | None = (1,) * min(len(case.inputs) - 1, _MOST_BATCHES)
    if case.batches == batches:
        batches = None
    elif rng.random() < 0.5:
        batches = (rng.randrange(1, len(case.inputs)),)
    return replace(case, batches=batches), equal


def _other_partitions(meaning: Meaning, rng: random.Random) -> Varied:
    case = meaning.case
    if not meaning.trace.entities:
        return None
    number = rng.choice([one for one in (1, 2, 3, 5) if one != (case.number or 1)])
    return replace(case, number=number), _equal_but_numbers


def _prefix(meaning: Meaning, rng: random.Random) -> Varied:
    case = meaning.case
    if case.timed or len(case.inputs) < 2:
        return None
    kept = rng.randrange(1, len(case.inputs))

    def holds(whole: Trace, part: Trace) -> bool:
        letters = [_letter(letter) for letter in whole.dead_letters if letter.lineage[0] < kept]
        return letters == [_letter(letter) for letter in part.dead_letters] and all(
            whole.outputs[sink][: len(outputs)] == outputs for sink, outputs in part.outputs.items()
        )

    return replace(case, inputs=case.inputs[:kept]), holds


def _interleaving(meaning: Meaning, _rng: random.Random) -> Varied:
    """Group frames by connection: entities fed by one connection each give the same."""
    case = meaning.case
    feeds = [(entry.source, entry.connection) for entry in case.inputs]
    order = sorted(range(len(feeds)), key=feeds.__getitem__)
    if case.timed or order == list(range(len(feeds))):
        return None
    if any(len({feeds[frame] for frame in frames}) > 1 for frames in meaning.met.values()):
        return None

    def holds(one: Trace, other: Trace) -> bool:
        return one.comparable()["entities"] == other.comparable()["entities"] and (
            _letters_by_old_number(other, order) == sorted(map(_letter, one.dead_letters))
        )

    return replace(case, inputs=tuple(case.inputs[index] for index in order)), holds


def _without_one_source(meaning: Meaning, rng: random.Random) -> Varied:
    """Leave out all frames of a source whose entities no other source reaches."""
    case = meaning.case
    present = sorted({entry.source for entry in case.inputs})
    if case.timed or len(present) < 2:
        return None
    gone = rng.choice(present)
    reached = _reachable(case, {gone})
    if reached & _reachable(case, set(present) - {gone}):
        return None
    order = [index for index, entry in enumerate(case.inputs) if entry.source != gone]
    lost = {PARTITIONS[partition] for partition in reached}

    def holds(whole: Trace, part: Trace) -> bool:
        letters = [
            _letter(letter) for letter in whole.dead_letters if letter.source != SOURCES[gone]
        ]
        entities = [
            entity for entity in whole.comparable()["entities"] if entity["partition"] not in lost
        ]
        return (
            all(
                whole.outputs[sink] == outputs
                for sink, outputs in part.outputs.items()
                if sink[0] != SOURCES[gone]
            )
            and entities == part.comparable()["entities"]
            and sorted(letters) == _letters_by_old_number(part, order)
        )

    return replace(case, inputs=tuple(case.inputs[index] for index in order)), holds


def _reachable(case: ConformanceCase, sources: set[int]) -> set[int]:
    """Return the state partitions that messages of some sources may come to."""
    feeding = case.feeding()
    return {step.partition for step in case.stateful() if feeding[step.id] & sources}


def _forms(meaning: Meaning, _rng: random.Random) -> Varied:
    """Write the same application in the builder's form, if that is possible."""
    case = meaning.case
    row = case.plain_row
    if case.form == "builder" or row is None:
        return None
    if any(step.operator in KEYS or step.operator in GRAPH for step in row):
        return None
    steps = [replace(step, route=None) if step.window else step for step in case.steps]
    return replace(case, form="builder", steps=tuple(steps)), equal


def _same_time_again(meaning: Meaning, rng: random.Random) -> Varied:
    """Put in a tick at a time that has already passed."""
    case = meaning.case
    if not case.timed or not case.inputs or any(sink.topic for sink in case.sinks):
        return None  # in a topic an output's number shows
    place = rng.randrange(len(case.inputs)) + 1
    tick = Input(what="tick")  # a clock that goes back repeats the last time
    inputs = (*case.inputs[:place], tick, *case.inputs[place:])

    def holds(one: Trace, other: Trace) -> bool:
        forms = [one.comparable(), other.comparable()]
        same = ("outputs", "entities", "windows", "late")
        return all(forms[0][name] == forms[1][name] for name in same) and len(
            one.dead_letters
        ) == len(other.dead_letters)

    return replace(case, inputs=inputs, batches=None), holds


def _received(meaning: Meaning, _rng: random.Random) -> Varied:
    """Count: each message is in a window that fired or is open, or is late."""
    case, row = meaning.case, meaning.case.plain_row
    if row is None or _is_special(case):
        return None
    if [step.operator for step in row if step.operator != "by_letter"] not in (
        ["texts"],
        ["number"],
    ):
        return None
    last, window = row[-1], row[-1].window
    if window is None or window.kind != "range" or window.slide is not None:
        return None
    received = sum(isinstance(record, Frame) for record in input_log_of(case))

    def holds(one: Trace, other: Trace) -> bool:
        return all(_sum(trace) == received for trace in (one, other))

    def _sum(trace: Trace) -> int:
        (lines,) = trace.outputs.values()
        fired = [output.split(b" ")[2].partition(b"@")[0] for output in lines]
        still = sum(_held(window.accumulator) for window in trace.windows)
        if last.operator == "number":
            inside = sum(map(int, fired))
        else:
            inside = sum(one.count(b"+") + 1 for one in fired)
        return inside + still + _dropped(trace) + len(trace.dead_letters)

    return replace(case, batches=None if case.batches else (1,)), holds


def _held(accumulator: Any) -> int:
    """Return how many messages an accumulator holds: a list of texts, or a number."""
    kind, content = accumulator  # all that a trace has if it comes from another process
    return int(content, 16) if kind == "int" else len(content)


def _model(*wanted: str) -> Callable[[Meaning, random.Random], Varied]:
    """Return a variation that compares the engine with the model, in cases with such a step.

    Args:
        wanted: kinds of windows, or names of operators.
    """

    def vary(meaning: Meaning, _rng: random.Random) -> Varied:
        case = meaning.case
        kinds = [step.window.kind if step.window else step.operator for step in case.steps]
        reasons = {letter.reason.value for letter in meaning.trace.dead_letters}
        if not set(kinds) & set(wanted) or reasons - {"late"} or _is_special(case):
            return None
        right = expected(case)
        if right is None:
            return None

        def agrees(trace: Trace) -> bool:
            (lines,) = trace.outputs.values()
            late = len(trace.dead_letters) + _dropped(trace)
            return list(lines) == right.lines and late == right.late

        def holds(one: Trace, other: Trace) -> bool:
            return agrees(one) and agrees(other)

        return replace(case, batches=None if case.batches else (1,)), holds

    return vary


def _is_special(case: ConformanceCase) -> bool:
    """Whether something fails, is filtered or has no sink, or not all is frames and bytes."""
    return (
        not case.sinks
        or case.with_topics
        or any(source.generator for source in case.sources)
        or any(entry.what == "frame" and not _is_plain(entry) for entry in case.inputs)
    )


def _is_plain(entry: Input) -> bool:
    parts = entry.payload.decode("latin-1").split(" ")
    text = parts[2] if len(parts) == 3 and parts[2] and parts[1].isdigit() else "?"
    return text.strip("0123456789") in ("", "m")


def _dropped(trace: Trace) -> int:
    """Return how many late messages were dropped."""
    return sum(number for (_, what), number in trace.late.items() if what == "dropped")


ANY_BATCHES = Relation(
    "order-2", "any batches", "any division into batches gives the same",
    vary=_other_batches, of_any_order=True,
)  # fmt: skip
ANY_PARTITIONS = Relation(
    "order-2", "any partitions", "any number of partitions gives the same",
    vary=_other_partitions, of_any_order=True,
)  # fmt: skip

RELATIONS: tuple[Relation, ...] = (
    ANY_BATCHES,
    ANY_PARTITIONS,
    Relation(
        "order-2", "prefix", "a prefix of the input gives a prefix of the output", vary=_prefix
    ),
    Relation(
        "route-1", "interleaving",
        "an entity fed by one connection does not notice how connections interleave",
        vary=_interleaving,
    ),
    Relation(
        "dead-2", "disjoint", "messages that reach other entities change nothing for these",
        vary=_without_one_source,
    ),
    Relation(
        "graph-1", "forms", "what both forms can express gives the same trace", vary=_forms
    ),
    Relation(
        "time-1", "tick of no use", "a tick at a time that has already passed changes nothing",
        vary=_same_time_again,
    ),
    Relation(
        "window-3", "none lost",
        "over a tumbling grid, messages fired, open, late and dead are those received",
        vary=_received,
    ),
    Relation(
        "window-2", "model", "range windows hold what a plain model says they hold",
        vary=_model("range"),
    ),
    Relation(
        "window-7", "model", "sessions hold what a plain model says they hold",
        vary=_model("session"),
    ),
    Relation(
        "window-8", "model", "count windows hold what a plain model says they hold",
        vary=_model("count"),
    ),
    Relation(
        "key-4", "model", "entities expire when a plain model says they do",
        vary=_model("remember"),
    ),
)  # fmt: skip


def equal(one: Trace, other: Trace) -> bool:
    """Return whether two traces agree."""
    return one.comparable() == other.comparable()


def _equal_but_numbers(one: Trace, other: Trace) -> bool:
    forms = [one.comparable(), other.comparable()]
    for form in forms:
        for entity in form["entities"]:
            del entity["number"]
    return bool(forms[0] == forms[1])


def _letter(letter: Any) -> tuple[Any, ...]:
    return (letter.lineage, letter.pipeline, letter.position, letter.sink or 0, letter.reason)


def _letters_by_old_number(trace: Trace, order: Sequence[int]) -> list[tuple[Any, ...]]:
    """Return a trace's letters with the sequence numbers they had before frames were moved."""
    return sorted(
        ((order[letter.lineage[0]], *letter.lineage[1:]), *_letter(letter)[1:])
        for letter in trace.dead_letters
    )
