"""What `spark_speed` runs: an application, and the query one would write by hand for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import Row
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StructField, StructType
from wallaroo_spark.job import HeadBlock, Report, unpack
from wallaroo_spark.outbox import Finished
from wallaroo_spark.serve import Server
from wallaroo_spark.shipping import shipment_of_this_process
from wallaroo_spark.stream import _Reader, _Source

import wallaroo

KEYS = 1000
_COUNT = StructType([StructField("count", LongType())])


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> str:
    """Return the text."""
    return payload.decode()


@wallaroo.partition
def key(text: str) -> str:
    """Return what stands before the @."""
    return text.partition("@")[0]


class Count:
    """A count."""

    def __init__(self) -> None:
        self.count = 0


@wallaroo.state_computation(name="count")
def count(text: str, state: Count) -> tuple[str, bool]:
    """Count, and hand on the text."""
    state.count += 1
    return text, True


@wallaroo.encoder
def encode(text: str) -> str:
    """Return a line."""
    return text + "\n"


def application(port: int, depth: int) -> wallaroo.Application:
    """Return the application: `depth` state partitions in a row."""
    builder = wallaroo.ApplicationBuilder("speed")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
    for level in range(depth):
        builder.to_state_partition(count, Count, f"counts{level}", key)
    return builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", port, encode)).build()


class ByHand(Server):
    """The same edges, and the query one would write by hand."""

    def _rows(self, spark: Any, feed_address: str) -> Any:
        given = {
            "address": feed_address,
            "levels": 1,
            "shards": self._checkpoint.partitions,
            "shipment": shipment_of_this_process(),
            "name": classmethod(lambda _: "byhand"),
        }
        spark.dataSource.register(type("ByHandSource", (_HandSource,), given))
        spark.conf.set("spark.sql.shuffle.partitions", str(self._checkpoint.partitions))
        rows = spark.readStream.format("byhand").load()
        return rows.groupBy("key").transformWithState(
            HandProcessor(), "key string, sequence long, text string, stop long", "append", "none"
        )

    def _report(self, rows: Any) -> Report:
        outputs = []
        span = None
        for row in rows.collect():
            if row.stop is not None:
                span = (row.sequence, row.stop)
            else:
                outputs.append(
                    ((row.sequence,), len(self._application.nodes) - 1, encode(row.text).encode())
                )
        return Report(finished={0: Finished(outputs=outputs)}, span=span)


class _HandSource(_Source):
    def schema(self) -> str:
        return "key string, sequence long, text string, stop long"

    def streamReader(self, schema: StructType) -> _HandReader:  # noqa: N802 - Spark's name
        del schema
        return _HandReader(self.address, self.levels, self.shards, self.shipment)


class _HandReader(_Reader):
    def read(self, partition: InputPartition) -> Iterator[Any]:
        block: HeadBlock = unpack(partition.value)
        for _, _, first, payloads in block.frames:
            for sequence, payload in enumerate(payloads, first):
                text = payload.decode()
                yield text.partition("@")[0], sequence, text, None
        if block.span:
            yield "", block.span[0], "", block.span[1]


class HandProcessor(StatefulProcessor):
    """A count for each key."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Take the state."""
        self._count = handle.getValueState("count", _COUNT)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: Any,  # noqa: N803 - Spark's name
    ) -> Iterator[Row]:
        """Count rows, and hand them on."""
        del key, timerValues
        found = self._count.get() if self._count.exists() else None
        number = found[0] if found else 0
        for row in rows:
            number += 1
            yield row
        self._count.update((number,))

    def close(self) -> None:
        """Nothing is held."""
