"""Latency and throughput on Spark, beside the same job as one would write it by hand.

The hand-written job keeps a count per key with `transformWithState`: Row API, one group per key,
decode and key in the source. Listener, input log, sinks and Spark's settings are the same, so what
differs is what this engine puts between them. Both run in turn, and only ratios mean anything.

    python benchmarks/spark_speed.py [latency] [chained] [throughput] [--seconds 30] [--rounds 2]
"""

from __future__ import annotations

import argparse
import os
import platform
import socket
import statistics
import struct
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import Row
from pyspark.sql.datasource import InputPartition
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle
from pyspark.sql.types import LongType, StructField, StructType
from wallaroo_spark.engine import spark_options
from wallaroo_spark.job import HeadBlock, Report, unpack
from wallaroo_spark.outbox import Finished
from wallaroo_spark.serve import Server
from wallaroo_spark.shipping import shipment_of_this_process
from wallaroo_spark.stream import _Reader, _Source

import wallaroo
from wallaroo.engine import ServeOptions

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

    def handleInputRows(self, key: Any, rows: Iterator[Row], timerValues: Any) -> Iterator[Row]:  # noqa: N802, N803 - Spark's names
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


class Receiver:
    """Notes when outputs come: (sent at, received at), or only how many."""

    def __init__(self) -> None:
        self.latencies: list[tuple[float, float]] = []
        self.count = 0
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        connection, _ = self._server.accept()
        rest = b""
        while data := connection.recv(1 << 18):
            now = time.monotonic()
            *lines, rest = (rest + data).split(b"\n")
            self.count += len(lines)
            if len(lines) < 5000:
                self.latencies += [(float(line.partition(b"@")[2]), now) for line in lines]


def run(
    kind: type[Server],
    *,
    depth: int,
    partitions: int,
    rate: int | None,
    seconds: float,
    master: str,
) -> tuple[float, float, float]:
    """Run one; return p50 and p99 in ms, or events/s, and seconds to the first output."""
    receiver = Receiver()
    own = spark_options({"master": master, "throughput": rate is None, "batch_bytes": 8 << 20})
    began = time.monotonic()
    options = ServeOptions(partitions=partitions, stop_timeout=120, isolation="trusting")
    server = kind(application(receiver.port, depth), options, own)
    connection = socket.create_connection(server.addresses["p"])

    def send(numbers: range) -> None:
        payloads = [b"%d@%f" % (n % KEYS, time.monotonic()) for n in numbers]
        connection.sendall(b"".join([struct.pack(">I", len(p)) + p for p in payloads]))

    send(range(1))
    while not receiver.count:
        if server.wait(0.02) is not None:
            raise SystemExit(server.wait())
    first = time.monotonic() - began
    stop = threading.Event()

    def load() -> None:
        sent, start = 0, time.monotonic()
        while not stop.is_set():
            step = 1000 if rate is None else max(1, rate // 500)
            send(range(sent, sent + step))
            sent += step
            if rate is not None:
                time.sleep(max(0.0, start + sent / rate - time.monotonic()))

    sender = threading.Thread(target=load)
    sender.start()
    time.sleep(seconds / 2)  # a fresh JVM's figures mean nothing
    before, at = receiver.count, time.monotonic()
    time.sleep(seconds / 2)
    speed = (receiver.count - before) / (time.monotonic() - at)
    latencies = sorted([(b - a) * 1000 for a, b in receiver.latencies if a > at])
    stop.set()
    if rate is None:
        server.kill()  # what is in its log may be minutes of work
    else:
        server.stop()
    sender.join()
    server.wait()
    connection.close()
    if rate is None:
        return speed, 0.0, first
    return latencies[len(latencies) // 2], latencies[len(latencies) * 99 // 100], first


def compare(what: str, rounds: int, seconds: float, master: str) -> None:
    """Run two in turn, and print both and their ratio."""
    rate = None if what == "throughput" else 500
    partitions = 2 if what == "throughput" else 1
    pair: list[tuple[str, type[Server], int]] = [("by hand", ByHand, 1), ("wallaroo", Server, 1)]
    if what == "chained":
        pair = [("one partition", Server, 1), ("two in a row", Server, 2)]
    results: dict[str, list[tuple[float, float, float]]] = {name: [] for name, _, _ in pair}
    for _ in range(rounds):
        for name, kind, depth in pair:
            found = run(
                kind, depth=depth, partitions=partitions, rate=rate, seconds=seconds, master=master
            )
            results[name].append(found)
            figures = (
                f"{found[0]:9,.0f} events/s"
                if rate is None
                else f"p50 {found[0]:6.0f} ms, p99 {found[1]:6.0f} ms"
            )
            print(f"{what:10} {name:14} {figures}, first output after {found[2]:.1f} s", flush=True)
    one, other = [
        [statistics.median(column) for column in zip(*results[name], strict=True)]
        for name, _, _ in pair
    ]
    ratios = [f"{other[0] / one[0]:.2f}"]
    if rate is not None:
        ratios.append(f"{other[1] / one[1]:.2f} (p50, p99)")
    print(f"{what:10} {pair[1][0]} / {pair[0][0]}: {', '.join(ratios)}", flush=True)


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["latency", "chained", "throughput"])
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()
    load = Path("/proc/loadavg").read_text().split()[0]
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"load before {load}"
    )
    for what in options.what:
        compare(what, options.rounds, options.seconds, options.master)


if __name__ == "__main__":
    main()
