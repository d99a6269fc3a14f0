"""A job as a streaming query: a source that runs the head, an operator for each level of state."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import Row as SparkRow
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.streaming.stateful_processor import (
    MapState,
    StatefulProcessor,
    StatefulProcessorHandle,
)
from pyspark.sql.types import BinaryType, StructField, StructType

from wallaroo_spark.feed import FeedClient
from wallaroo_spark.job import (
    FINISHED,
    ROW_SCHEMA,
    Frames,
    Job,
    Report,
    Row,
    load_job,
    pack,
    unpack,
)
from wallaroo_spark.operators import run_head, run_level
from wallaroo_spark.rows import to_batch
from wallaroo_spark.shards import shard_ids

_KEY = StructType([StructField("key", BinaryType())])
_VALUE = StructType([StructField("value", BinaryType())])

_numbers = itertools.count()


def streaming_rows(spark: SparkSession, job: Job, feed_address: str) -> DataFrame:
    """Return the rows of a job's streaming query, all of them `FINISHED`.

    Args:
        spark: the session.
        job: the job.
        feed_address: where its input comes from (`wallaroo_spark.feed`); blocks are `head_block`s.
    """
    blob = pack(job)
    name = f"wallaroo{next(_numbers)}"
    # A data source gets nothing but its options, which are strings; so the job is the class's.
    source = type(
        "WallarooSource",
        (_Source,),
        {"name": classmethod(lambda _: name), "job": blob, "address": feed_address},
    )
    spark.dataSource.register(source)
    spark.conf.set("spark.sql.shuffle.partitions", str(job.shards))
    rows = spark.readStream.format(name).load()
    for level in range(levels_of(job)):
        rows = rows.groupBy("shard").transformWithState(
            _Level(blob, level), ROW_SCHEMA, "append", "none"
        )
    return rows


def levels_of(job: Job) -> int:
    """Return how many stateful operators a job needs."""
    return max([case.plan.levels for case in job.cases], default=0)


def head_block(
    frames: Frames, span: tuple[int, int] | None = None, *, list_entities: bool = False
) -> bytes:
    """Return a block for the source.

    Args:
        frames: input.
        span: the offsets between which all of the batch's input lies; in one block of a batch.
        list_entities: report all entities at the end of the batch; in one block of a batch.
    """
    return pack((frames, span, list_entities))


class _Source(DataSource):
    """The source of one query."""

    job: bytes
    address: str

    def schema(self) -> str:
        return ROW_SCHEMA

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        del schema
        return _Reader(self.job, self.address)


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans batches beside the driver; `read` runs in tasks."""

    def __init__(self, job: bytes, address: str) -> None:
        self._job = job
        self._feed = FeedClient(address)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"next": self._feed.first()}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        # The feed decides how much a batch holds. With this limit, Spark takes its word even where
        # it would otherwise ask for all there is (trigger "available now").
        return ReadMaxRows(1)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """A feed of chosen cuts ends by itself."""

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802 - Spark's name
        del limit
        return {"next": self._feed.latest(start["next"])}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(block) for block in self._feed.blocks(start["next"], end["next"])]

    def commit(self, end: dict[str, int]) -> None:
        self._feed.commit(end["next"])

    def stop(self) -> None:
        self._feed.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        job = load_job(self._job)
        frames, span, list_entities = unpack(partition.value)
        rows = run_head(job, frames)
        if span is not None:
            rows.append(Row(shard_ids(job.shards)[0], FINISHED, pack(Report(span=span))))
        if list_entities:
            rows += [
                Row(shard, level, None)
                for shard in shard_ids(job.shards)
                for level in range(levels_of(job))
            ]
        yield to_batch(rows)


class _Level(StatefulProcessor):
    """One level of state; a group is a shard."""

    def __init__(self, job: bytes, level: int) -> None:
        self._job = job
        self._level = level

    def init(self, handle: StatefulProcessorHandle) -> None:
        # One state variable: each costs some 10 ms a task.
        self._store = _StateMap(handle.getMapState("segments", _KEY, _VALUE))

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[SparkRow],
        timerValues: Any,  # noqa: N803 - Spark's name
    ) -> Iterator[SparkRow]:
        del timerValues
        blocks = []
        mine = list_entities = False
        for row in rows:
            if row[1] != self._level:
                yield row
                continue
            mine = True
            if row[2] is None:
                list_entities = True
            else:
                blocks.append(unpack(row[2]))
        if mine:
            job = load_job(self._job)
            for made in run_level(job, key[0], blocks, self._store, list_entities=list_entities):
                yield SparkRow(**made._asdict())

    def close(self) -> None:
        """Nothing is held."""


class _StateMap:
    """Spark's map state as a plain map of bytes."""

    def __init__(self, state: MapState) -> None:
        self._state = state

    def get(self, key: bytes) -> bytes | None:
        found = self._state.getValue((key,))
        return None if found is None else found[0]

    def put(self, key: bytes, value: bytes) -> None:
        self._state.updateValue((key,), (value,))

    def items(self) -> Iterable[tuple[bytes, bytes]]:
        for key, value in self._state.iterator():
            yield key[0], value[0]
