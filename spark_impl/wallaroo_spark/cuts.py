"""Bounded cases as one stream with chosen cuts: micro-batch k holds the k-th cut of every case."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from typing import Any

from wallaroo.engine import Case
from wallaroo_spark.feed import FeedServer
from wallaroo_spark.job import Frames, Job, Report, unpack
from wallaroo_spark.stream import head_block, streaming_rows
from wallaroo_spark.traces import frames_of, merged


def run_stream(spark: Any, job: Job, cases: Sequence[Case]) -> Report:
    """Run the cases of a job, cut as they ask, and return what reached the driver."""
    reports: list[Report] = []

    def collect(rows: Any, batch: int) -> None:
        del batch
        reports.extend([unpack(row[2]) for row in rows.collect()])

    checkpoint = tempfile.mkdtemp(prefix="wallaroo-cuts-")
    try:
        with FeedServer(_Cuts(job.shards, cases)) as server:
            query = (
                streaming_rows(spark, job, server.address)
                .writeStream.foreachBatch(collect)
                .option("checkpointLocation", checkpoint)
                .trigger(availableNow=True)
                .start()
            )
            query.awaitTermination()
    finally:
        shutil.rmtree(checkpoint, ignore_errors=True)
    return merged(reports)


class _Cuts:
    """The cuts as a feed; offset k lies before cut k."""

    def __init__(self, shards: int, cases: Sequence[Case]) -> None:
        cuts = [list(_stretches(case)) for case in cases]
        self._count = max(map(len, cuts), default=0)
        self._blocks: list[list[bytes]] = []
        for k in range(self._count):
            frames: Frames = []
            for number, case in enumerate(cases):
                if k < len(cuts[number]):
                    frames += frames_of(number, case.input_log, *cuts[number][k])
            # The last cut asks for the entities as well, so the end of the run needs no batch more.
            last = k == self._count - 1
            parts = [frames[part::shards] for part in range(shards)]
            self._blocks.append(
                [
                    head_block(part, list_entities=last and not index)
                    for index, part in enumerate(parts)
                    if part or not index
                ]
            )

    def first(self) -> int:
        return 0

    def latest(self, start: int) -> int:
        return min(start + 1, self._count)

    def blocks(self, start: int, end: int) -> list[bytes]:
        return [block for cut in self._blocks[start:end] for block in cut]

    def commit(self, end: int) -> None:
        """Nothing is freed before the end."""


def _stretches(case: Case) -> list[tuple[int, int]]:
    """Return where each of a case's batches begins and ends; empty ones included, one at least."""
    stretches = []
    start = 0
    total = len(case.input_log)
    for size in case.batches or ():
        stop = min(start + size, total)
        stretches.append((start, stop))
        start = stop
    if start < total or not stretches:
        stretches.append((start, total))
    return stretches
