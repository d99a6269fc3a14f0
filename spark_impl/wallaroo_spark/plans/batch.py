"""Bounded cases as one Spark batch job: a head, then a shuffle and a stage for each level.

State exists as long as the job, in the memory of its tasks; everything else is as in a stream
(`wallaroo_spark.worker.tasks`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from wallaroo_spark.wire.job import (
    HEAD,
    ROW_SCHEMA,
    Frames,
    HeadBlock,
    LevelBlock,
    Report,
    Row,
    Specs,
    pack,
    unpack,
)
from wallaroo_spark.wire.rows import collected, from_batch, to_batch
from wallaroo_spark.worker.modules import Shipment
from wallaroo_spark.worker.segments import MemoryMap
from wallaroo_spark.worker.tasks import list_entities, run_head, run_level


def run_batch(
    spark: Any, cases: Specs, frames: Frames, levels: int, shards: int, shipment: Shipment
) -> list[Report]:
    """Run cases on bounded input and return the reports that reached the driver.

    Args:
        spark: the `SparkSession`.
        cases: by number.
        frames: all input.
        levels: number of stages of state.
        shards: number of tasks in each stage.
        shipment: how workers find the applications' modules.
    """
    parts = [frames[start::shards] for start in range(shards)]
    heads = [
        Row(0, HEAD, pack(HeadBlock({run[0]: cases[run[0]] for run in part}, part)))
        for part in parts
    ]
    rows = spark.createDataFrame(pa.Table.from_batches([to_batch(heads)]))
    rows = rows.mapInArrow(functools.partial(_head, shipment, shards, levels), ROW_SCHEMA)
    for level in range(levels):
        stage = functools.partial(_level, shipment, shards, level)
        rows = rows.repartition(shards, "shard").mapInArrow(stage, ROW_SCHEMA)
    return collected(rows.toArrow().to_batches())


def _head(
    shipment: Shipment, shards: int, levels: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    shipment.unpack()
    for batch in batches:
        for row in from_batch(batch):
            assert row.block is not None
            yield to_batch(run_head(unpack(row.block), shards, levels))


def _level(
    shipment: Shipment, shards: int, level: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    shipment.unpack()
    blocks: dict[int, list[LevelBlock]] = {}
    for batch in batches:
        passing = []
        for row in from_batch(batch):
            if row.level == level and row.block is not None:
                blocks.setdefault(row.shard, []).append(unpack(row.block))
            else:
                passing.append(row)
        if passing:
            yield to_batch(passing)
    for shard, some in blocks.items():
        store = MemoryMap()
        rows = run_level(shard, some, store, shards)
        yield to_batch([*rows, list_entities(shard, store)])
