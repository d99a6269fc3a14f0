"""Records of Kafka in bounded cases: Spark gives what the reference gives (kafka-1, -6 to -10)."""

import pytest
from counted import Count, sink

import wallaroo
from wallaroo import KafkaRecord, testing

pytestmark = pytest.mark.xdist_group("spark")


class Values:
    def decode(self, value):
        return value.decode()


@wallaroo.state_computation(name="count", state=Count)
def count(message, state):
    state.count += 1
    return message, state.count


def test_kafka_10_values_tombstones_holes_and_ends(spark_engine):
    source = wallaroo.KafkaSourceConfig("in", "h:1", Values, until="end", partitions=[0, 1])
    application = wallaroo.build_application(
        "counted", wallaroo.source("s", source).to(count).to_sink(sink(1))
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
