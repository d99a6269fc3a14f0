"""Windows over a topic of two partitions, and logs with all that the log of such a run may hold."""

from __future__ import annotations

from random import Random
from typing import Any

from small_steps import decode, record, shown
from small_windows import Collect, Total

import wallaroo
from wallaroo import KafkaRecord
from wallaroo.records import Assigned, Consumed, End, Frame, Record, Tick, Unused
from wallaroo.topology import Application

SECOND = 10**9


@wallaroo.kafka_decoder
def whole(given):
    if given.key == b"bad":
        raise ValueError("bad")
    if given.key == b"exit":
        raise SystemExit(2)
    return None if given.key == b"none" else (given.partition, given.offset)


def windowed(chance: Random, *further: Any) -> Application:
    """Windows over the topic, perhaps merged with a source over TCP, to a sink and further ones."""
    config = wallaroo.KafkaSourceConfig(
        "in",
        "h:1",
        whole,
        event_time=chance.choice([None, *[wallaroo.kafka_timestamp] * 3]),
        idle_after=chance.choice([None, 2 * SECOND, 5 * SECOND]),
    )
    step = wallaroo.range_windows(4 * SECOND).with_slide(2 * SECOND)
    source = wallaroo.source("kafka", config)
    if chance.random() < 0.5:
        tcp = wallaroo.TCPSourceConfig("127.0.0.1", 0, decode)
        source = source.merge(wallaroo.source("tcp", tcp))
    steps = source.to(step.with_delay(chance.choice([0, SECOND])).over(Collect))
    sink = wallaroo.TCPSinkConfig("127.0.0.1", 7002, shown)
    return wallaroo.build_application("windowed", steps.to_sinks([sink, *further]))


def counted_by_timestamps(partitions: int = 4, **options: Any) -> Application:
    """Count the records of each ten seconds of a topic, by their own time, into another topic."""
    config = wallaroo.KafkaSourceConfig(
        "in", "h:1", record, event_time=wallaroo.kafka_timestamp, **options
    )
    step = wallaroo.range_windows(10 * SECOND).over(Total)
    sink = wallaroo.KafkaSinkConfig("out", "h:1", in_decimal, partitions=partitions)
    counted = wallaroo.source("s", config).to(step).to_sink(sink)
    return wallaroo.build_application("counted", counted)


@wallaroo.encoder
def in_decimal(message):
    return str(message)


def log_of(chance: Random, application: Application, *keys: bytes) -> list[Record]:
    """Records whose arrival times grow; some have one of the keys ``none``, ``bad`` and further."""
    merged, now, ended = "tcp" in application.sources, 0, set()
    records: list[Record] = []
    for number in range(chance.randint(5, 40)):
        now += chance.choice([0, 0, SECOND, 3 * SECOND])
        partition = chance.randrange(2)
        what = chance.choice(["read"] * 12 + ["assign", "end", "unused", "tick"] + ["tcp"] * merged)
        if what == "read" and partition not in ended:
            time = chance.choice([None, chance.randrange(20) * SECOND])
            key = chance.choice([None] * 20 + [b"bad", b"none", *keys])
            read = KafkaRecord(b"v", key, (("n", b"1"),), time, "in", partition, number)
            records.append(Consumed("kafka", read, now))
        elif what == "assign":
            given = chance.choice([(0,), (1,), (0, 1)])
            records.append(Assigned("kafka", tuple((one, 0, None) for one in given), now))
        elif what == "end":
            ended.add(partition)
            records.append(End("kafka", now, partition=partition))
        elif what == "unused":
            records.append(Unused("kafka", chance.randint(1, 3), now))
        elif what == "tcp":
            records.append(chance.choice([Frame("tcp", b"f", now), End("tcp", now)]))
        else:
            records.append(Tick(now))
    return records
