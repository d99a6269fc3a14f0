"""Turns cases into a job, and the reports that the driver received into traces."""

from __future__ import annotations

import logging
import pickle
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from wallaroo.engine import Case
from wallaroo.keys import decode_key, encoded_partition_number
from wallaroo.records import Frame, Record
from wallaroo.trace import Entity, Trace, sorted_entities
from wallaroo_spark.jvm.pickling import pickle_application
from wallaroo_spark.plans.reports import dead_letters_of, ended_of, first_end, outputs_of
from wallaroo_spark.wire.job import SEGMENT_BYTES, CaseSpec, Frames
from wallaroo_spark.wire.outbox import Finished, Order
from wallaroo_spark.wire.shards import Address
from wallaroo_spark.worker.faults import MOST_ATTEMPTS
from wallaroo_spark.worker.plan import Plan
from wallaroo_spark.worker.states import entity_of

SMALL = {"segment_bytes": 64}
"""`Case.options` under which a few entities fill several segments."""

OPTIONS = frozenset(SMALL)
"""`Case.options` this engine knows."""


def spec_of(case: Case) -> CaseSpec:
    """Return what workers need to know of a case.

    Raises:
        ShippingError: its application cannot be sent to workers.
        ValueError: an option is unknown, the number of partitions is less than 1, or a fault asks
            for more deaths of a task than Spark tolerates.
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
        log_level=logging.getLogger().getEffectiveLevel(),
    )


def frames_of(number: int, input_log: Sequence[Record], start: int, stop: int) -> Frames:
    """Return a part of a case's input log, as runs of frames of one source."""
    frames: Frames = []
    for sequence in range(start, stop):
        record = input_log[sequence]
        assert isinstance(record, Frame)  # others are refused with what they are for (build-2)
        source, payload = record.source, record.payload
        if not frames or frames[-1][1] != source:
            frames.append((number, source, sequence, []))
        frames[-1][3].append(payload)
    return frames


def _frames(case: Case) -> dict[int, tuple[str, bytes]]:
    return {
        sequence: (record.source, record.payload)
        for sequence, record in enumerate(case.records)
        if isinstance(record, Frame)
    }


def limited(spec: CaseSpec, limit: Order) -> CaseSpec:
    """Return the same case without the calls after `limit`."""
    return replace(spec, limit=limit)


def trace_of(
    case: Case,
    plan: Plan,
    finished: Finished,
    entities: Sequence[tuple[Address, bytes, Any, bytes]],
) -> Trace:
    """Return the trace of a case that was run without the calls after its end, if it has one."""
    end = first_end(finished)
    found = []
    for address, entity, structure, state in entities:
        partition, encoded = entity_of(plan.components[address.component], entity)
        key = decode_key(encoded)
        number = encoded_partition_number(encoded, case.partitions or 1)
        # The state came through Spark's own channels, as the report did.
        found.append(Entity(partition, key, number, structure, partial(pickle.loads, state)))
    return Trace(
        outputs=outputs_of(case.application, finished),
        dead_letters=dead_letters_of(finished.letters, _frames(case)),
        entities=sorted_entities(found),
        ended=None if end is None else ended_of(end),
    )
