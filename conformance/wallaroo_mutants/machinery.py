"""The Spark engine's heads, levels, segments and micro-batches, without Spark, in one process.

A few lines here do what Spark does between them: rows are grouped by shard, in random order, and a
shard's map lives from one micro-batch to the next.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import wallaroo_spark.bounded.runs
import wallaroo_spark.plans.batch
import wallaroo_spark.plans.stream
import wallaroo_spark.worker.operators
import wallaroo_spark.worker.program
from wallaroo_spark.bounded.micro_batches import StreamJob
from wallaroo_spark.wire.job import (
    FINISHED,
    HEAD,
    Frames,
    HeadBlock,
    Report,
    Row,
    Specs,
    pack,
    unpack,
)
from wallaroo_spark.wire.rows import from_batch, to_batch
from wallaroo_spark.worker.modules import Shipment
from wallaroo_spark.worker.segments import MemoryMap

from wallaroo.engine import Case
from wallaroo.trace import Trace

_SHARDS = 2


def run_here(cases: Sequence[Case]) -> list[Trace]:
    """Run cases by the Spark engine's code, without Spark."""
    without_spark = patch.multiple(
        wallaroo_spark.bounded.runs,
        run_batch=_run_batch,
        _running_query=_running_query,
        shipment_of_this_process=Shipment,
    )
    # A worker remembers applications; in this process they would be those of other engines too.
    wallaroo_spark.worker.program.program_of.cache_clear()
    streams = sys.stdout, sys.stderr  # a worker replaces them and never puts them back
    try:
        with without_spark:
            session: Any = SimpleNamespace(spark=None, cores=_SHARDS)
            return wallaroo_spark.bounded.runs.run_cases(session, cases)
    finally:
        sys.stdout, sys.stderr = streams


def _run_batch(
    spark: None, cases: Specs, frames: Frames, levels: int, shards: int, shipment: Shipment
) -> list[Report]:
    """Stand for `wallaroo_spark.plans.batch.run_batch`."""
    del spark
    rows: list[Row] = []
    for start in range(shards):
        part = frames[start::shards]
        block = pack(HeadBlock({run[0]: cases[run[0]] for run in part}, part))
        heads = iter([to_batch([Row(0, HEAD, block)])])
        rows += _rows(wallaroo_spark.plans.batch._head(shipment, shards, levels, heads))
    for level in range(levels):
        tasks = _grouped(rows)
        rows = []
        for task in tasks.values():
            batches = iter([to_batch(task)])
            rows += _rows(wallaroo_spark.plans.batch._level(shipment, shards, level, batches))
    return [unpack(row.block) for row in rows if row.block is not None]


class _Query:
    """Stands for `wallaroo_spark.bounded.micro_batches.StreamQuery`, for one job."""

    def __init__(self, levels: int, shipment: Shipment) -> None:
        self._levels = levels
        self._shipment = shipment

    def run(self, job: StreamJob) -> None:
        """Run a job to its end."""
        operators: dict[tuple[int, int], Any] = {}
        make: Any = wallaroo_spark.plans.stream.Level
        while (blocks := job.next_batch()) is not None:
            rows: list[Row] = []
            for block in blocks:
                carried: HeadBlock = unpack(pack(block))
                rows += wallaroo_spark.worker.operators.run_head(carried, _SHARDS, self._levels)
            for level in range(self._levels):
                groups = _grouped(rows)
                rows = []
                for shard, group in groups.items():
                    operator = operators.get((level, shard))
                    if operator is None:
                        operator = make(level, _SHARDS, self._shipment)
                        operator.store = MemoryMap()
                        operators[level, shard] = operator
                    given = operator.handleInputRows((shard,), iter(group), None)
                    rows += [Row(*row) for row in given]
            job.take(
                Report.merged(
                    [unpack(row.block) for row in rows if row.level == FINISHED and row.block]
                )
            )


def _running_query(session: Any, levels: int, shipment: Shipment) -> _Query:
    del session
    return _Query(levels, shipment)


def _rows(batches: Iterable[Any]) -> list[Row]:
    return [row for batch in batches for row in from_batch(batch)]


def _grouped(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """Return rows by shard, in an arbitrary order that is the same each time."""
    mixed = list(rows)
    random.Random(len(mixed)).shuffle(mixed)  # noqa: S311 - any order will do
    groups: dict[int, list[Row]] = {}
    for row in mixed:
        groups.setdefault(row.shard, []).append(row)
    return groups
