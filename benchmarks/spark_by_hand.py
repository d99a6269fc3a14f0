"""The job of `spark_counting.py` as one writes it by hand for Spark, to be measured against.

``python spark_by_hand.py {row,memory} OUT_PORT PARTITIONS MASTER [--optimised]``

- ``row``: `transformWithState` with the Row API, one group per key, a count in a `ValueState`.
- ``memory``: counts in a dictionary of the worker. They are lost when the worker ends, so it is no
  solution, but a floor: the cost without state.

Both run with the engine's own Spark settings and with its feed, which is quicker than polling. The
received messages are kept in memory only.
"""

from __future__ import annotations

import argparse
import itertools
import os
import pickle
import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Row
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from spark_counting import decode, key
from wallaroo_spark.jvm.session import session
from wallaroo_spark.jvm.settings import SessionSettings
from wallaroo_spark.plans.feed import Feed, FeedClient, FeedServer

from wallaroo.frames import FrameParser

BATCH_BYTES = 16 << 20  # as the engine's default, which takes at most a message for each 56
SMALL = 64 * 1024  # bytes that are not worth a second task, as in the engine
OPTIMISED = "-XX:TieredStopAtLevel=4 -XX:-UseSerialGC -XX:+UseParallelGC"
"""Java's options for its optimising compiler, with which a row a message is quicker."""

decode_payload = decode.decode
key_of = key.partition


class MemoryFeed(Feed):
    """Frames as they come in from one connection, until they are committed."""

    def __init__(self, partitions: int) -> None:
        self._partitions = partitions
        self._first = 0  # number of the first frame that is kept
        self._payloads: list[bytes] = []
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        port = self._listener.getsockname()[1]
        print(f"source by hand listening on 127.0.0.1:{port}", file=sys.stderr, flush=True)
        threading.Thread(target=self._receive, daemon=True).start()

    def first(self) -> int:
        return self._first

    def latest(self, start: int) -> int:
        with self._changed:
            del self._payloads[: start - self._first]
            self._first = start
            self._changed.wait_for(lambda: len(self._payloads) > start - self._first, 0.2)
            size = 0
            for payload in itertools.islice(self._payloads, start - self._first, None):
                size += max(56, len(payload))
                if size > BATCH_BYTES:
                    break
                start += 1
        return start

    def blocks(self, start: int, end: int) -> list[bytes]:
        with self._changed:
            payloads = self._payloads[start - self._first : end - self._first]
        parts = 1 if sum(map(len, payloads)) <= SMALL else self._partitions
        size = -(-len(payloads) // parts)
        return [
            pickle.dumps(payloads[first : first + size]) for first in range(0, len(payloads), size)
        ]

    def _receive(self) -> None:
        connection, _ = self._listener.accept()
        parser = FrameParser()
        while data := connection.recv(1 << 18):
            payloads = parser.feed(data)
            with self._changed:
                self._payloads += payloads
                self._changed.notify_all()


class Source(DataSource):
    """Rows of key and message."""

    @classmethod
    def name(cls) -> str:
        return "by_hand"

    def schema(self) -> str:
        return "key string, message string"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return Reader(self.options["address"])


class Reader(DataSourceStreamReader):
    def __init__(self, address: str) -> None:
        self._feed = FeedClient(address)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        return {"next": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802 - Spark's name
        return self._feed.offset(start["next"])

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [InputPartition(block) for block in self._feed.blocks(start["next"], end["next"])]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        messages = [decode_payload(payload) for payload in pickle.loads(partition.value)]
        keys = [key_of(message) for message in messages]
        yield pa.record_batch({"key": keys, "message": messages})


class Counting(StatefulProcessor):
    """Counts per key in Spark's state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
        stored = self._count.get() if self._count.exists() else None
        count = stored[0] if stored else 0
        for row in rows:
            count += 1
            yield Row(output=f"{row.message} {count}\n")
        self._count.update((count,))

    def close(self) -> None:
        pass


counts: dict[str, int] = {}  # of one worker, while it lives


def count_in_memory(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        outputs = []
        for name, message in zip(*[column.to_pylist() for column in batch.columns], strict=True):
            counts[name] = count = counts.get(name, 0) + 1
            outputs.append(f"{message} {count}\n")
        yield pa.record_batch({"output": outputs})


def counted(rows: DataFrame, options: argparse.Namespace) -> DataFrame:
    """Return the outputs of the job."""
    if options.kind == "row":
        return rows.groupBy("key").transformWithState(Counting(), "output string", "append", "none")
    return rows.repartition(options.partitions, "key").mapInArrow(count_in_memory, "output string")


def main() -> None:
    """Serve until killed."""
    serve(("row", "memory"), Source, counted, {})


def serve(
    kinds: Sequence[str],
    source: type[DataSource],
    outputs: Callable[[DataFrame, argparse.Namespace], DataFrame],
    conf: dict[str, str],
) -> None:
    """Serve a job until killed.

    Args:
        kinds: of jobs, as the command may name them.
        source: Spark's.
        outputs: returns the job's outputs, one text each, from the source's rows.
        conf: more of Spark's settings.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=kinds)
    parser.add_argument("out_port", type=int)
    parser.add_argument("partitions", type=int)
    parser.add_argument("master")
    parser.add_argument("--optimised", action="store_true", help="run Java's optimising compiler")
    options = parser.parse_args()
    feed = MemoryFeed(options.partitions)
    # The engine's rows are blocks of messages; here a row is a message: Spark's own batch size.
    conf = {
        "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
        "spark.sql.shuffle.partitions": str(options.partitions),
        **conf,
    }
    if options.optimised:
        os.environ["_JAVA_OPTIONS"] = OPTIMISED  # Java takes these last, after the engine's
    running = session(SessionSettings(options.master, conf))
    spark = running.spark
    sink = socket.create_connection(("127.0.0.1", options.out_port))
    sink.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def deliver(rows: Any, _batch: int) -> None:
        sink.sendall("".join(rows.toArrow()["output"].to_pylist()).encode())

    server = FeedServer(feed, running.directory)
    spark.dataSource.register(source)
    rows = spark.readStream.format(source.name()).option("address", server.address).load()
    checkpoint = tempfile.mkdtemp(prefix="by-hand-")
    written = outputs(rows, options).writeStream.foreachBatch(deliver)
    written.option("checkpointLocation", checkpoint).start()
    spark.streams.awaitAnyTermination()


if __name__ == "__main__":
    # Spark's workers import the code they run by name, and cannot import it from __main__.
    import spark_by_hand

    spark_by_hand.main()
