"""Records of Kafka in bounded cases: Spark gives what the reference gives (kafka-1, -6 to -10)."""

from __future__ import annotations

import random

import pytest

import wallaroo
from wallaroo import KafkaRecord, testing
from wallaroo.engine import Case
from wallaroo.records import Assigned, Consumed, End, Frame, Tick, Unused

pytestmark = pytest.mark.xdist_group("spark")

SECOND = 10**9


@wallaroo.kafka_decoder
def whole(record):
    if record.key == b"bad":
        raise ValueError("bad")
    if record.key == b"exit":
        raise SystemExit(2)
    return None if record.key == b"none" else (record.partition, record.offset)


class Values:
    def decode(self, value):
        return value.decode()


class Collect:
    def initial_accumulator(self):
        return []

    def update(self, message, accumulator):
        accumulator.append(message)

    def combine(self, earlier, later):
        return earlier + later

    def output(self, key, accumulator):
        return accumulator


class Count:
    def __init__(self):
        self.count = 0


@wallaroo.state_computation(name="count", state=Count)
def count(message, state):
    state.count += 1
    return message, state.count


@wallaroo.decoder(header_length=4, length_fmt=">I")
def frames(payload):
    return payload


@wallaroo.encoder
def shown(message):
    return repr(message)


SINK = wallaroo.TCPSinkConfig("127.0.0.1", 7002, shown)


def windowed(chance):
    """Windows over a Kafka source, perhaps merged with one over TCP."""
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
        tcp = wallaroo.TCPSourceConfig("127.0.0.1", 0, frames)
        source = source.merge(wallaroo.source("tcp", tcp))
    steps = source.to(step.with_delay(chance.choice([0, SECOND])).over(Collect))
    return wallaroo.build_application("windowed", steps.to_sink(SINK))


def log(chance, application):
    """Records of two partitions whose arrival times grow, with all else that a log may hold."""
    merged, now, ended, records = "tcp" in application.sources, 0, set(), []
    for number in range(chance.randint(5, 40)):
        now += chance.choice([0, 0, SECOND, 3 * SECOND])
        partition = chance.randrange(2)
        what = chance.choice(["read"] * 12 + ["assign", "end", "unused", "tick"] + ["tcp"] * merged)
        if what == "read" and partition not in ended:
            time = chance.choice([None, chance.randrange(20) * SECOND])
            key = chance.choice([None] * 20 + [b"bad", b"none", b"exit"])
            read = KafkaRecord(b"v", key, (("n", b"1"),), time, "in", partition, number)
            records.append(Consumed("kafka", read, now))
        elif what == "assign":
            read = chance.choice([(0,), (1,), (0, 1)])
            records.append(Assigned("kafka", tuple((one, 0, None) for one in read), now))
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


def test_kafka_9_windows_fire_as_on_the_reference_at_any_cut(spark_engine, reference):
    cases = []
    for seed in range(60):
        chance = random.Random(seed)
        application = windowed(chance)
        batches = [None, [chance.randint(1, 9) for _ in range(4)]][seed % 3 == 0]
        mode = chance.choice(["isolated", "trusting"])
        partitions = chance.choice([None, 1, 3])
        records = log(chance, application)
        cases.append(Case(application, records, batches, partitions=partitions, isolation=mode))
    wanted = [case_trace.comparable() for case_trace in reference.run_many(cases)]
    found = [case_trace.comparable() for case_trace in spark_engine.run_many(cases)]
    assert [number for number, one in enumerate(found) if one != wanted[number]] == []
    assert len({str(one) for one in wanted}) > 40


def test_kafka_10_values_tombstones_holes_and_ends(spark_engine):
    source = wallaroo.KafkaSourceConfig("in", "h:1", Values, until="end", partitions=[0, 1])
    application = wallaroo.build_application(
        "counted", wallaroo.source("s", source).to(count).to_sink(SINK)
    )
    records = [
        KafkaRecord(b"a", partition=1, offset=5),
        KafkaRecord(None, b"key", partition=1, offset=6),
        KafkaRecord(b"\xff", partition=0, offset=1500),
        KafkaRecord(b"b", partition=0, offset=2999),
        KafkaRecord(b"c", partition=0, offset=3000),
    ]
    results = [
        testing.run(application, {"s": records}, engine=engine) for engine in ("reference", "spark")
    ]
    assert results[1].trace.comparable() == results[0].trace.comparable()
    assert results[1].dead_letters[0].payload == b"\xff"
    assert len(results[1].output) == 3
