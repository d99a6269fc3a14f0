"""Finds which facts a case has met when it ran on the reference."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
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
from wallaroo_conformance.judge.law import Facts
from wallaroo_conformance.judge.observing import FactTable, Observer, met, step_specs

_LONGEST_DECIMAL = 1_000  # bits
_USUAL_ERRORS = ("ValueError", "LookupError", "OSError")  # no engine raises or catches them itself
_OF_KINDS = (Reason.BAD_KEY, Reason.BAD_RESULT)  # facts say more of these: see `_letter_facts`


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
    log = input_log_of(case)
    facts = observer.facts | met(_run_facts(case, log)) | met(_trace_facts(trace))
    if case.with_topics:
        facts |= met(_topic_facts(case, log)) | met(_sent_facts(case, trace))
    for table in (*_graph_facts(application), *_window_facts(application)):
        facts |= met(table)
    facts |= met(_entity_facts(case, trace, observer))
    nodes = [(application.nodes[at], spec) for at, spec in step_specs(case, application).items()]
    steps: dict[tuple[str, int, str | None], StepSpec] = {
        (node.pipeline, node.position, node.name): spec
        for node, spec in nodes
        if isinstance(node, Step)
    }
    for letter in trace.dead_letters:
        timestamped = "a record's timestamp is its event time" in facts
        step = steps.get((letter.pipeline, letter.position, letter.step))
        facts |= met(_letter_facts(case, letter, step, timestamped))
        if letter.reason not in _OF_KINDS:
            facts.add(f"dead letter: {letter.reason.value}")
    return frozenset(facts)


def _run_facts(case: ConformanceCase, log: Sequence[Record]) -> FactTable:
    frames = [record for record in log if isinstance(record, Frame)]
    ends = [record for record in log if isinstance(record, End)]
    kinds = set(map(type, log))
    return {
        "several messages": len(frames) > 1,
        "several batches": case.batches is not None and case.batches[0] < len(log),
        "zero-length frame": not all(frame.payload for frame in frames),
        "codec of its own": case.codec,
        "built from pipelines": case.form == "pipelines",
        "value of a generator": Value in kinds,
        "tick": Tick in kinds,
        "the clock goes back": any(one.at > other.at for one, other in pairwise(log)),
        "a source ended": End in kinds,
        "generator failed": any(end.error_type and not end.ends_run for end in ends),
    }


def _topic_facts(case: ConformanceCase, log: Sequence[Record]) -> FactTable:
    """What was read from Kafka."""
    read = [record.record for record in log if isinstance(record, Consumed)]
    assigned = Counter([record.source for record in log if isinstance(record, Assigned)])
    of_records = any(DECODERS.has(one.decoder, Trait.OF_TOPIC) for one in case.sources)
    return {
        "records of a topic": read,
        "numbers that are not used": read and any(isinstance(record, Unused) for record in log),
        "a record without a value": any(record.value is None for record in read),
        "a decoder got a whole record": read and of_records,
        "a partition was added": any(number > 1 for number in assigned.values()),
        "a partition ended before its source": any(
            isinstance(record, End) and record.partition is not None for record in log
        ),
    }


def _sent_facts(case: ConformanceCase, trace: Trace) -> FactTable:
    """What was sent to Kafka."""
    several = {sink.topic > 1 for sink in case.sinks if sink.topic} == {True}
    sent = [
        [output for output in outputs if isinstance(output, Produced)]
        for outputs in trace.outputs.values()
    ]
    keyed = {output.key is not None for outputs in sent for output in outputs}
    return {
        "an output to a topic": any(sent),
        "several outputs to one partition": any(
            len(outputs) > len({output.partition for output in outputs}) for outputs in sent
        ),
        "an output to one of several partitions, with a key": several and True in keyed,
        "an output to one of several partitions, without a key": several and False in keyed,
    }


def _trace_facts(trace: Trace) -> FactTable:
    written = [output for outputs in trace.outputs.values() for output in outputs]
    late = {what for _, what in trace.late}
    return {
        "ended by exit": trace.ended is not None and trace.ended.kind == "exit",
        "ended by on-error": trace.ended is not None and trace.ended.kind == "on-error",
        "entities": trace.entities,
        "partition other than 0": any(entity.number for entity in trace.entities),
        "output is not ASCII": any(
            isinstance(output, bytes) and not output.isascii() for output in written
        ),
        "an output": written,
        "outputs": any(len(outputs) > 1 for outputs in trace.outputs.values()),
        "open windows": trace.windows,
        "late and dropped": "dropped" in late,
        "partly late": "partly" in late,
    }


def _graph_facts(application: Application) -> Iterator[FactTable]:
    ways = application.ways
    for index, node in enumerate(application.nodes):
        consumers = application.consumers[index]
        operation = node.operation if isinstance(node, Step) else None
        sides = node.inputs if isinstance(node, Step) and isinstance(operation, Merge) else ()
        yield {
            "branches": len(consumers) > 1 or isinstance(operation, Branch),
            "pipelines without a sink": not consumers and not isinstance(node, Sink),
            "key taken by collect": isinstance(operation, Collect),
            "merge": sides,
            "both sides of a merge have a source in common": sides
            and ways[sides[0]].keys() & ways[sides[1]].keys(),
        }


def _window_facts(application: Application) -> Iterator[FactTable]:
    windowed = set(application.window_steps)
    for index in windowed:
        ways = application.ways[index]
        configs = [application.sources[name].config for name in ways]
        timed = [config for config in configs if config.event_time is not None]
        yield {
            "windows behind a source that may be idle": any(
                config.idle_after is not None for config in timed
            ),
            "windows by arrival time": len(timed) < len(configs),
            "windows behind a topic with several partitions": any(
                isinstance(config, KafkaSourceConfig) for config in timed
            ),
            "windows behind several sources": len(ways) > 1,
            "windows behind windows": _nodes_before(application, index) & windowed,
            "windows behind windows with a delay": any(ways.values()),
        }


def _entity_facts(case: ConformanceCase, trace: Trace, observer: Observer) -> FactTable:
    """Which messages met which entity."""
    again = [place for (place, _), number in observer.met.items() if number > 1]
    left = Counter([entity.partition for entity in trace.entities])
    return {
        "entity met again": again,
        "single entity met again": any(case.partitions[place].shape == "single" for place in again),
        "partition shared by pipelines": any(
            len(pipelines) > 1 for pipelines in observer.visitors.values()
        ),
        "several state partitions": (
            observer.visitors and len({step.partition for step in case.stateful()}) > 1
        ),
        "several keys": any(len(keys) > 1 for place, keys in observer.keys.items() if place >= 0),
        "keys look alike": any(
            len(set(map(_appearance, keys.values()))) < len(keys) for keys in observer.keys.values()
        ),
        "an entity expired": any(
            partition.expire_after is not None and observer.built[name] > left[name]
            for name, partition in zip(PARTITIONS, case.partitions, strict=False)
        ),
    }


def _letter_facts(
    case: ConformanceCase, letter: DeadLetter, step: StepSpec | None, timestamped: bool
) -> FactTable:
    reason, operator = letter.reason, step.operator if step is not None else ""
    state = case.partitions[step.partition] if step is not None and operator in STATEFUL else None
    u64 = state is not None and state.shape == "u64"
    raised, bad_key = reason is Reason.RAISED, reason is Reason.BAD_KEY
    traits = STEPS.traits.get(operator, ()) if raised else ()
    return {
        "dead letter": True,
        "several messages": len(letter.lineage) > 1,
        "dead letter of a topic's encoder": reason is Reason.ENCODE and case.with_topics,
        "a record has no timestamp, which is its event time": reason is Reason.BAD_TIME
        and timestamped,
        "an exception of an unusual class is a dead letter": raised
        and letter.error_type not in _USUAL_ERRORS,
        "bad items": reason is Reason.BAD_RESULT and state is None,
        "bad key": bad_key and not u64,
        "bad 64-bit key": bad_key and u64,
        "dead letter of a key extractor": bad_key and case.form == "pipelines",
        "state altered, then raised": Trait.RAISES_LATE in traits,
        "multi raises while it is consumed": Trait.RAISES_CONSUMED in traits,
    }


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
