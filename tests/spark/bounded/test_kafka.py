"""Records of Kafka in bounded cases: Spark gives what the reference gives (kafka-1, -6 to -10)."""

import random
from dataclasses import replace

import pytest
from counted import Count, sink
from wallaroo_conformance.cases.building import engine_case
from wallaroo_conformance.cases.generating import generate

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


def test_kafka_9_generated_cases_with_topics_as_on_the_reference_at_any_cut(
    spark_engine, reference
):
    chance, cases, wanted = random.Random(1), [], []
    for case in generate(1_000, 9, "tame"):
        # A codec of the case's own alters what is copied, and `trusting` copies less.
        if not case.codec and any(source.topic for source in case.sources):
            expected = reference.run(
                replace(engine_case(case), isolation="isolated", options={"thorough": True})
            )
            if not expected.findings:
                batches = [None, [chance.randint(1, 9) for _ in range(4)]][len(cases) % 2]
                cases.append(replace(engine_case(case), batches=batches))
                wanted.append(expected.comparable())
    found = [trace.comparable() for trace in spark_engine.run_many(cases)]
    assert [number for number, one in enumerate(found) if one != wanted[number]] == []
    assert len(cases) > 40


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
