"""Metamorphic relations: between two answers of one engine, without the reference.

A relation makes a second case from a case, and says what must agree between their traces. If it is
broken although both traces are the same as the reference's, the reference itself is wrong.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from wallaroo.keys import BadKeyError, encode_key
from wallaroo.trace import Trace
from wallaroo_conformance.cases.case import PARTITIONS, SOURCES, ConformanceCase, Input
from wallaroo_conformance.cases.operators import STATEFUL
from wallaroo_conformance.judge.observing import Observation
from wallaroo_conformance.judge.rules import rule_id
from wallaroo_conformance.judge.timed_observing import TimedObservation

Permutation = list[int]
Watched: TypeAlias = Observation | TimedObservation

_MOST_BATCHES = 5  # each costs an engine that runs jobs a micro-batch


@dataclass(frozen=True)
class Variant:
    """A second case, and what must agree.

    Args:
        relation: which relation it stands for.
        case: the second case.
        holds: whether the traces of the first and the second case agree as they must.
    """

    relation: Relation
    case: ConformanceCase
    holds: Callable[[Trace, Trace], bool]

    def agree(self, first: Trace, second: Trace) -> bool:
        """Whether the two traces agree; an engine's trace may hold anything."""
        try:
            return self.holds(first, second)
        except Exception:  # noqa: BLE001 - a sink or number that the case does not have, or worse
            return False


@dataclass(frozen=True)
class Relation:
    """A relation between two runs.

    Args:
        rule: the rule that promises it.
        name: what is changed.
        says: what must hold.
        vary: makes the second case, or `None` where the relation says nothing about the first.
        of_any_order: it holds for traces in whatever order outputs stand.
    """

    rule: str
    name: str
    says: str
    vary: Callable[[Any, random.Random], tuple[ConformanceCase, Any] | None]
    of_any_order: bool = False

    def __post_init__(self) -> None:
        rule_id(self.rule)

    @property
    def id(self) -> str:
        """Rule and name."""
        return f"{self.rule}/{self.name}"

    def variant(self, observation: Watched, rng: random.Random) -> Variant | None:
        """Return the second case for an observed one."""
        if observation.trace.ended is not None or observation.case.on_error != "skip":
            return None  # the run's end depends on everything before it
        varied = self.vary(observation, rng)
        return None if varied is None else Variant(self, *varied)


def _other_batches(observation: Watched, rng: random.Random) -> Any:
    case = observation.case
    if len(case.inputs) < 2:
        return None
    batches: tuple[int, ...] | None = (1,) * min(len(case.inputs) - 1, _MOST_BATCHES)
    if case.batches == batches:
        batches = None
    elif rng.random() < 0.5:
        batches = (rng.randrange(1, len(case.inputs)),)
    return replace(case, batches=batches), equal


def _other_partitions(observation: Watched, rng: random.Random) -> Any:
    case = observation.case
    if not observation.trace.entities:
        return None
    number = rng.choice([one for one in (1, 2, 3, 5) if one != (case.number or 1)])
    return replace(case, number=number), _equal_but_numbers


def _prefix(observation: Observation, rng: random.Random) -> Any:
    case = observation.case
    if len(case.inputs) < 2:
        return None
    kept = rng.randrange(1, len(case.inputs))

    def holds(whole: Trace, part: Trace) -> bool:
        letters = [_letter(letter) for letter in whole.dead_letters if letter.lineage[0] < kept]
        return letters == [_letter(letter) for letter in part.dead_letters] and all(
            whole.outputs[sink][: len(outputs)] == outputs for sink, outputs in part.outputs.items()
        )

    return replace(case, inputs=case.inputs[:kept]), holds


def _interleaving(observation: Observation, _rng: random.Random) -> Any:
    """Group frames by connection: entities fed by one connection each give the same."""
    case = observation.case

    def connection(index: int) -> tuple[int, int]:
        return (case.inputs[index].source, case.inputs[index].connection)

    order = sorted(range(len(case.inputs)), key=connection)
    if order == list(range(len(case.inputs))):
        return None
    if any(len(feeders) > 1 for feeders in _feeders(observation).values()):
        return None

    def holds(one: Trace, other: Trace) -> bool:
        return one.comparable()["entities"] == other.comparable()["entities"] and (
            _letters_by_old_number(other, order) == sorted(map(_letter, one.dead_letters))
        )

    return replace(case, inputs=tuple(case.inputs[index] for index in order)), holds


def _without_one_source(observation: Observation, rng: random.Random) -> Any:
    """Leave out all frames of a source whose entities no other source reaches."""
    case = observation.case
    present = sorted({entry.source for entry in case.inputs})
    if len(present) < 2:
        return None
    gone = rng.choice(present)
    reached = _reachable(case, {gone})
    others = set(present) - {gone}
    if reached & _reachable(case, others):
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

    left: tuple[Input, ...] = tuple(case.inputs[index] for index in order)
    return replace(case, inputs=left), holds


ANY_BATCHES = Relation(
    "order-2", "any batches", "any division into batches gives the same", _other_batches, True
)
ANY_PARTITIONS = Relation(
    *("order-2", "any partitions", "any number of partitions gives the same"),
    *(_other_partitions, True),
)

RELATIONS: tuple[Relation, ...] = (
    ANY_BATCHES,
    ANY_PARTITIONS,
    Relation("order-2", "prefix", "a prefix of the input gives a prefix of the output", _prefix),
    Relation(
        "route-1",
        "interleaving",
        "an entity fed by one connection does not notice how connections interleave",
        _interleaving,
    ),
    Relation(
        "dead-2",
        "disjoint",
        "messages that reach other entities change nothing for these",
        _without_one_source,
    ),
)


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


def _letters_by_old_number(trace: Trace, order: Permutation) -> list[tuple[Any, ...]]:
    """Return a trace's letters with the sequence numbers they had before frames were moved."""
    return sorted(
        ((order[letter.lineage[0]], *letter.lineage[1:]), *_letter(letter)[1:])
        for letter in trace.dead_letters
    )


def _reachable(case: ConformanceCase, pipelines: set[int]) -> set[int]:
    return {
        step.partition
        for source in pipelines
        for step in case.row(source)
        if step.operator in STATEFUL
    }


def _feeders(observation: Observation) -> dict[Any, set[tuple[int, int]]]:
    """Return which connections fed each entity, from the calls on the reference.

    A frame's calls follow its decoder's: the reference takes each to its end before the next.
    """
    case = observation.case
    feeders: dict[Any, set[tuple[int, int]]] = {}
    sequence = -1
    for call in observation.calls:
        if call.role == "decode":
            sequence += 1
        if call.role not in ("route", "compute") or call.result == "raised":
            continue
        step = case.step_at(call.place, call.position)
        if step.operator not in STATEFUL:
            continue
        partition = step.partition
        single = case.partitions[partition].shape == "single"
        if single is (call.role == "route"):
            continue
        try:
            entity = (partition, b"" if single else encode_key(call.key))
        except BadKeyError:
            continue
        entry = case.inputs[sequence]
        feeders.setdefault(entity, set()).add((entry.source, entry.connection))
    return feeders
