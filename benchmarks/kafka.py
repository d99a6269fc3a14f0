"""Kafka to Kafka on one broker: the reference engine against a loop by hand with the same client.

``python benchmarks/kafka.py [--rounds N] [--messages N] [--partitions N] [PART …]``: the broker is
started here (Java 17 and Maven). Each contender reads a topic that is filled already, counts by
key, and writes what it counted to another topic, in a process of its own; both call the same
functions (`kafka_by_hand` is the loop).
A run is measured from the first outputs that readers of committed records can see to the last, by
the outputs that come in this time. On Spark it begins when a quarter of them is there: both
contenders have started then, and micro-batches have their size.
Goals: at least once at least 0.9 times the loop's throughput, exactly once 0.8.

``spark``: this engine on Spark, exactly once, against the same job by hand on Spark
(`kafka_by_hand_on_spark.py`), which may repeat outputs. Goal: at least twice its throughput.

``driver``: what Spark's driver does for each message of a topic, whose records tasks fetch. Goal:
below 0.05 us of its Python, and no payload.

``latency``: how long readers wait, with the engine and with the loop; see `kafka_latency`.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from confluent_kafka import IsolationLevel, KafkaException, Producer, TopicPartition
from confluent_kafka.admin._listoffsets import OffsetSpec
from facts import Figures, ratios, run_parts
from kafka_broker import Broker, broker
from kafka_latency import latencies
from kafka_reading import EVERY

FIGURES = Figures(__file__)
APPLICATION = Path(__file__).parent / "kafka_counting.py"
BY_HAND = Path(__file__).parent / "kafka_by_hand.py"
ON_SPARK = Path(__file__).parent / "kafka_by_hand_on_spark.py"
READING = Path(__file__).parent / "kafka_reading.py"
IDLE = 10.0  # seconds for which the driver is looked at while nothing comes
_LOOK = 0.01  # seconds between looks at the output


class Work:
    """A topic that is full, and contenders that copy what they count of it to another one."""

    def __init__(self, kafka: Broker, messages: int, partitions: int) -> None:
        self._kafka = kafka
        self._messages = messages
        self._partitions = partitions
        self._source = kafka.topic(partitions)
        producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 50})
        for number in range(messages):
            value = f"key{number * 7919 % 1000} {number:090}"
            while True:
                try:
                    producer.produce(self._source, value, partition=number % partitions)
                    break
                except BufferError:
                    producer.poll(0.1)
        producer.flush()

    def prepare(
        self,
        contender: str,
        exactly: bool,
        more: Sequence[str] = (),
        first: int = 1,
        look: Callable[[], object] = lambda: None,
    ) -> Callable[[], Callable[[], float]]:
        """Return what prepares a run of a contender; the run returns seconds for all messages.

        Args:
            contender: which one.
            exactly: its outputs are there exactly once.
            more: options of `wallaroo run`.
            first: how many outputs are there when measuring begins, at least.
            look: is called when time begins and when it ends.
        """

        def start() -> Callable[[], float]:
            sink = self._kafka.topic(self._partitions)
            kept = tempfile.TemporaryDirectory()
            if contender == "by hand":
                command = [sys.executable, str(BY_HAND), self._kafka.address]
                command += [self._source, sink, str(self._messages), str(exactly)]
            elif contender == "spark by hand":
                command = [sys.executable, str(ON_SPARK), self._kafka.address, self._source, sink]
                command.append(kept.name)
            else:
                engine = "spark" if contender == "spark" else "reference"
                command = [sys.executable, "-m", "wallaroo", "run", str(APPLICATION)]
                command += ["--engine", engine, *more]
                command += ["--kafka_source_topic", self._source, "--kafka_sink_topic", sink]
                command += ["--kafka_source_brokers", self._kafka.address]
                command += ["--kafka_sink_brokers", self._kafka.address]
                command += ["--checkpoint", kept.name] if exactly else []

            def run() -> float:
                process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
                began, before = self._wait(sink, first, process)
                look()
                ended, there = self._wait(sink, self._messages, process)
                look()
                process.wait(60)
                kept.cleanup()
                return (ended - began) * self._messages / (there - before)

            return run

        return start

    def _wait(
        self, topic: str, records: int, process: subprocess.Popen[bytes]
    ) -> tuple[float, int]:
        """Return when so many records can be read, and how many can then.

        Marks of transactions count, which are few.
        """
        admin = self._kafka.admin()
        places = [TopicPartition(topic, partition) for partition in range(self._partitions)]
        level, latest = IsolationLevel.READ_COMMITTED, OffsetSpec.latest()  # type: ignore[no-untyped-call]  # its stubs lack it
        while True:
            asked = admin.list_offsets(dict.fromkeys(places, latest), isolation_level=level)
            with contextlib.suppress(KafkaException):  # a topic that was just made has no leader
                there = sum([answer.result(30).offset for answer in asked.values()])
                if there >= records:
                    return time.monotonic(), there
            if process.poll():
                raise SystemExit(f"the contender ended with exit {process.returncode}")
            time.sleep(_LOOK)


def throughput(
    options: argparse.Namespace,
    label: str,
    contenders: Sequence[str] = ("by hand", "reference"),
    *,
    exactly: bool,
    begun: float = 0.0,
) -> None:
    """Print how fast each contender is, beside the first.

    Args:
        options: the command's.
        label: of the figures.
        contenders: which.
        exactly: their outputs are there exactly once.
        begun: the share of outputs that are there when measuring begins.
    """
    by_hand, first = contenders[0], max(1, int(begun * options.messages))
    with broker() as kafka:
        work = Work(kafka, options.messages, options.partitions)
        seconds: dict[str, list[float]] = {name: [] for name in contenders}
        for count in range(options.rounds + 1):
            for name, taken in seconds.items():
                elapsed = work.prepare(name, exactly, first=first)()()
                if count:  # the first one warms the broker
                    taken.append(elapsed)
    for name, ratio in ratios(seconds, by_hand).items():
        rate = options.messages / statistics.median(seconds[name])
        print(f"  {name:13} {rate:12,.0f} messages/s   throughput {1 / ratio:5.2f} x by hand")
        FIGURES.add(
            f"{label}/{name.replace(' ', '-')}",
            rate,
            "messages/s",
            ratio=1 / ratio,
            baseline=by_hand.replace(" ", "-"),
        )


def at_least_once(options: argparse.Namespace) -> None:
    """Print throughput of Kafka to Kafka, at least once."""
    throughput(options, "at-least-once", exactly=False)


def exactly_once(options: argparse.Namespace) -> None:
    """Print throughput of Kafka to Kafka, exactly once."""
    throughput(options, "exactly-once", exactly=True)


def spark(options: argparse.Namespace) -> None:
    """Print throughput of Kafka to Kafka on Spark."""
    throughput(options, "spark", ("spark by hand", "spark"), exactly=True, begun=0.25)


def driver(options: argparse.Namespace) -> None:
    """Print what a message costs Spark's driver, and what brokers send to it: no payloads."""
    size = 100
    with broker() as kafka, socket.create_server(("127.0.0.1", 0)) as peer:
        topic = kafka.topic(options.partitions)
        command = [sys.executable, "-m", "wallaroo", "run", str(READING), "--engine", "spark"]
        command += ["--", topic, kafka.address, str(peer.getsockname()[1])]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        fill(kafka, topic, 1, options.partitions, size)  # the first message says that Spark is up
        lines = peer.accept()[0].makefile("rb")
        lines.readline()
        before, bytes_before = processor(process.pid), received(process.pid, kafka.address)
        fill(kafka, topic, options.messages, options.partitions, size)
        began = time.monotonic()
        for _ in range(options.messages // EVERY):
            lines.readline()
        elapsed = time.monotonic() - began
        seconds = processor(process.pid) - before
        payloads = received(process.pid, kafka.address) - bytes_before
        idle = -processor(process.pid)
        time.sleep(IDLE)
        idle = (idle + processor(process.pid)) / IDLE
        process.terminate()
        process.wait(60)
    cost = seconds / options.messages * 1e6
    print(
        f"  {cost:.3f} us of the driver's Python a message, in {elapsed:.1f} s behind the last one"
    )
    print(f"  {1000 * idle:.1f} ms of it a second while nothing comes")
    print(f"  {payloads:,} bytes from the brokers to the driver, of {size * options.messages:,}")
    FIGURES.add("driver/processor", cost, "us/message")
    FIGURES.add("driver/received", payloads / options.messages, "bytes/message")


def fill(kafka: Broker, topic: str, messages: int, partitions: int, size: int) -> None:
    """Send numbers from 0 on, as messages of this size."""
    producer = Producer({"bootstrap.servers": kafka.address, "linger.ms": 50})
    for number in range(messages):
        value = f"{number:010}".ljust(size)
        while True:
            try:
                producer.produce(topic, value, partition=number % partitions)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def processor(pid: int) -> float:
    """Return the seconds of processor time of a process, to the nanosecond.

    The system counts the whole of it in steps of 10 ms, which is a fifth of what is measured here.
    So its clock is read (`clock_getcpuclockid(3)` says which that is).
    """
    return time.clock_gettime((~pid << 3) | 2)


def received(pid: int, address: str) -> int:
    """Return how many bytes a process has received from brokers, over connections of now."""
    port = address.rpartition(":")[2]
    said = subprocess.run(
        ["ss", "-tinpHO", "dst", f"127.0.0.1:{port}"], capture_output=True, text=True, check=True
    ).stdout
    ours = [line for line in said.splitlines() if f"pid={pid}," in line]
    return sum([int(count) for line in ours for count in re.findall(r"bytes_received:(\d+)", line)])


def latency(options: argparse.Namespace) -> None:
    """Print how long committed readers wait at 2,000 messages a second, exactly once."""
    for contender in ("by hand", "reference"):
        milliseconds = latencies(contender, options.partitions, options.seconds)
        for name, share in (("p50", 0.5), ("p99", 0.99)):
            value = milliseconds[int(share * len(milliseconds))]
            print(f"  {contender:10} {name} {value:8,.1f} ms")
            FIGURES.add(f"latency/{contender.replace(' ', '-')}/{name}", value, "ms")


PARTS: Mapping[str, Callable[[argparse.Namespace], object]] = {
    "at-least-once": at_least_once,
    "exactly-once": exactly_once,
    "latency": latency,
    "spark": spark,
    "driver": driver,
}


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--partitions", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20.0, help="of which latency is measured")
    run_parts(parser, PARTS, FIGURES)


if __name__ == "__main__":
    main()
