"""The Spark engine's heads, levels, segments and micro-batches, without Spark, in one process.

A few lines here do what Spark does between them: rows are grouped by shard, in random order, and a
shard's map lives from one micro-batch to the next. Now and then a task is tried twice, as after a
failure: nothing remains of its first attempt.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from wallaroo_spark.bounded import micro_batches, runs
from wallaroo_spark.bounded.micro_batches import StreamJob
from wallaroo_spark.plans import stream
from wallaroo_spark.wire.job import FINISHED, Report, Row, pack, unpack
from wallaroo_spark.worker.modules import Shipment
from wallaroo_spark.worker.program import program_of
from wallaroo_spark.worker.segments import MemoryMap
from wallaroo_spark.worker.tasks import run_head

from wallaroo.engine import Case
from wallaroo.trace import Trace
from wallaroo.windowing import kinds

_SHARDS = 2
_TRIED_TWICE = 1 / 4
"""The share of the tasks of which a first attempt is lost."""


def run_here(cases: Sequence[Case]) -> list[Trace]:
    """Run cases by the Spark engine's code, without Spark; those without batches as one batch."""
    session: Any = SimpleNamespace(spark=None, cores=_SHARDS)
    # A worker remembers applications; in this process they would be those of other engines too.
    program_of.cache_clear()
    # Event times are a few nanoseconds apart, so a bucket would never have two.
    buckets = sum([len(case.input_log) for case in cases]) % 2 or kinds._BUCKETS
    with (
        patch.object(kinds, "_BUCKETS", buckets),
        patch.multiple(runs, _running_query=_Query, shipment_of_this_process=Shipment),
        patch.object(micro_batches, "_numbers", count()),  # shards depend on a case's number
    ):
        return runs.run_cases(
            session, [replace(case, batches=case.batches or ()) for case in cases]
        )


class Tasks:
    """Runs the tasks of micro-batches.

    Args:
        levels: number of stateful operators.
        shards: number of tasks of each.
        shipment: how workers find the applications' modules.

    Attributes:
        stores: the map of each shard, by level and shard.
    """

    def __init__(self, levels: int, shards: int, shipment: Shipment) -> None:
        self.stores: dict[tuple[int, int], MemoryMap] = {}
        self._levels = levels
        self._shards = shards
        self._shipment = shipment
        self._chance = random.Random(levels)  # noqa: S311 - which tasks are tried twice

    def run(self, blocks: Sequence[bytes]) -> list[Row]:
        """Return the rows that a micro-batch's blocks come to."""
        streams = sys.stdout, sys.stderr  # a worker replaces them and never puts them back
        try:
            rows: list[Row] = []
            for block in blocks:
                rows += run_head(unpack(block), self._shards, self._levels)
            for level in range(self._levels):
                groups = _grouped(rows)
                rows = []
                for shard, group in groups.items():
                    store = self.stores.setdefault((level, shard), MemoryMap())
                    if self._chance.random() < _TRIED_TWICE:
                        self._tried(level, shard, group, MemoryMap(store))
                    rows += self._tried(level, shard, group, store)
        finally:
            sys.stdout, sys.stderr = streams
        return rows

    def _tried(self, level: int, shard: int, group: Sequence[Row], store: MemoryMap) -> list[Row]:
        """Return the rows of a task, which changes its shard's map."""
        operator: Any = stream.Level(level, self._shards, self._shipment)
        operator.store = store
        return [Row(*row) for row in operator.handleInputRows((shard,), iter(group), None)]


@dataclass
class _Query:
    """Stands for `wallaroo_spark.bounded.micro_batches.StreamQuery`, for one job."""

    session: Any
    levels: int
    shipment: Shipment

    def run(self, job: StreamJob) -> None:
        """Run a job to its end."""
        tasks = Tasks(self.levels, _SHARDS, self.shipment)
        while (blocks := job.next_batch()) is not None:
            rows = tasks.run([*map(pack, blocks)])
            finished = [row.block for row in rows if row.level == FINISHED and row.block]
            job.take(Report.merged(map(unpack, finished)))


def _grouped(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """Return rows by shard, in an arbitrary order that is the same each time."""
    mixed = list(rows)
    random.Random(len(mixed)).shuffle(mixed)  # noqa: S311 - any order will do
    groups: dict[int, list[Row]] = {}
    for row in mixed:
        groups.setdefault(row.shard, []).append(row)
    return groups
