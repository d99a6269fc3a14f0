"""Kafka to Kafka as one would write it without an engine, with the same client and functions.

``python benchmarks/kafka_by_hand.py BROKERS SOURCE SINK MESSAGES True|False``: reads, counts by
key, and writes; exactly once by transactions if told.
"""

from __future__ import annotations

import sys
import time

from confluent_kafka import Consumer, Producer, TopicPartition
from kafka_counting import Count, count, decode, encode, key

INTERVAL = 0.1
"""Seconds that a transaction stays open."""

_GATHER = 0.005  # seconds that a batch waits for more


def copy(brokers: str, source: str, sink: str, messages: int, exactly: bool) -> None:
    """Copy so many messages, counted."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": f"hand-{sink}",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    partitions = sorted(consumer.list_topics(source, 30).topics[source].partitions)
    consumer.assign([TopicPartition(source, partition, 0) for partition in partitions])
    ours = {"transactional.id": f"hand-{sink}"} if exactly else {}
    producer = Producer(
        {"bootstrap.servers": brokers, "enable.idempotence": True, "linger.ms": 5, **ours}
    )
    if exactly:
        producer.init_transactions()
        producer.begin_transaction()
    states: dict[str, Count] = {}
    group = consumer.consumer_group_metadata()
    done, end = 0, time.monotonic() + INTERVAL
    while done < messages:
        for message in consumer.consume(1_000, _GATHER):
            text = decode.decode(message.value() or b"")
            place = key.partition(text)
            state = states.get(place)
            if state is None:
                state = states[place] = Count()
            output, _ = count.compute(text, state)
            value, to = encode.encode(output)
            while True:
                try:
                    producer.produce(sink, value, to)
                    break
                except BufferError:
                    producer.poll(0.05)
            done += 1
        producer.poll(0)
        if exactly and time.monotonic() > end:
            producer.send_offsets_to_transaction(consumer.position(consumer.assignment()), group)
            producer.commit_transaction()
            producer.begin_transaction()
            end = time.monotonic() + INTERVAL
        elif not exactly and time.monotonic() > end:
            consumer.commit(asynchronous=True)
            end = time.monotonic() + INTERVAL
    if exactly:
        producer.commit_transaction()
    producer.flush()


if __name__ == "__main__":
    brokers, source, sink, messages, exactly = sys.argv[1:]
    copy(brokers, source, sink, int(messages), exactly == "True")
