"""Finds which facts a case has met when it ran on the reference."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import Any

from wallaroo.keys import BadKeyError, encode_key, is_u64
from wallaroo.trace import DeadLetter, Reason
from wallaroo_conformance.cases.case import PARTITIONS, SOURCES, ConformanceCase, StepSpec
from wallaroo_conformance.cases.operators import (
    BUILDERS,
    ENCODERS,
    MULTI_COMPUTATIONS,
    ROUTES,
    STATE_MULTI_COMPUTATIONS,
    STATEFUL,
    STEPS,
    Trait,
)
from wallaroo_conformance.judge.fact import Fact, Facts
from wallaroo_conformance.judge.observing import Call, Observation

_PLAIN_ENCODERS = (next(iter(ENCODERS)), *ENCODERS.having(Trait.EXACT))
_EXTREME = 1 << 63
_LONGEST_DECIMAL = 1_000  # bits
_LONG = 1_000  # characters
_USUAL_ERRORS = ("ValueError", "LookupError", "OSError")  # no engine raises or catches them itself
ENDS = {"exit": Fact.EXITED, "on-error": Fact.STOPPED}
_LETTERS = {
    Reason.DECODE: Fact.DECODE_LETTER,
    Reason.RAISED: Fact.RAISED_LETTER,
    Reason.UNKNOWN_KEY: Fact.UNKNOWN_KEY_LETTER,
    Reason.ENCODE: Fact.ENCODE_LETTER,
    Reason.UNPORTABLE: Fact.UNPORTABLE_LETTER,
}


def facts_of(observation: Observation) -> Facts:
    """Return the facts of a case."""
    case, trace = observation.case, observation.trace
    facts: set[Fact] = set()
    _run_facts(case, facts)
    for call in observation.calls:
        _CALL_FACTS[call.role](case, call, facts)
    _routing_facts(observation, facts)
    _letter_facts(observation, facts)
    if trace.ended is not None:
        facts.add(ENDS[trace.ended.kind])
    if trace.entities:
        facts.add(Fact.ENTITIES)
        if len({entry.source for entry in case.inputs}) > 1:
            facts.add(Fact.STATE_BESIDE_OTHERS)
    if any(entity.number for entity in trace.entities):
        facts.add(Fact.OTHER_PARTITION)
    if any(not output.isascii() for outputs in trace.outputs.values() for output in outputs):
        facts.add(Fact.OUTPUT_BEYOND_ASCII)
    if any(trace.outputs.values()):
        facts.add(Fact.OUTPUT)
    if any(len(outputs) > 1 for outputs in trace.outputs.values()):
        facts.add(Fact.OUTPUTS)
    return frozenset(facts)


def _run_facts(case: ConformanceCase, facts: set[Fact]) -> None:
    if len(case.inputs) > 1:
        facts.add(Fact.SEVERAL_MESSAGES)
        if case.batches is not None and case.batches[0] < len(case.inputs):
            facts.add(Fact.SEVERAL_BATCHES)
        stateful = any(True for _ in case.stateful())
        if not stateful and len({(one.source, one.payload) for one in case.inputs}) < len(
            case.inputs
        ):
            facts.add(Fact.DECODED_AGAIN)
    if any(not entry.payload for entry in case.inputs):
        facts.add(Fact.EMPTY_FRAME)
    if case.number is not None and case.number > 1:
        facts.add(Fact.SEVERAL_PARTITIONS)


def _decode(case: ConformanceCase, call: Call, facts: set[Fact]) -> None:
    if call.result == "none":
        facts.add(Fact.DECODER_FILTERS)
    elif call.result != "raised":
        facts.add(Fact.DECODED)
    if call.result in ("falsy", "empty"):
        facts.add(Fact.DECODER_GIVES_FALSY)


def _compute(case: ConformanceCase, call: Call, facts: set[Fact]) -> None:
    step = _step(case, call)
    name = step.operator
    if name in STATEFUL:
        if call.result != "raised":
            _compute_with_state(name, call, facts)
        return
    if step.parallel:
        facts.add(Fact.PARALLEL)
    if name in MULTI_COMPUTATIONS:
        _items(name, call, facts)
        return
    facts.add(Fact.COMPUTED)
    if call.changed is not None:
        return  # a pair is an ordinary message here
    if call.result == "none":
        facts.add(Fact.COMPUTATION_FILTERS)
    elif call.result == "falsy":
        facts.add(Fact.COMPUTATION_GIVES_FALSY)
    elif call.result == "empty":
        facts.add(Fact.COMPUTATION_GIVES_EMPTY)


def _items(name: str, call: Call, facts: set[Fact]) -> None:
    """Note what is in a multi computation's result, or in a multi state computation's outputs."""
    if call.result in ("none", "empty"):
        facts.add(Fact.MULTI_GIVES_NONE)
    elif call.result != "raised":
        facts.add(Fact.MULTI)
    if call.gaps:
        facts.add(Fact.MULTI_LEAVES_GAPS)
    if call.falsy or STEPS.has(name, Trait.FALSY_ITEMS):
        facts.add(Fact.MULTI_GIVES_FALSY)
    if STEPS.has(name, Trait.SAME_OBJECT):
        facts.add(Fact.MULTI_GIVES_SAME_OBJECT)
    if STEPS.has(name, Trait.ODD_ITEMS):
        facts.add(Fact.MULTI_ODD)
    if STEPS.has(name, Trait.OWN_LIST):
        facts.add(Fact.MULTI_GIVES_OWN_LIST)
    if call.result in ("value", "falsy") and STEPS.has(name, Trait.WRONG_ITEMS):
        facts.add(Fact.BAD_ITEMS)


def _compute_with_state(name: str, call: Call, facts: set[Fact]) -> None:
    if call.changed is None:
        facts.add(Fact.BAD_PAIR)
        return
    facts.add(Fact.STATE_CHANGED if call.changed else Fact.STATE_UNCHANGED)
    if STEPS.has(name, Trait.EQUAL_STATE):
        facts.add(Fact.STATE_MADE_EQUAL)
    if not call.changed and STEPS.has(name, Trait.ALTERS_SILENTLY):
        facts.add(Fact.STATE_ALTERED_SILENTLY)
    if STEPS.has(name, Trait.ALIASES):
        facts.add(Fact.STATE_SHARES)
    if call.result == "none":
        facts.add(Fact.STATE_COMPUTATION_GIVES_NONE)
        if call.changed:
            facts.add(Fact.STATE_CHANGED_NOTHING_SENT)
    if name in STATE_MULTI_COMPUTATIONS:
        facts.add(Fact.MULTI_WITH_STATE)
        _items(name, call, facts)
    elif call.result in ("falsy", "empty"):
        facts.add(Fact.STATE_COMPUTATION_GIVES_FALSY)


def _build(case: ConformanceCase, call: Call, facts: set[Fact]) -> None:
    facts.add(Fact.BUILDER_RAISES if call.result == "raised" else Fact.ENTITY_BUILT)
    builder = case.partitions[PARTITIONS.index(call.place)].builder
    if BUILDERS.has(builder, Trait.REMEMBERS):
        facts.add(Fact.BUILDER_SHARES)
    if BUILDERS.has(builder, Trait.FALSY_STATE):
        facts.add(Fact.FALSY_STATE)


def _route(case: ConformanceCase, call: Call, facts: set[Fact]) -> None:
    if call.result == "raised":
        facts.add(Fact.ROUTE_RAISED)
    if call.mutable and ROUTES.has(str(_step(case, call).route), Trait.ALTERS_MESSAGE):
        facts.add(Fact.ROUTE_ALTERS)


def _encode(case: ConformanceCase, call: Call, facts: set[Fact]) -> None:
    if call.result == "none":
        facts.add(Fact.ENCODER_FILTERS)
    elif call.result == "falsy":
        facts.add(Fact.ENCODER_GIVES_FALSY)
    sinks = case.encoders(call.place)
    if sinks[call.position] not in _PLAIN_ENCODERS:
        facts.add(Fact.ENCODER_UNUSUAL)
    if ENCODERS.has(sinks[call.position], Trait.ANNOTATED):
        facts.add(Fact.ENCODER_ANNOTATED)
    if len(sinks) > 1:
        facts.add(Fact.SEVERAL_SINKS)
        if call.mutable and ENCODERS.has(sinks[call.position], Trait.ALTERS_MESSAGE):
            facts.add(Fact.ENCODER_ALTERS_SHARED)


_CALL_FACTS = {
    "decode": _decode,
    "compute": _compute,
    "build": _build,
    "route": _route,
    "encode": _encode,
}


def _step(case: ConformanceCase, call: Call) -> StepSpec:
    return case.step_at(call.place, call.position)


def _routing_facts(observation: Observation, facts: set[Fact]) -> None:
    """Note which messages met which entity, by the keys and the visits of single entities."""
    case = observation.case
    met: Counter[tuple[int, bytes]] = Counter()
    visitors: dict[int, set[str]] = {}
    keys: dict[int, list[Any]] = {}
    visits: dict[tuple[int, bytes], Counter[tuple[str, int]]] = {}  # of one frame
    for call in observation.calls:
        if call.role == "decode":
            visits.clear()
        if call.role not in ("route", "compute"):
            continue
        step = _step(case, call)
        if step.operator not in STATEFUL:
            continue
        partition = step.partition
        spec = case.partitions[partition]
        visitors.setdefault(partition, set()).add(call.place)
        if call.result == "raised":
            continue
        if call.role == "compute":
            if spec.shape == "single":
                facts.add(Fact.SINGLE_MET)
                met[partition, b""] += 1
                _visit(visits, (partition, b""), call, facts)
            continue
        try:
            encoded = encode_key(call.key)
        except BadKeyError:
            continue
        facts.add(Fact.KEY_FOUND)
        met[partition, encoded] += 1
        _visit(visits, (partition, encoded), call, facts)
        keys.setdefault(partition, []).append(call.key)
        if spec.shape == "u64" and is_u64(call.key):
            facts.add(Fact.U64_KEY)
            if call.key >= _EXTREME:
                facts.add(Fact.EXTREME_U64_KEY)
        if spec.keys is not None:
            facts.add(Fact.LISTED_KEY)
        if _unusual(call.key):
            facts.add(Fact.UNUSUAL_KEY)
    if any(count > 1 for count in met.values()):
        facts.add(Fact.MET_AGAIN)
        if any(
            count > 1 and case.partitions[partition].shape == "single"
            for (partition, _), count in met.items()
        ):
            facts.add(Fact.SINGLE_MET_AGAIN)
    if any(len(pipelines) > 1 for pipelines in visitors.values()):
        facts.add(Fact.PARTITION_SHARED)
    declared = {step.partition for step in case.stateful()}
    if visitors and len(declared) > 1:
        facts.add(Fact.SEVERAL_STATE_PARTITIONS)
        if len({encoded for _, encoded in met}) < len(met):
            facts.add(Fact.EQUAL_KEYS_APART)
    for found in keys.values():
        distinct = {encode_key(key): key for key in found}
        if len(distinct) > 1:
            facts.add(Fact.SEVERAL_KEYS)
            if len({appearance(key) for key in distinct.values()}) < len(distinct):
                facts.add(Fact.KEYS_ALIKE)


def _visit(
    visits: dict[tuple[int, bytes], Counter[tuple[str, int]]],
    entity: tuple[int, bytes],
    call: Call,
    facts: set[Fact],
) -> None:
    """Note whether items of one frame meet an entity at several steps."""
    met = visits.setdefault(entity, Counter())
    met[call.place, call.position] += 1
    if len(met) > 1 and met.total() > 2:
        facts.add(Fact.SEVERAL_ITEMS_MEET_AGAIN)


def _letter_facts(observation: Observation, facts: set[Fact]) -> None:
    case = observation.case
    letters = {letter.lineage for letter in observation.trace.dead_letters}
    if len(letters) > len({lineage[0] for lineage in letters}):
        facts.add(Fact.LETTERS_OF_SEVERAL_ITEMS)
    if any(len(lineage) > 1 for lineage in letters):
        facts.add(Fact.SEVERAL_MESSAGES)
    stateless: set[int] = set()  # frames with a letter that only they themselves can have caused
    for letter in observation.trace.dead_letters:
        facts.add(Fact.LETTER)
        if letter.reason in _LETTERS:
            facts.add(_LETTERS[letter.reason])
        if letter.reason is Reason.RAISED and letter.error_type not in _USUAL_ERRORS:
            facts.add(Fact.UNUSUAL_ERROR)
        if _multis_before(case, letter) > 1:
            facts.add(Fact.LETTER_OF_NESTED_ITEM)
        with_state = False
        if letter.step is not None:
            step = case.step_at(letter.pipeline, letter.position)
            with_state = step.operator in STATEFUL
            if letter.reason is Reason.BAD_KEY and with_state:
                spec = case.partitions[step.partition]
                facts.add(Fact.BAD_U64_KEY if spec.shape == "u64" else Fact.BAD_KEY)
            if letter.reason is Reason.RAISED:
                if STEPS.has(step.operator, Trait.RAISES_LATE):
                    facts.add(Fact.STATE_ALTERED_THEN_RAISED)
                if STEPS.has(step.operator, Trait.RAISES_CONSUMED):
                    facts.add(Fact.MULTI_RAISES_CONSUMED)
        if letter.reason is Reason.BAD_RESULT and not with_state:
            facts.add(Fact.BAD_ITEMS)
        if not with_state or letter.reason in (Reason.BAD_KEY, Reason.UNKNOWN_KEY):
            stateless.add(letter.lineage[0])
        if letter.reason is Reason.UNPORTABLE and with_state:
            facts.add(Fact.STATE_COMPUTATION_UNPORTABLE)
    if len(stateless) > 1:
        facts.add(Fact.LETTERS_WITHOUT_STATE)
    if Fact.LETTER in facts and any(observation.trace.outputs.values()):
        facts.add(Fact.LETTER_BESIDE_OUTPUTS)


def _multis_before(case: ConformanceCase, letter: DeadLetter) -> int:
    """Return how many multi computations a message has passed when it became a dead letter."""
    steps = case.row(SOURCES.index(letter.pipeline))
    passed = steps if letter.sink is not None else steps[: max(letter.position, 0)]
    return sum(
        step.operator in MULTI_COMPUTATIONS or step.operator in STATE_MULTI_COMPUTATIONS
        for step in passed
    )


def appearance(key: Any) -> str:
    """Return a text that is equal for keys that careless code may mix up."""
    if isinstance(key, tuple):
        return appearance(key[0]) if len(key) == 1 else "".join(appearance(item) for item in key)
    if isinstance(key, bytes):
        key = key.decode("latin-1")
    if isinstance(key, int) and key.bit_length() > _LONGEST_DECIMAL:
        return hex(key)  # Python refuses to write very long ones as decimals
    folded = unicodedata.normalize("NFKC", str(key)).casefold()
    return folded.encode("ascii", "ignore").decode().strip("\0")


def _unusual(key: Any) -> bool:
    if isinstance(key, str):
        return not (0 < len(key) < _LONG and key.isascii() and key.isprintable())
    return not (isinstance(key, int) and 0 <= key < _EXTREME)
