"""Facts: what a case, run on the reference, has truly met. Laws name those they need."""

from __future__ import annotations

import unicodedata
from collections import Counter
from typing import Any

from wallaroo.keys import BadKeyError, encode_key
from wallaroo.trace import Reason
from wallaroo_conformance.case import PARTITIONS, PIPELINES, ConformanceCase, StepSpec
from wallaroo_conformance.observing import Call, Observation
from wallaroo_conformance.operators import (
    MULTI_COMPUTATIONS,
    STATE_MULTI_COMPUTATIONS,
    STATEFUL,
)

Facts = frozenset[str]

ALTERS_IN_SECRET = frozenset({"note_in_secret", "lazy_secret"})
"""State computations that alter the state and say ``changed=False``."""

ALIASES = frozenset(
    {"give_notes", "give_state", "keep_message", "exchange", "same_notes", "mark_kept"}
)
"""State computations whose output or state holds what another holds too."""

RAISES_LATE = frozenset({"count_then_refuse", "lazy_stumble"})
"""State computations that raise when the state is altered already."""

_EXTREME = 1 << 63


def facts_of(observation: Observation) -> Facts:
    """Return the facts of a case."""
    case, trace = observation.case, observation.trace
    facts: set[str] = set()
    _configuration_facts(case, facts)
    for call in observation.calls:
        _CALL_FACTS[call.role](case, call, facts)
    _routing_facts(observation, facts)
    _letter_facts(observation, facts)
    if trace.ended is not None:
        facts.add(f"ended by {trace.ended.kind}")
    if trace.entities:
        facts.add("entities")
    if any(entity.number for entity in trace.entities):
        facts.add("partition other than 0")
    for outputs in trace.outputs.values():
        if outputs:
            facts.add("output")
        if len(outputs) > 1:
            facts.add("outputs")
    if len({pipeline for (pipeline, _), given in trace.outputs.items() if given}) > 1:
        facts.add("outputs of several pipelines")
    return frozenset(facts)


def _configuration_facts(case: ConformanceCase, facts: set[str]) -> None:
    if not case.inputs:
        facts.add("no input")
    if len(case.inputs) > 1:
        facts.add("several messages")
        if case.batches is not None and case.batches[0] < len(case.inputs):
            facts.add("cut into batches")
    if any(not entry.payload for entry in case.inputs):
        facts.add("zero-length frame")
    if case.number is not None and case.number > 1:
        facts.add("several partitions")
    if len({entry.pipeline for entry in case.inputs}) > 1:
        facts.add("several sources")


def _decode(case: ConformanceCase, call: Call, facts: set[str]) -> None:
    facts.add({"none": "decoder filters", "raised": "decoder raises"}.get(call.kind, "decoded"))
    if call.kind in ("falsy", "empty"):
        facts.add("decoder gives falsy")


def _compute(case: ConformanceCase, call: Call, facts: set[str]) -> None:
    step = _step(case, call)
    name = step.operator
    if call.kind == "raised":
        facts.add("computation raises")
    if name in STATEFUL:
        _compute_with_state(name, call, facts)
    elif name in MULTI_COMPUTATIONS:
        facts.add({"none": "multi gives none", "empty": "multi gives none"}.get(call.kind, "multi"))
        if "gaps" in call.kind:
            facts.add("multi leaves gaps")
        if name in ("twice", "one_buffer"):
            facts.add("multi gives one object twice")
        if "falsy" in call.kind or name == "falsy_items":
            facts.add("multi gives falsy")
        if name in ("one_buffer", "stumble", "characters"):
            facts.add("multi is lazy")
        if step.parallel:
            facts.add("parallel")
    else:
        facts.add(f"computation: {call.kind}")
        if step.parallel:
            facts.add("parallel")
        if name in ("mark", "clear", "mark_then_refuse") and call.mutable:
            facts.add("computation alters message")


def _compute_with_state(name: str, call: Call, facts: set[str]) -> None:
    output, _, changed = call.kind.partition(", ")
    if not changed and call.kind != "raised":
        facts.add("bad pair")
    if changed == "True":
        facts.add("state changed")
    if changed == "False":
        facts.add("state unchanged")
        if name in ALTERS_IN_SECRET:
            facts.add("state altered in secret")
    if changed and output == "none":
        facts.add("state computation sends nothing")
        if changed == "True":
            facts.add("state changed, nothing sent")
    if name in STATE_MULTI_COMPUTATIONS and changed:
        facts.add("multi with state")
        if output in ("none", "empty"):
            facts.add("multi gives none")
        if "gaps" in output:
            facts.add("multi leaves gaps")
        if "falsy" in output and "value" not in output and output != "falsy":
            facts.add("multi gives falsy")
        if output in ("value", "falsy") and name in ("wrong_items", "wrong_items_then_count"):
            facts.add("bad items")
        if name == "notes_themselves":
            facts.add("multi gives a list of its state")
        if name in ("lazy", "lazy_secret", "lazy_stumble"):
            facts.add("multi is lazy")
    if name not in STATE_MULTI_COMPUTATIONS and changed and output in ("falsy", "empty"):
        facts.add("state computation sends falsy")
    if name in ALIASES and changed:
        facts.add("state shares an object with a message")
    if call.kind == "raised":
        facts.add("state computation raises")


def _build(case: ConformanceCase, call: Call, facts: set[str]) -> None:
    facts.add("builder raises" if call.kind == "raised" else "entity built")
    if case.partitions[PARTITIONS.index(call.place)].builder == "Shared":
        facts.add("builder hands out one object")


def _route(case: ConformanceCase, call: Call, facts: set[str]) -> None:
    if call.kind == "raised":
        facts.add("partition function raises")
    elif call.mutable and _step(case, call).route == "taking":
        facts.add("partition function alters message")


def _encode(case: ConformanceCase, call: Call, facts: set[str]) -> None:
    facts.add(
        {"none": "encoder filters", "raised": "encoder raises", "falsy": "encoder gives falsy"}.get(
            call.kind, "encoded"
        )
    )
    sinks = case.pipelines[PIPELINES.index(call.place)].sinks
    if len(sinks) > 1:
        facts.add("several sinks")
        if call.mutable and sinks[call.position] == "stamping":
            facts.add("encoder alters message of several sinks")


_CALL_FACTS = {
    "decode": _decode,
    "compute": _compute,
    "build": _build,
    "route": _route,
    "encode": _encode,
}


def _step(case: ConformanceCase, call: Call) -> StepSpec:
    return case.pipelines[PIPELINES.index(call.place)].steps[call.position]


def _routing_facts(observation: Observation, facts: set[str]) -> None:
    """Who met which entity: from the keys found, and the visits of single entities."""
    case = observation.case
    met: Counter[tuple[int, bytes]] = Counter()
    visitors: dict[int, set[str]] = {}
    keys: dict[int, list[Any]] = {}
    visits: dict[tuple[int, bytes], list[tuple[str, int]]] = {}  # of one frame
    for call in observation.calls:
        if call.role == "decode":
            visits.clear()
        if call.role not in ("route", "compute"):
            continue
        step = _step(case, call)
        if step.operator not in STATEFUL:
            continue
        partition = case.partition_of(step)
        spec = case.partitions[partition]
        visitors.setdefault(partition, set()).add(call.place)
        if call.kind == "raised":
            continue
        if call.role == "compute":
            if spec.shape == "single":
                met[partition, b""] += 1
                _visit(visits, (partition, b""), call, facts)
            continue
        try:
            encoded = encode_key(call.key)
        except BadKeyError:
            continue
        met[partition, encoded] += 1
        _visit(visits, (partition, encoded), call, facts)
        keys.setdefault(partition, []).append(call.key)
        if spec.shape == "u64":
            facts.add("64-bit key")
            if type(call.key) is int and call.key >= _EXTREME:
                facts.add("extreme 64-bit key")
        if spec.keys is not None:
            facts.add("listed key")
        if _unusual(call.key):
            facts.add("unusual key")
    if any(count > 1 for count in met.values()):
        facts.add("entity met again")
        if any(
            count > 1 and case.partitions[partition].shape == "single"
            for (partition, _), count in met.items()
        ):
            facts.add("single entity met again")
    if any(len(pipelines) > 1 for pipelines in visitors.values()):
        facts.add("partition shared by pipelines")
    declared = {case.partition_of(step) for _, _, step in case.steps() if step.operator in STATEFUL}
    if visitors and len(declared) > 1:
        facts.add("several state partitions")
        if len({encoded for _, encoded in met}) < len(met):
            facts.add("equal keys in several partitions")
    for found in keys.values():
        distinct = {encode_key(key): key for key in found}
        if len(distinct) > 1:
            facts.add("several keys")
            if len({_looks(key) for key in distinct.values()}) < len(distinct):
                facts.add("keys look alike")


def _visit(
    visits: dict[tuple[int, bytes], list[tuple[str, int]]],
    entity: tuple[int, bytes],
    call: Call,
    facts: set[str],
) -> None:
    """Note whether items of one frame meet an entity at several steps."""
    met = visits.setdefault(entity, [])
    met.append((call.place, call.position))
    if len(met) > 2 and len(set(met)) > 1:
        facts.add("several items met an entity twice")


def _letter_facts(observation: Observation, facts: set[str]) -> None:
    case = observation.case
    stateless: set[int] = set()  # frames with a letter that nothing but themselves can have caused
    for letter in observation.trace.dead_letters:
        facts.add("dead letter")
        facts.add(f"dead letter: {letter.reason.value}")
        with_state = False
        if letter.step is not None:
            step = case.pipelines[PIPELINES.index(letter.pipeline)].steps[letter.position]
            with_state = step.operator in STATEFUL
            if letter.reason is Reason.BAD_KEY and with_state:
                spec = case.partitions[case.partition_of(step)]
                facts.add("bad 64-bit key" if spec.shape == "u64" else "bad key")
            if letter.reason is Reason.RAISED and step.operator in RAISES_LATE:
                facts.add("state altered, then raised")
            if letter.reason is Reason.RAISED and step.operator in ("stumble", "lazy_stumble"):
                facts.add("multi raises while it is consumed")
        if letter.reason is Reason.BAD_RESULT and not with_state:
            facts.add("bad items")
        if not with_state or letter.reason in (Reason.BAD_KEY, Reason.UNKNOWN_KEY):
            stateless.add(letter.lineage[0])
        if letter.reason is Reason.UNPORTABLE and with_state:
            facts.add("state computation gives what cannot be pickled")
    if len(stateless) > 1:
        facts.add("dead letters of several frames, no state involved")
    if "dead letter" in facts and any(observation.trace.outputs.values()):
        facts.add("dead letter beside outputs")


def _looks(key: Any) -> str:
    """Return what `key` looks like to code that is not careful."""
    if isinstance(key, tuple):
        return _looks(key[0]) if len(key) == 1 else "".join(_looks(item) for item in key)
    if isinstance(key, bytes):
        key = key.decode("latin-1")
    folded = unicodedata.normalize("NFKC", str(key)).casefold()
    return folded.encode("ascii", "ignore").decode().strip("\0")


def _unusual(key: Any) -> bool:
    return not isinstance(key, (str, int)) or (
        isinstance(key, str) and (not key or not key.isascii() or not key.isprintable())
    )
