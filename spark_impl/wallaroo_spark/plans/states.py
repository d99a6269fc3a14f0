"""The states of a query's checkpoint without the query: read, and written as a new checkpoint's.

Spark's own source of data, ``statestore``, reads them as of the last micro-batch that is committed;
a run may be writing meanwhile. Spark has none to write them. So a new checkpoint gets its states
from a query of the same operators, of one micro-batch: instead of messages, its rows bring
segments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pyspark.sql import SparkSession

from wallaroo.overriding import override
from wallaroo_spark.plans.feed import Feed, FeedServer
from wallaroo_spark.plans.stream import SEGMENTS, streaming_rows
from wallaroo_spark.wire.job import HeadBlock, LevelBlock, Row, pack
from wallaroo_spark.worker.modules import Shipment

_BLOCK = 1 << 20  # bytes of segments from which a row is full


def levels_in(directory: Path) -> int:
    """Return the number of stateful operators that a query's checkpoint has states of."""
    try:
        return len([entry for entry in (directory / "state").iterdir() if entry.name.isdecimal()])
    except FileNotFoundError:
        return 0


def stored_segments(spark: SparkSession, directory: Path) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the segments that all operators have stored: the shard, the key and the value.

    Args:
        spark: a session.
        directory: the query's checkpoint.

    Raises:
        Exception: Spark's; they cannot be read.
    """
    # A run may commit while operators are read; all of them are read as of one micro-batch.
    batch = max([int(commit.name) for commit in (directory / "commits").glob("[0-9]*")])
    for operator in range(levels_in(directory)):  # Spark numbers them in an order of its own
        rows = (
            spark.read.format("statestore")
            .option("path", str(directory))
            .option("batchId", batch)
            .option("operatorId", operator)
            .option("stateVarName", SEGMENTS)
            .load()
            .selectExpr("key.shard", "user_map_key.key", "user_map_value.value")
        )
        for shard, key, value in rows.toLocalIterator():
            yield shard, bytes(key), bytes(value)


def store_segments(
    spark: SparkSession,
    directory: Path,
    segments: Mapping[tuple[int, int], Mapping[bytes, bytes]],
    *,
    levels: int,
    partitions: int,
    position: int,
    sockets: Path,
) -> None:
    """Write a query's checkpoint which has these states.

    Args:
        spark: a session.
        directory: the checkpoint: an empty directory that only its owner can use.
        segments: keys and values of the segments, by shard and level.
        levels: number of stateful operators.
        partitions: number of tasks of each.
        position: the offset up to which the states know the input.
        sockets: directory for a socket.

    Raises:
        Exception: Spark's; they cannot be written.
    """
    with FeedServer(_Once(segments, position), sockets) as server:
        rows = streaming_rows(
            spark,
            server.address,
            levels=levels,
            shards=partitions,
            shipment=Shipment(),
        )
        query = (
            rows.writeStream.foreachBatch(lambda batch, _: batch.toArrow())
            .option("checkpointLocation", str(directory))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()


class _Once(Feed):
    """A feed with one micro-batch: the segments."""

    def __init__(
        self, segments: Mapping[tuple[int, int], Mapping[bytes, bytes]], position: int
    ) -> None:
        self._segments = segments
        self._position = position

    @override
    def first(self) -> int:
        return 0

    @override
    def latest(self, start: int) -> int:
        return max(start, self._position)

    @override
    def blocks(self, start: int, end: int) -> list[bytes]:
        del start, end
        return [
            pack(HeadBlock({}, [], rows=[Row(shard, level, pack(LevelBlock({}, {}, {}, part)))]))
            for (shard, level), segments in self._segments.items()
            for part in _parts(segments)
        ]


def _parts(segments: Mapping[bytes, bytes]) -> Iterator[Sequence[tuple[bytes, bytes]]]:
    part: list[tuple[bytes, bytes]] = []
    size = 0
    for segment in segments.items():
        part.append(segment)
        size += len(segment[1])
        if size >= _BLOCK:
            yield part
            part, size = [], 0
    yield part
