"""Turns cases into a job, and the reports that the driver received into traces."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from wallaroo.canonical import structure_or_kind
from wallaroo.engine import Case
from wallaroo.keys import decode_key, encoded_partition_number
from wallaroo.records import End, Frame, Record, Tick, Value
from wallaroo.trace import Entity, OpenWindow, Trace, sorted_entities, sorted_windows
from wallaroo.user_code.failure import describe_error
from wallaroo_spark.jvm.pickling import pickle_application
from wallaroo_spark.plans.reports import dead_letters_of, ended_of, first_end, outputs_of
from wallaroo_spark.wire.job import (
    MOST_ATTEMPTS,
    SEGMENT_BYTES,
    Address,
    CaseSpec,
    Frames,
    Kind,
    Run,
    joined,
    pack,
)
from wallaroo_spark.wire.lineages import Order, numbering
from wallaroo_spark.wire.outbox import Finished
from wallaroo_spark.worker.plan import Plan
from wallaroo_spark.worker.states import entity_of
from wallaroo_spark.worker.stored import Form, unpacked
from wallaroo_spark.worker.window_step import open_windows

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


def frames_of(number: int, records: Sequence[Record], start: int, stop: int) -> Frames:
    """Return a part of a case's input log, as runs of records that are alike."""
    return joined([_run_of(number, records[sequence], sequence) for sequence in range(start, stop)])


def _run_of(number: int, record: Record, sequence: int) -> Run:
    if isinstance(record, Frame):
        return Run(number, record.source, sequence, [record.payload], record.at)
    if isinstance(record, Tick):
        return Run(number, "", sequence, [b""], record.at, Kind.TICK)
    if isinstance(record, End):
        return Run(number, record.source, sequence, [pack(record)], record.at, Kind.END)
    assert isinstance(record, Value), "the engine refuses Kafka"
    try:
        item, kind = pack(record.value), Kind.VALUES
    except Exception as error:  # noqa: BLE001 - user code: what it makes may not be portable
        item, kind = f"{type(error).__name__}: {describe_error(error)}".encode(), Kind.UNPORTABLE
    return Run(number, record.source, sequence, [item], record.at, kind)


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
    end, numbered = first_end(finished), numbering(finished.fired)
    last = len(case.records) - 1 if end is None else end.lineage[0]
    now = case.records[last].at if case.records else 0
    state_entities = []
    form = Form(case.application)
    windows: list[OpenWindow] = []
    for address, entity, structure, state in entities:
        group = plan.groups[address.group]
        member, encoded = entity_of(group.members, entity)
        if isinstance(member, int):
            windows += open_windows(case.application, member, encoded, state)
            continue
        expire_after = case.application.partition[member].expire_after
        if expire_after is not None and now - unpacked(state).visited >= expire_after:
            continue  # gone, though no message of its key has come to find that out (key-4)
        number = encoded_partition_number(encoded, case.partitions or 1)
        load = partial(form.state, state)
        shown = structure_or_kind(load()) if form.coded else structure
        state_entities.append(Entity(member, decode_key(encoded), number, shown, load))
    return Trace(
        outputs=outputs_of(case.application, finished),
        dead_letters=dead_letters_of(
            case.application,
            finished.letters,
            case.records,
            numbered,
        ),
        entities=sorted_entities(state_entities),
        ended=None if end is None else ended_of(case.application, end, numbered),
        windows=sorted_windows(windows),
        late=dict(finished.late),
    )
