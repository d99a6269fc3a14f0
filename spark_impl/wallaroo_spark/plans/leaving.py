"""The last operator of a query with Kafka sinks: outputs leave there, and reports go to the driver.

So payloads of Kafka sinks never meet the driver, and a micro-batch's job runs once. The workers are
others than those of user code: so few of them keep clients of the brokers, and find them again.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import DataFrame

from wallaroo_spark.jvm.pyspark_private import workers_of_their_own
from wallaroo_spark.wire.job import FINISHED, LEAVING, ROW_SCHEMA, Row, leaving_tasks, pack, unpack
from wallaroo_spark.wire.rows import from_batch, to_batch
from wallaroo_spark.worker.leaving import Departure, leave
from wallaroo_spark.worker.modules import Shipment


def after_leaving(
    rows: DataFrame, shards: int, shipment: Shipment, departure: Departure
) -> DataFrame:
    """Return the rows of a query once outputs have left, all of them `FINISHED`.

    Args:
        rows: those of the last level.
        shards: number of shards of each operator.
        shipment: how workers find the applications' modules.
        departure: where outputs leave to.
    """
    stage = functools.partial(_leave, shipment, departure)
    rows = rows.repartition(leaving_tasks(shards), "shard")
    with workers_of_their_own(rows.sparkSession, "leaving"):
        return rows.mapInArrow(stage, ROW_SCHEMA)


def _leave(
    shipment: Shipment, departure: Departure, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    shipment.unpack()
    leaving = []
    for batch in batches:
        passing = []
        for row in from_batch(batch):
            if row.level == LEAVING:
                assert row.block is not None
                leaving.append(unpack(row.block))
            else:
                passing.append(row)
        if passing:
            yield to_batch(passing)
    if leaving:
        yield to_batch([Row(0, FINISHED, pack(leave(leaving, departure)))])
