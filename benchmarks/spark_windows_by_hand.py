"""The job of `spark_windowing.py` as one writes it by hand for Spark, to be measured against.

``python spark_windows_by_hand.py {timers,sql} OUT_PORT PARTITIONS MASTER [--optimised]``

- ``timers``: `transformWithState` with the Row API, one group per key, a count for each window in a
  `MapState`, which a timer of event time fires. Counts are gathered per micro-batch first.
- ``sql``: Spark's own ``groupBy(window(…), key).count()``, which runs no Python per message.

Both use Spark's watermark. It moves after a micro-batch, so what is due goes out with the next one;
Spark starts one without input for that. Feed, source and settings are those of `spark_by_hand.py`.
"""

from __future__ import annotations

import argparse
import pickle
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as sql
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from spark_by_hand import Reader, serve
from spark_windowing import DELAY, RANGE, decode, line

RANGE_MS = RANGE // 10**6
DELAY_MS = DELAY // 10**6

decode_payload = decode.decode


class Source(DataSource):
    """Rows of key and time."""

    @classmethod
    def name(cls) -> str:
        return "windows_by_hand"

    def schema(self) -> str:
        return "key string, at timestamp"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return TimedReader(self.options["address"])


class TimedReader(Reader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        messages = [decode_payload(payload) for payload in pickle.loads(partition.value)]
        keys = [key for key, _ in messages]
        times = pa.array([time // 1000 for _, time in messages], pa.timestamp("us", tz="UTC"))
        yield pa.record_batch({"key": keys, "at": times})


class Windows(StatefulProcessor):
    """Counts per key and window in Spark's state, with a timer for each window."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._counts = handle.getMapState("counts", "start long", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        found = Counter([int(row.ms) // RANGE_MS * RANGE_MS for row in rows])
        for start, count in found.items():
            known = self._counts.getValue((start,))
            if known is None:
                self._handle.registerTimer(start + RANGE_MS)
            self._counts.updateValue((start,), ((known[0] if known else 0) + count,))
        return iter(())

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,
        timerValues: Any,  # noqa: N803 - Spark's name
        expiredTimerInfo: Any,  # noqa: N803 - Spark's name
    ) -> Iterator[Row]:
        start = expiredTimerInfo.getExpiryTimeInMs() - RANGE_MS
        (count,) = self._counts.getValue((start,)) or (0,)
        self._counts.removeKey((start,))
        yield Row(output=line(key[0], start, count))

    def close(self) -> None:
        pass


def windowed(rows: DataFrame, options: argparse.Namespace) -> DataFrame:
    """Return the outputs of the job."""
    rows = rows.withWatermark("at", f"{DELAY_MS} milliseconds")
    if options.kind == "timers":
        rows = rows.withColumn("ms", sql.unix_millis("at"))
        return rows.groupBy("key").transformWithState(
            Windows(), "output string", "append", "eventTime"
        )
    counts = rows.groupBy(sql.window("at", f"{RANGE_MS} milliseconds"), "key").count()
    output = sql.format_string("%s %d %d\n", "key", sql.unix_millis("window.start"), "count")
    return counts.select(output.alias("output"))


def main() -> None:
    """Serve until killed."""
    conf = {"spark.sql.streaming.noDataMicroBatches.enabled": "true"}
    serve(("timers", "sql"), Source, windowed, conf)


if __name__ == "__main__":
    # Spark's workers import the code they run by name, and cannot import it from __main__.
    import spark_windows_by_hand

    spark_windows_by_hand.main()
