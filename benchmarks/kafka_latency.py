"""How long readers of committed records wait for the outputs of Kafka to Kafka, exactly once.

Records are sent when a schedule says so, whatever became of those before. The latency of an output
goes from the moment when its record was to be sent to that when a reader has it. Goal: half of them
within the transaction's interval and 10 ms. The loop by hand is the floor of this machine.

The sender's client gathers records for as long as it does by default. A request for each record
keeps the broker so busy that records wait in front of their topic: half of the outputs then took
more than half a second, with the loop by hand, too.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))

from confluent_kafka import Consumer, Producer, TopicPartition
from kafka_broker import broker
from kafka_by_hand import INTERVAL

APPLICATION = Path(__file__).parent / "kafka_counting.py"
BY_HAND = Path(__file__).parent / "kafka_by_hand.py"

_RATE = 2_000  # messages a second
_WARM_UP = 3.0  # seconds of them that do not count


def latencies(contender: str, partitions: int, seconds: float) -> list[float]:
    """Return the milliseconds that outputs took, in order of their size.

    Args:
        contender: "reference", the engine, or "by hand", a loop with the same client.
        partitions: of both topics.
        seconds: of records that count.
    """
    with broker() as kafka, tempfile.TemporaryDirectory() as folder:
        source, sink = kafka.topic(partitions), kafka.topic(partitions)
        application = Path(folder) / "live.py"
        application.write_text(APPLICATION.read_text().replace(', until="end"', ""))
        count = int(_RATE * (_WARM_UP + seconds))
        command = {
            "by hand": [str(BY_HAND), kafka.address, source, sink, str(count + 1), "True"],
            "reference": [
                *("-m", "wallaroo", "run", str(application)),
                *("--checkpoint", f"{folder}/state", "--transaction", str(INTERVAL)),
                *("--kafka_source_topic", source, "--kafka_source_brokers", kafka.address),
                *("--kafka_sink_topic", sink, "--kafka_sink_brokers", kafka.address),
            ],
        }[contender]
        process = subprocess.Popen([sys.executable, *command], stderr=subprocess.DEVNULL)
        _send(kafka.address, source, [0])
        _taken(kafka.address, sink, partitions, 1)  # it runs
        began = time.time_ns() + 1_000_000_000
        due = [began + number * 1_000_000_000 // _RATE for number in range(count)]
        sender = threading.Thread(target=_send, args=(kafka.address, source, due))
        sender.start()
        taken = _taken(kafka.address, sink, partitions, count + 1)
        sender.join()
        process.terminate()
        process.wait(60)
    return sorted(took for at, took in taken if at >= began + _WARM_UP * 1e9)


def _send(brokers: str, topic: str, due: list[int]) -> None:
    """Send a record at each of these times, in nanoseconds, whatever became of those before."""
    producer = Producer({"bootstrap.servers": brokers})
    for number, at in enumerate(due):
        if (left := at - time.time_ns()) > 0:
            producer.poll(0)
            time.sleep(left / 1e9)
        producer.produce(topic, f"key{number * 7919 % 1000} {at}")
    producer.flush()


def _taken(brokers: str, topic: str, partitions: int, count: int) -> list[tuple[int, float]]:
    """Return of each output when its record was due, and the milliseconds since then."""
    consumer = Consumer(
        {"bootstrap.servers": brokers, "group.id": "reader", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found: list[tuple[int, float]] = []
    while len(found) < count:
        for message in consumer.consume(1_000, 0.001):
            due = int((message.value() or b"").split()[1])
            found.append((due, (time.time_ns() - due) / 1e6))
    consumer.close()
    return found
