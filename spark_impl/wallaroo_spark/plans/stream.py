"""A streaming query: a source that runs the head, and an operator for each level of state."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit
from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
)
from pyspark.sql.types import BinaryType, StructField, StructType

from wallaroo.overriding import override
from wallaroo_spark.plans.feed import FeedClient
from wallaroo_spark.wire.job import ROW_SCHEMA, unpack
from wallaroo_spark.wire.rows import to_batch
from wallaroo_spark.worker.modules import Shipment
from wallaroo_spark.worker.tasks import list_entities, run_head, run_level

SEGMENTS = "segments"
"""The name of the one state variable of each operator."""

_KEY = StructType([StructField("key", BinaryType())])
_VALUE = StructType([StructField("value", BinaryType())])

_numbers = itertools.count()


def streaming_rows(
    spark: SparkSession,
    feed_address: str,
    *,
    levels: int,
    shards: int,
    shipment: Shipment,
) -> DataFrame:
    """Return the rows of a streaming query, all of them `FINISHED`.

    Args:
        spark: the session.
        feed_address: where its input comes from (`plans.feed`); blocks are `HeadBlock`s.
        levels: number of stateful operators.
        shards: number of shards, and of tasks of each.
        shipment: how workers find the applications' modules.
    """
    name = f"wallaroo{next(_numbers)}"
    # A data source gets only options, which are strings; so this is an attribute of a class.
    given = {"address": feed_address, "levels": levels, "shards": shards, "shipment": shipment}
    source = type("WallarooSource", (_Source,), {"name": classmethod(lambda _: name), **given})
    spark.dataSource.register(source)
    spark.conf.set("spark.sql.shuffle.partitions", str(shards))
    rows = spark.readStream.format(name).load()
    for level in range(levels):
        rows = rows.groupBy("shard").transformWithState(
            Level(level, shards, shipment), ROW_SCHEMA, "append", "none"
        )
    return rows


class _Source(DataSource):
    """The source of one query."""

    address: str
    levels: int
    shards: int
    shipment: Shipment

    @override
    def schema(self) -> str:
        return ROW_SCHEMA

    @override
    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        del schema
        return Reader(self.address, self.levels, self.shards, self.shipment)


class Reader(DataSourceStreamReader):
    """Plans batches beside the driver; `read` runs in tasks."""

    def __init__(self, address: str, levels: int, shards: int, shipment: Shipment) -> None:
        self._feed = FeedClient(address)
        self._levels = levels
        self._shards = shards
        self._shipment = shipment

    @override
    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return {"next": self._feed.first()}

    @override
    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802 - Spark's name
        del limit  # the feed decides how much a batch holds
        offset = self._feed.offset(start["next"])
        return start if offset["next"] == start["next"] else offset

    @override
    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [InputPartition(block) for block in self._feed.blocks(start["next"], end["next"])]

    @override
    def stop(self) -> None:
        self._feed.close()

    @override
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        self._shipment.unpack()
        yield to_batch(run_head(unpack(partition.value), self._shards, self._levels))


class Level(StatefulProcessor):
    """One level of state; a key of Spark's is a shard."""

    def __init__(self, level: int, shards: int, shipment: Shipment) -> None:
        self.level = level
        self._shards = shards
        self._shipment = shipment

    @override
    def init(self, handle: StatefulProcessorHandle) -> None:
        # One state variable: each costs some 10 ms a task.
        self.store = _StateMap(handle.getMapState(SEGMENTS, _KEY, _VALUE))

    @override
    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[SparkRow],
        timerValues: Any,  # noqa: N803 - Spark's name
    ) -> Iterator[SparkRow]:
        del timerValues
        blocks = []
        listing = False
        for row in rows:
            if row[1] != self.level:
                yield row
            elif row[2] is None:
                listing = True
            else:
                blocks.append(row[2])
        shard = key[0]
        if blocks:
            self._shipment.unpack()
            for made in run_level(shard, map(unpack, blocks), self.store, self._shards):
                yield SparkRow(**made._asdict())
        if listing:
            self._shipment.unpack()
            yield SparkRow(**list_entities(shard, self.store)._asdict())
            self.store.clear()

    @override
    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class _StateMap:
    """Spark's map state as a plain map of bytes."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, key: bytes) -> bytes | None:
        stored = self._state.getValue((key,))
        return None if stored is None else stored[0]

    def put(self, key: bytes, value: bytes) -> None:
        self._state.updateValue((key,), (value,))

    def remove(self, key: bytes) -> None:
        self._state.removeKey((key,))

    def items(self) -> Iterable[tuple[bytes, bytes]]:
        for key, value in self._state.iterator():
            yield key[0], value[0]

    def clear(self) -> None:
        self._state.clear()
