"""Which laws a case exercises: what it is and what came of it on the reference says so."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from wallaroo_conformance.judge.observing import Conditions, Observer, holding, step_specs

_LONGEST_DECIMAL = 1_000  # bits
_USUAL_ERRORS = ("ValueError", "LookupError", "OSError")  # no engine raises or catches them itself
_LAW_OF: Mapping[Reason, str] = {
    Reason.DECODE: "dead-1/decode",
    Reason.RAISED: "dead-1/raised",
    Reason.UNPORTABLE: "dead-1/unportable",
    Reason.UNKNOWN_KEY: "route-3/unknown",
    Reason.BAD_TIME: "time-2/bad",
    Reason.LATE: "window-6/letter",
    Reason.ENCODE: "sink-1/bad",
}
"""The laws about dead letters of a reason; of the other reasons there are several: `_letter`."""


def laws_exercised(
    case: ConformanceCase, application: Application, trace: Trace, observer: Observer
) -> frozenset[str]:
    """Return the ids of the laws that a case exercises.

    Args:
        case: the case.
        application: its application.
        trace: what it does on the reference.
        observer: has seen the calls of user code.
    """
    log = input_log_of(case)
    laws = observer.laws | holding(_run(case, log)) | holding(_trace(trace))
    if case.with_topics:
        laws |= holding(_topics(case, log)) | holding(_sent(case, trace))
    for conditions in (*_graph(application), *_windows(application)):
        laws |= holding(conditions)
    laws |= holding(_entities(case, trace, observer))
    nodes = [(application.nodes[at], spec) for at, spec in step_specs(case, application).items()]
    steps: dict[tuple[str, int, str | None], StepSpec] = {
        (node.pipeline, node.position, node.name): spec
        for node, spec in nodes
        if isinstance(node, Step)
    }
    for letter in trace.dead_letters:
        timestamped = "kafka-8/timestamp" in laws
        step = steps.get((letter.pipeline, letter.position, letter.step))
        laws |= holding(_letter(case, letter, step, timestamped))
    return frozenset(laws | holding(_together(case, application, log, trace, observer)))


def _run(case: ConformanceCase, log: Sequence[Record]) -> Conditions:
    kinds = set(map(type, log))
    return {
        "state-1/waits": True,
        "order-2/exact": True,
        "order-2/batches": case.batches is not None and case.batches[0] < len(log),
        "frame-2/zero": any(isinstance(record, Frame) and not record.payload for record in log),
        "key-5/codec": case.codec,
        "graph-1/topology": case.form == "pipelines",
        "graph-4/values": Value in kinds,
        "time-1/tick": Tick in kinds,
        "time-1/clock": any(one.at > other.at for one, other in pairwise(log)),
        "graph-4/failed": any(
            isinstance(record, End) and record.error_type and not record.ends_run for record in log
        ),
    }


def _together(
    case: ConformanceCase,
    application: Application,
    log: Sequence[Record],
    trace: Trace,
    observer: Observer,
) -> Conditions:
    """What is special only together with something else."""
    letters, fired = trace.dead_letters, "window-3/once" in observer.laws
    ways = [source for index in application.window_steps for source in application.ways[index]]
    several = sum([isinstance(record, Frame) for record in log]) > 1
    return {
        "state-6/builder": observer.one_object and _several_keys(observer),
        "dead-2/others": letters and (several or any(len(one.lineage) > 1 for one in letters)),
        "key-5/refused": case.asks_codec
        and any(letter.reason is Reason.UNPORTABLE for letter in letters),
        "time-3/arrival": fired
        and any(application.sources[source].config.event_time is None for source in ways),
        "time-5/ended": fired and any(isinstance(record, End) for record in log),
        "window-9/payload": fired and letters,
    }


def _topics(case: ConformanceCase, log: Sequence[Record]) -> Conditions:
    """What was read from Kafka."""
    read = [record.record for record in log if isinstance(record, Consumed)]
    assigned = Counter([record.source for record in log if isinstance(record, Assigned)])
    of_records = any(DECODERS.has(one.decoder, Trait.OF_TOPIC) for one in case.sources)
    return {
        "kafka-1/read": read,
        "kafka-1/numbers": read and any(isinstance(record, Unused) for record in log),
        "kafka-7/tombstone": any(record.value is None for record in read),
        "kafka-7/record": read and of_records,
        "kafka-6/added": any(number > 1 for number in assigned.values()),
        "kafka-10/ended": any(
            isinstance(record, End) and record.partition is not None for record in log
        ),
    }


def _sent(case: ConformanceCase, trace: Trace) -> Conditions:
    """What was sent to Kafka."""
    several = {sink.topic > 1 for sink in case.sinks if sink.topic} == {True}
    sent = [
        [output for output in outputs if isinstance(output, Produced)]
        for outputs in trace.outputs.values()
    ]
    keyed = {output.key is not None for outputs in sent for output in outputs}
    return {
        "kafka-13/output": any(sent),
        "kafka-14/order": any(
            len(outputs) > len({output.partition for output in outputs}) for outputs in sent
        ),
        "kafka-13/key": several and True in keyed,
        "kafka-13/number": several and False in keyed,
    }


def _trace(trace: Trace) -> Conditions:
    written = [output for outputs in trace.outputs.values() for output in outputs]
    late = {what for _, what in trace.late}
    return {
        "dead-3/exit": trace.ended is not None and trace.ended.kind == "exit",
        "dead-4/stop": trace.ended is not None and trace.ended.kind == "on-error",
        "route-4/number": trace.entities,
        "order-2/partitions": any(entity.number for entity in trace.entities),
        "sink-1/utf-8": any(
            isinstance(output, bytes) and not output.isascii() for output in written
        ),
        "sink-1/refused": written,
        "order-1/outputs": any(len(outputs) > 1 for outputs in trace.outputs.values()),
        "window-3/early": trace.windows,
        "window-11/open": trace.windows,
        "window-6/dropped": "dropped" in late,
        "window-6/partly": "partly" in late,
    }


def _graph(application: Application) -> Iterator[Conditions]:
    ways = application.ways
    for index, node in enumerate(application.nodes):
        consumers = application.consumers[index]
        operation = node.operation if isinstance(node, Step) else None
        sides = node.inputs if isinstance(node, Step) and isinstance(operation, Merge) else ()
        yield {
            "graph-2/branches": len(consumers) > 1 or isinstance(operation, Branch),
            "graph-1/done": not consumers and not isinstance(node, Sink),
            "key-2/collect": isinstance(operation, Collect),
            "graph-3/merge": sides,
            "graph-3/twice": sides and ways[sides[0]].keys() & ways[sides[1]].keys(),
        }


def _windows(application: Application) -> Iterator[Conditions]:
    windowed = set(application.window_steps)
    for index in windowed:
        ways = application.ways[index]
        configs = [application.sources[name].config for name in ways]
        timed = [config for config in configs if config.event_time is not None]
        yield {
            "time-3/idle": any(config.idle_after is not None for config in timed),
            "kafka-9/least": any(isinstance(config, KafkaSourceConfig) for config in timed),
            "time-3/least": len(ways) > 1,
            "time-4/later": _nodes_before(application, index) & windowed,
            "window-4/chained": _nodes_before(application, index) & windowed,
            "time-3/delays": any(ways.values()),
        }


def _entities(case: ConformanceCase, trace: Trace, observer: Observer) -> Conditions:
    """Which messages met which entity."""
    again = [place for (place, _), number in observer.met.items() if number > 1]
    left = Counter([entity.partition for entity in trace.entities])
    return {
        "route-1/again": again,
        "order-1/entity": again,
        "route-6/single": any(case.partitions[place].shape == "single" for place in again),
        "state-8/shared": any(len(pipelines) > 1 for pipelines in observer.visitors.values()),
        "state-9/apart": (
            observer.visitors and len({step.partition for step in case.stateful()}) > 1
        ),
        "route-1/apart": _several_keys(observer),
        "route-2/alike": any(
            len(set(map(_appearance, keys.values()))) < len(keys) for keys in observer.keys.values()
        ),
        "key-4/expired": any(
            partition.expire_after is not None and observer.built[name] > left[name]
            for name, partition in zip(PARTITIONS, case.partitions, strict=False)
        ),
    }


def _letter(
    case: ConformanceCase, letter: DeadLetter, step: StepSpec | None, timestamped: bool
) -> Conditions:
    reason, operator = letter.reason, step.operator if step is not None else ""
    state = case.partitions[step.partition] if step is not None and operator in STATEFUL else None
    u64 = state is not None and state.shape == "u64"
    raised, bad_key = reason is Reason.RAISED, reason is Reason.BAD_KEY
    traits = STEPS.traits.get(operator, ()) if raised else ()
    return {
        "order-1/lineage": True,
        "dead-1/fields": True,
        _LAW_OF.get(reason, "order-1/lineage"): True,
        "kafka-13/bad": reason is Reason.ENCODE and case.with_topics,
        "kafka-8/none": reason is Reason.BAD_TIME and timestamped,
        "dead-3/raised": raised and letter.error_type not in _USUAL_ERRORS,
        "compute-2/bad": reason is Reason.BAD_RESULT and state is None,
        "route-2/bad": bad_key and not u64,
        "route-5/range": bad_key and u64,
        "key-1/failed": bad_key and case.form == "pipelines",
        "state-7/late": Trait.RAISES_LATE in traits,
        "compute-2/raises": Trait.RAISES_CONSUMED in traits,
    }


def _several_keys(observer: Observer) -> bool:
    return any(len(keys) > 1 for place, keys in observer.keys.items() if place >= 0)


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
