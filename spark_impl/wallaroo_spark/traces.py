"""From cases to a job, and from what reached the driver to traces."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from wallaroo.engine import Case
from wallaroo.keys import decode_key, encoded_partition_number
from wallaroo.topology import Application, Sink, SinkId
from wallaroo.trace import (
    DeadLetter,
    Ended,
    Entity,
    InputLog,
    Reason,
    Trace,
    sorted_entities,
)
from wallaroo_spark.columns import Outputs, outputs_in_order
from wallaroo_spark.faults import MOST_ATTEMPTS
from wallaroo_spark.job import CaseSpec, Frames, Report
from wallaroo_spark.outbox import NO_SINK, End, Finished, Letter, Order
from wallaroo_spark.plan import Plan
from wallaroo_spark.segments import SEGMENT_BYTES, Address
from wallaroo_spark.shipping import pickle_application
from wallaroo_spark.states import entity_of

SMALL = {"segment_bytes": 64}
"""`Case.options` under which a few entities fill several segments."""

OPTIONS = frozenset(SMALL)
"""`Case.options` this engine knows."""


def spec_of(case: Case) -> CaseSpec:
    """Return what workers need of a case.

    Raises:
        ShippingError: its application cannot be sent to workers.
        ValueError: an option is unknown, the number of partitions is less than 1, or a fault is
            more than Spark survives.
    """
    unknown = sorted(set(case.options) - OPTIONS)
    if unknown:
        raise ValueError(f"the Spark engine has no option {unknown[0]!r}; {sorted(OPTIONS)}")
    if case.partitions is not None and case.partitions < 1:
        raise ValueError(f"the number of partitions is 1 or more, not {case.partitions}")
    for fault in case.faults:
        if fault.attempts > MOST_ATTEMPTS:
            raise ValueError(f"{fault}: Spark ends a job when {MOST_ATTEMPTS + 1} attempts died")
    return CaseSpec(
        pickle_application(case.application),
        partitions=case.partitions or 1,
        isolated=case.isolation == "isolated",
        stop_on_error=case.on_error == "stop",
        segment_bytes=case.options.get("segment_bytes", SEGMENT_BYTES),
        faults=tuple(case.faults),
    )


def frames_of(number: int, input_log: InputLog, start: int, stop: int) -> Frames:
    """Return a stretch of a case's input log, as runs of frames of one source."""
    frames: Frames = []
    for sequence in range(start, stop):
        source, payload = input_log[sequence]
        if not frames or frames[-1][1] != source:
            frames.append((number, source, sequence, []))
        frames[-1][3].append(payload)
    return frames


def limited(spec: CaseSpec, limit: Order) -> CaseSpec:
    """Return a case that makes no call after `limit`."""
    return replace(spec, limit=limit)


def first_end(finished: Finished) -> End | None:
    """Return the call at which the run ended.

    Each shard stops at the first such call it meets, and only that. The first of them all is the
    one: whatever was called before it met entities and messages that no stop had touched.
    """
    return min(finished.ends, key=_order_of_end, default=None)


def merged(reports: Iterable[Report]) -> Report:
    """Return everything that was reported as one report."""
    whole = Report()
    for report in reports:
        whole.add(report)
    return whole


def trace_of(
    case: Case,
    plan: Plan,
    finished: Finished,
    entities: Sequence[tuple[Address, bytes, Any]],
) -> Trace:
    """Return the trace of a case whose calls after its end, if it has one, were not made."""
    end = first_end(finished)
    found = []
    for address, entity, state in entities:
        partition, encoded = entity_of(plan.components[address.component], entity)
        key = decode_key(encoded)
        number = encoded_partition_number(encoded, case.partitions or 1)
        found.append(Entity(partition, key, number, state))
    return Trace(
        outputs=outputs_of(case.application, finished),
        dead_letters=dead_letters_of(finished.letters, dict(enumerate(case.input_log))),
        entities=sorted_entities(found),
        ended=None if end is None else ended_of(end),
    )


def outputs_of(
    application: Application, finished: Finished, end: Order | None = None
) -> dict[SinkId, tuple[bytes, ...]]:
    """Return each sink's outputs in their order (order-1), those before `end` if it is given."""
    runs: dict[int, list[Outputs]] = {}
    for run in finished.outputs:
        runs.setdefault(run.node, []).append(run)
    outputs: dict[SinkId, tuple[bytes, ...]] = dict.fromkeys(application.sinks, ())
    for node, some in runs.items():
        sink = cast("Sink", application.nodes[node])
        ordered = outputs_in_order(some)
        if end is not None:
            position = sum([step.pipeline == sink.pipeline for step in application.steps])
            ordered = [output for output in ordered if (output[0], position, sink.index) < end]
        outputs[sink.id] = tuple([output for _, output in ordered])
    return outputs


def dead_letters_of(
    letters: Iterable[Letter], frames: Mapping[int, tuple[str, bytes]]
) -> tuple[DeadLetter, ...]:
    """Return the dead letters in their order, with the frames they came from."""
    return tuple(
        [
            DeadLetter(
                lineage=letter.lineage,
                source=frames[letter.lineage[0]][0],
                pipeline=letter.pipeline,
                step=letter.step,
                position=letter.position,
                sink=None if letter.sink == NO_SINK else letter.sink,
                key=None if letter.key is None else decode_key(letter.key),
                reason=Reason(letter.reason),
                error_type=letter.error_type,
                error=letter.error,
                payload=frames[letter.lineage[0]][1],
            )
            for letter in sorted(letters, key=_order_of_letter)
        ]
    )


def ended_of(end: End) -> Ended:
    """Return an end as traces have it."""
    kind = cast("Literal['on-error', 'exit']", end.kind)
    return Ended(kind, end.pipeline, end.step, end.order[0], end.error_type)


def _order_of_letter(letter: Letter) -> Order:
    return letter.order


def _order_of_end(end: End) -> Order:
    return end.order
