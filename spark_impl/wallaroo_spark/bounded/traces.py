"""Turns cases into a job, and the reports that the driver received into traces."""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import Any

from wallaroo.canonical import structure_or_kind
from wallaroo.engine import Case
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.keys import decode_key, encoded_partition_number
from wallaroo.records import Consumed, Record, Unused, Value
from wallaroo.trace import Entity, OpenWindow, Trace, sorted_entities, sorted_windows
from wallaroo.transport.logged import to_log
from wallaroo_spark.jvm.pickling import pickle_application
from wallaroo_spark.plans.records import run_of
from wallaroo_spark.plans.reports import dead_letters_of, ended_of, first_end, outputs_of
from wallaroo_spark.wire.job import (
    MOST_ATTEMPTS,
    SEGMENT_BYTES,
    Address,
    CaseSpec,
    Frames,
    joined,
)
from wallaroo_spark.wire.lineages import numbering
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


class Records:
    """The records of a case by their numbers; those of offsets that hold nothing have none.

    Args:
        case: the case.

    Attributes:
        last: the last one that holds something; `None`: there is none.
    """

    def __init__(self, case: Case) -> None:
        configs = {name: one.config for name, one in case.application.sources.items()}
        self._whole = {
            name
            for name, config in configs.items()
            if isinstance(config, KafkaSourceConfig) and config.whole
        }
        self._records = case.records
        counts = [one.numbers if isinstance(one, Unused) else 1 for one in case.records]
        self._numbers = list(accumulate(counts, initial=0))  # of each record, and the next one's
        self.last = next(
            (one for one in reversed(case.records) if not isinstance(one, Unused)), None
        )

    def __getitem__(self, number: int) -> Record:
        return self._records[bisect_right(self._numbers, number) - 1]

    def bounds(self, batches: Sequence[int] | None) -> list[tuple[int, int]]:
        """Return where each of a case's batches begins and ends; at least one.

        Args:
            batches: see `Case.batches`.
        """
        bounds, start, total = [], 0, len(self._records)
        for size in batches or ():
            stop = min(start + size, total)
            bounds.append((start, stop))
            start = stop
        if start < total or not bounds:
            bounds.append((start, total))
        return [(self._numbers[start], self._numbers[stop]) for start, stop in bounds]

    def frames(self, case: int, start: int, stop: int) -> Frames:
        """Return the records of some numbers, as runs of records that are alike.

        Args:
            case: the case's number.
            start: the first record's number.
            stop: the number behind the last one.
        """
        part = slice(bisect_left(self._numbers, start), bisect_left(self._numbers, stop))
        runs = []
        for number, record in zip(self._numbers[part], self._records[part], strict=False):
            if not isinstance(record, Unused):
                whole = isinstance(record, Consumed) and record.source in self._whole
                given = to_log(record) if isinstance(record, Value) else record
                runs.append(run_of(given, case, number, whole=whole))
        return joined(runs)


def trace_of(
    case: Case,
    records: Records,
    plan: Plan,
    finished: Finished,
    entities: Sequence[tuple[Address, bytes, Any, bytes]],
) -> Trace:
    """Return the trace of a case that was run without the calls after its end, if it has one."""
    end, numbered = first_end(finished), numbering(finished.fired)
    outputs = outputs_of(case.application, finished)
    last = records.last if end is None else records[end.lineage[0]]
    now = 0 if last is None else last.at
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
        outputs={sink: tuple(some) for sink, some in outputs.items()},
        dead_letters=dead_letters_of(
            case.application,
            finished.letters,
            records,
            numbered,
        ),
        entities=sorted_entities(state_entities),
        ended=None if end is None else ended_of(case.application, end, numbered),
        windows=sorted_windows(windows),
        late=dict(finished.late),
    )
