"""Counts by key from a topic to a topic as one would on Spark without this engine.

``python benchmarks/kafka_by_hand_on_spark.py BROKERS SOURCE SINK CHECKPOINT``: Spark's own Kafka
connector reads and writes, Python keeps the counts (`transformWithState`). It ends at the end of
the topic. Readers may see outputs twice after a crash. `benchmarks/kafka.py` compares.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from kafka_broker import jars
from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from wallaroo_spark.jvm.session import close_session, session
from wallaroo_spark.jvm.settings import SessionSettings

CONNECTOR = Path(__file__).with_name("spark_kafka_pom.xml")
_NEEDED = ("commons-pool2", "kafka-clients", "spark-sql-kafka", "spark-token-provider")
_AT_ONCE = 160_000  # records of a micro-batch: what the engine takes, of 100 bytes each


class Counting(StatefulProcessor):
    """Counts per key in Spark's state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        stored = self._count.get() if self._count.exists() else None
        count = stored[0] if stored else 0
        for row in rows:
            count += 1
            yield Row(key=key[0], value=f"{row.message} {count}")
        self._count.update((count,))

    def close(self) -> None:
        pass


def main() -> None:
    """Count."""
    brokers, source, sink, checkpoint = sys.argv[1:]
    connector = [str(jar) for jar in jars(CONNECTOR).iterdir() if jar.name.startswith(_NEEDED)]
    conf = {
        "spark.jars": ",".join(sorted(connector)),
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        "spark.sql.shuffle.partitions": str(os.cpu_count()),  # as the engine has it
    }
    spark = session(SessionSettings("local[*]", conf)).spark
    read = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers)
    read = read.option("subscribe", source).option("startingOffsets", "earliest")
    rows = read.option("maxOffsetsPerTrigger", _AT_ONCE).load()
    messages = rows.selectExpr("cast(value as string) message")
    keyed = messages.selectExpr("message", "split(message, ' ')[0] key")
    counted = keyed.groupBy("key").transformWithState(
        Counting(), "key string, value string", "append", "none"
    )
    write = counted.writeStream.format("kafka").option("kafka.bootstrap.servers", brokers)
    write = write.option("topic", sink).option("checkpointLocation", checkpoint)
    write.trigger(availableNow=True).start().awaitTermination()
    close_session()


if __name__ == "__main__":
    main()
