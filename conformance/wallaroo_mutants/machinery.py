"""The Spark engine's heads, levels, segments and micro-batches, without Spark, in one process.

A few lines here do what Spark does between them: rows are grouped by shard, in random order, and a
shard's map lives from one micro-batch to the next.
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

_SHARDS = 2


def run_here(cases: Sequence[Case]) -> list[Trace]:
    """Run cases by the Spark engine's code, without Spark; those without batches as one batch."""
    session: Any = SimpleNamespace(spark=None, cores=_SHARDS)
    # A worker remembers applications; in this process they would be those of other engines too.
    program_of.cache_clear()
    streams = sys.stdout, sys.stderr  # a worker replaces them and never puts them back
    try:
        with (
            patch.multiple(runs, _running_query=_Query, shipment_of_this_process=Shipment),
            patch.object(micro_batches, "_numbers", count()),  # shards depend on a case's number
        ):
            return runs.run_cases(
                session, [replace(case, batches=case.batches or ()) for case in cases]
            )
    finally:
        sys.stdout, sys.stderr = streams


@dataclass
class _Query:
    """Stands for `wallaroo_spark.bounded.micro_batches.StreamQuery`, for one job."""

    session: Any
    levels: int
    shipment: Shipment

    def run(self, job: StreamJob) -> None:
        """Run a job to its end."""
        operators: dict[tuple[int, int], Any] = {}
        while (blocks := job.next_batch()) is not None:
            rows: list[Row] = []
            for block in blocks:
                rows += run_head(unpack(pack(block)), _SHARDS, self.levels)
            for level in range(self.levels):
                groups = _grouped(rows)
                rows = []
                for shard, group in groups.items():
                    if (level, shard) not in operators:
                        operators[level, shard] = self._operator(level)
                    given = operators[level, shard].handleInputRows((shard,), iter(group), None)
                    rows += [Row(*row) for row in given]
            finished = [row.block for row in rows if row.level == FINISHED and row.block]
            job.take(Report.merged(map(unpack, finished)))

    def _operator(self, level: int) -> Any:
        made: Any = stream.Level(level, _SHARDS, self.shipment)
        made.store = MemoryMap()
        return made


def _grouped(rows: Sequence[Row]) -> dict[int, list[Row]]:
    """Return rows by shard, in an arbitrary order that is the same each time."""
    mixed = list(rows)
    random.Random(len(mixed)).shuffle(mixed)  # noqa: S311 - any order will do
    groups: dict[int, list[Row]] = {}
    for row in mixed:
        groups.setdefault(row.shard, []).append(row)
    return groups
