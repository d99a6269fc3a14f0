"""Finds which facts a case has met when it ran on the reference."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from wallaroo.kafka import KafkaSourceConfig
from wallaroo.kafka_records import Produced
from wallaroo.operations import Branch, Collect, Merge
from wallaroo.records import Assigned, Consumed, End, Frame, Record, Tick, Unused, Value
from wallaroo.topology import Application, Sink, Step
from wallaroo.trace import DeadLetter, Reason, Trace
from wallaroo_conformance.cases.case import PARTITIONS, ConformanceCase, StepSpec
from wallaroo_conformance.cases.operators import (
    DECODERS,
    STATEFUL,
    STEPS,
    Trait,
)
from wallaroo_conformance.cases.records import input_log_of
from wallaroo_conformance.judge.fact import Fact, Facts
from wallaroo_conformance.judge.observing import Observer, step_specs

_LONGEST_DECIMAL = 1_000  # bits
_USUAL_ERRORS = ("ValueError", "LookupError", "OSError")  # no engine raises or catches them itself
_ENDS = {"exit": Fact.EXITED, "on-error": Fact.STOPPED}
_LETTERS = {
    Reason.DECODE: Fact.DECODE_LETTER,
    Reason.RAISED: Fact.RAISED_LETTER,
    Reason.UNKNOWN_KEY: Fact.UNKNOWN_KEY_LETTER,
    Reason.ENCODE: Fact.ENCODE_LETTER,
    Reason.UNPORTABLE: Fact.UNPORTABLE_LETTER,
    Reason.LATE: Fact.LATE_LETTER,
    Reason.BAD_TIME: Fact.BAD_TIME_LETTER,
}


def facts_of(
    case: ConformanceCase, application: Application, trace: Trace, observer: Observer
) -> Facts:
    """Return the facts of a case.

    Args:
        case: the case.
        application: its application.
        trace: what it does on the reference.
        observer: has seen the calls of user code.
    """
    facts = observer.facts
    log = input_log_of(case)
    _run_facts(case, log, facts)
    if case.with_topics:
        _topic_facts(case, log, trace, facts)
    _trace_facts(case, trace, facts)
    _graph_facts(application, facts)
    _entity_facts(case, trace, observer, facts)
    specs = step_specs(case, application)
    steps: dict[str | None, StepSpec] = {
        node.name: specs[index]
        for index, node in enumerate(application.nodes)
        if index in specs and isinstance(node, Step)
    }
    for letter in trace.dead_letters:
        _letter_facts(case, letter, steps, facts)
        if len(letter.lineage) > 1:
            facts.add(Fact.SEVERAL_MESSAGES)
    return frozenset(facts)


def _run_facts(case: ConformanceCase, log: Sequence[Record], facts: set[Fact]) -> None:
    frames = [record for record in log if isinstance(record, Frame)]
    if len(frames) > 1:
        facts.add(Fact.SEVERAL_MESSAGES)
    if case.batches is not None and case.batches[0] < len(log):
        facts.add(Fact.SEVERAL_BATCHES)
    if not all(frame.payload for frame in frames):
        facts.add(Fact.EMPTY_FRAME)
    if case.codec:
        facts.add(Fact.CODEC)
    if case.form == "pipelines":
        facts.add(Fact.PIPELINES)
    ends = [record for record in log if isinstance(record, End)]
    if any(isinstance(record, Value) for record in log):
        facts.add(Fact.GENERATED)
    if any(isinstance(record, Tick) for record in log):
        facts.add(Fact.TICKED)
    if any(one.at > other.at for one, other in pairwise(log)):
        facts.add(Fact.CLOCK_BACK)
    if ends:
        facts.add(Fact.SOURCE_ENDED)
    if any(end.error_type and not end.ends_run for end in ends):
        facts.add(Fact.GENERATOR_FAILED)


def _topic_facts(
    case: ConformanceCase, log: Sequence[Record], trace: Trace, facts: set[Fact]
) -> None:
    """Note what was read from Kafka and sent to it."""
    read = [record.record for record in log if isinstance(record, Consumed)]
    if read:
        facts.add(Fact.CONSUMED)
    if read and any(isinstance(record, Unused) for record in log):
        facts.add(Fact.HOLE)
    if any(record.value is None for record in read):
        facts.add(Fact.TOMBSTONE)
    if read and any(DECODERS.has(one.decoder, Trait.OF_TOPIC) for one in case.sources):
        facts.add(Fact.RECORD_DECODED)
    assigned = Counter([record.source for record in log if isinstance(record, Assigned)])
    if any(number > 1 for number in assigned.values()):
        facts.add(Fact.PARTITION_ADDED)
    if any(isinstance(record, End) and record.partition is not None for record in log):
        facts.add(Fact.PARTITION_ENDED)
    several = {sink.topic > 1 for sink in case.sinks if sink.topic}
    for outputs in trace.outputs.values():
        sent = [output for output in outputs if isinstance(output, Produced)]
        if sent:
            facts.add(Fact.SENT)
        if len(sent) > len({output.partition for output in sent}):
            facts.add(Fact.SENT_IN_ORDER)
        if several == {True}:
            keyed = {output.key is not None for output in sent}
            facts |= {Fact.SENT_BY_KEY if one else Fact.SENT_WITHOUT_KEY for one in keyed}


def _trace_facts(case: ConformanceCase, trace: Trace, facts: set[Fact]) -> None:
    if trace.ended is not None:
        facts.add(_ENDS[trace.ended.kind])
    if trace.entities:
        facts.add(Fact.ENTITIES)
    if any(entity.number for entity in trace.entities):
        facts.add(Fact.OTHER_PARTITION)
    written = [output for outputs in trace.outputs.values() for output in outputs]
    if any(isinstance(output, bytes) and not output.isascii() for output in written):
        facts.add(Fact.OUTPUT_BEYOND_ASCII)
    if any(trace.outputs.values()):
        facts.add(Fact.OUTPUT)
    if any(len(outputs) > 1 for outputs in trace.outputs.values()):
        facts.add(Fact.OUTPUTS)
    if trace.windows:
        facts.add(Fact.WINDOWS_OPEN)
    for _, what in trace.late:
        facts.add(Fact.LATE_DROPPED if what == "dropped" else Fact.LATE_PARTLY)


def _graph_facts(application: Application, facts: set[Fact]) -> None:
    sources = [set(ways) for ways in application.ways]
    windowed = set(application.window_steps)
    for index, node in enumerate(application.nodes):
        if len(application.consumers[index]) > 1:
            facts.add(Fact.BRANCHED)
        ends = not application.consumers[index] and not isinstance(node, Sink)
        if ends:
            facts.add(Fact.DONE)
        if not isinstance(node, Step):
            continue
        if isinstance(node.operation, Branch):
            facts.add(Fact.BRANCHED)
        if isinstance(node.operation, Merge):
            facts.add(Fact.MERGED)
            if sources[node.inputs[0]] & sources[node.inputs[1]]:
                facts.add(Fact.MERGED_WITH_ITSELF)
        if isinstance(node.operation, Collect):
            facts.add(Fact.COLLECTED)
        if index in windowed:
            for name in sources[index]:
                config = application.sources[name].config
                if config.idle_after is not None and config.event_time is not None:
                    facts.add(Fact.IDLE)
                if config.event_time is None:
                    facts.add(Fact.ARRIVAL_TIME)
                elif isinstance(config, KafkaSourceConfig):
                    facts.add(Fact.PARTITIONS_READ)
            if len(sources[index]) > 1:
                facts.add(Fact.SEVERAL_WAYS)
            if _nodes_before(application, index) & windowed:
                facts.add(Fact.CHAINED)
            if any(application.ways[index].values()):
                facts.add(Fact.DELAYED_WAY)


def _entity_facts(
    case: ConformanceCase, trace: Trace, observer: Observer, facts: set[Fact]
) -> None:
    """Note which messages met which entity."""
    again = [place for (place, _), frames in observer.met.items() if len(frames) > 1]
    if again:
        facts.add(Fact.MET_AGAIN)
    if any(case.partitions[place].shape == "single" for place in again):
        facts.add(Fact.SINGLE_MET_AGAIN)
    if any(len(pipelines) > 1 for pipelines in observer.visitors.values()):
        facts.add(Fact.PARTITION_SHARED)
    if observer.visitors and len({step.partition for step in case.stateful()}) > 1:
        facts.add(Fact.SEVERAL_STATE_PARTITIONS)
    if any(len(keys) > 1 for place, keys in observer.keys.items() if place >= 0):
        facts.add(Fact.SEVERAL_KEYS)
    for keys in observer.keys.values():
        if len({_appearance(key) for key in keys.values()}) < len(keys):
            facts.add(Fact.KEYS_ALIKE)
    left = Counter([entity.partition for entity in trace.entities])
    for name, partition in zip(PARTITIONS, case.partitions, strict=False):
        if partition.expire_after is not None and observer.built[name] > left[name]:
            facts.add(Fact.EXPIRED)


def _letter_facts(
    case: ConformanceCase,
    letter: DeadLetter,
    steps: Mapping[str | None, StepSpec],
    facts: set[Fact],
) -> None:
    facts.add(Fact.LETTER)
    if letter.reason is Reason.ENCODE and case.with_topics:
        facts.add(Fact.SEND_LETTER)
    if letter.reason is Reason.BAD_TIME and Fact.RECORD_TIME in facts:
        facts.add(Fact.RECORD_WITHOUT_TIME)
    if letter.reason in _LETTERS:
        facts.add(_LETTERS[letter.reason])
    if letter.reason is Reason.RAISED and letter.error_type not in _USUAL_ERRORS:
        facts.add(Fact.UNUSUAL_ERROR)
    step = _step(case, letter, steps)
    with_state = step is not None and step.operator in STATEFUL
    if letter.reason is Reason.BAD_RESULT and not with_state:
        facts.add(Fact.BAD_ITEMS)
    if letter.reason is Reason.BAD_KEY:
        u64 = with_state and case.partitions[step.partition].shape == "u64"  # type: ignore[union-attr]
        facts.add(Fact.BAD_U64_KEY if u64 else Fact.BAD_KEY)
        if case.form == "pipelines":
            facts.add(Fact.KEY_EXTRACTOR_LETTER)
    if letter.reason is Reason.RAISED and step is not None and step.operator in STEPS:
        if STEPS.has(step.operator, Trait.RAISES_LATE):
            facts.add(Fact.STATE_ALTERED_THEN_RAISED)
        if STEPS.has(step.operator, Trait.RAISES_CONSUMED):
            facts.add(Fact.MULTI_RAISES_CONSUMED)


def _step(
    case: ConformanceCase, letter: DeadLetter, steps: Mapping[str | None, StepSpec]
) -> StepSpec | None:
    if case.form == "builder" and letter.step is not None:
        return case.step_at(letter.pipeline, letter.position)
    return steps.get(letter.step)


def _appearance(key: Any) -> str:
    """Return a text that is equal for keys that careless code may mix up."""
    if isinstance(key, tuple):
        return _appearance(key[0]) if len(key) == 1 else "".join(map(_appearance, key))
    if isinstance(key, bytes):
        key = key.decode("latin-1")
    if isinstance(key, int) and key.bit_length() > _LONGEST_DECIMAL:
        return hex(key)  # Python refuses to write very long ones as decimals
    folded = unicodedata.normalize("NFKC", str(key)).casefold()
    return folded.encode("ascii", "ignore").decode().strip("\0")


def _nodes_before(application: Application, index: int) -> set[int]:
    """Return the nodes that lead to a node."""
    found: set[int] = set()
    rest = [index]
    while rest:
        origins = set(getattr(application.nodes[rest.pop()], "inputs", ())) - found
        found |= origins
        rest += origins
    return found
