"""Bounded cases as one Spark batch job: a head, then a shuffle and a stage for each level.

State lives as long as the job, in the memory of the tasks that hold it; what it does is the same as
in a stream (`wallaroo_spark.operators`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from wallaroo_spark.job import HEAD, ROW_SCHEMA, Frames, Job, Report, Row, load_job, pack, unpack
from wallaroo_spark.operators import run_head, run_level
from wallaroo_spark.rows import from_batch, to_batch
from wallaroo_spark.segments import MemoryMap


def run_batch(spark: Any, job: Job, frames: Frames) -> list[Report]:
    """Run a job on bounded input and return what reached the driver.

    Args:
        spark: the `SparkSession`.
        job: the job.
        frames: all input.
    """
    blob = pack(job)
    parts = [Row(0, HEAD, pack(part)) for part in _dealt(frames, job.shards)]
    table = pa.Table.from_batches([to_batch(parts)])
    rows = spark.createDataFrame(table).mapInArrow(functools.partial(_head, blob), ROW_SCHEMA)
    levels = max([case.plan.levels for case in job.cases], default=0)
    for level in range(levels):
        stage = functools.partial(_level, blob, level)
        rows = rows.repartition(job.shards, "shard").mapInArrow(stage, ROW_SCHEMA)
    return [unpack(row.block) for row in rows.collect()]


def _dealt(frames: Frames, parts: int) -> list[Frames]:
    """Return the frames in about equal parts, none of them empty."""
    return [part for part in [frames[start::parts] for start in range(parts)] if part]


def _head(blob: bytes, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    job = load_job(blob)
    for batch in batches:
        for row in from_batch(batch):
            assert row.block is not None
            yield to_batch(run_head(job, unpack(row.block)))


def _level(blob: bytes, level: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    job = load_job(blob)
    blocks: dict[int, list[bytes]] = {}
    for batch in batches:
        passing = []
        for row in from_batch(batch):
            if row.level == level and row.block is not None:
                blocks.setdefault(row.shard, []).append(row.block)
            else:
                passing.append(row)
        if passing:
            yield to_batch(passing)
    for shard, packed in blocks.items():
        events = [unpack(block) for block in packed]
        yield to_batch(run_level(job, shard, events, MemoryMap(), list_entities=True))
