"""A run on Spark from topic to topic of a real broker: outputs leave from workers (kafka-15)."""

from __future__ import annotations

import contextlib
import os
import signal

import psutil
import pytest
from counted import Count, number, sink, text, whole
from live_on_spark import PATIENCE, jvm_of, options
from receiving import eventually

import wallaroo
from wallaroo.engine import Case
from wallaroo.kafka_records import KafkaRecord
from wallaroo.records import Assigned, Consumed

pytestmark = pytest.mark.alone

PARTITIONS = 3


@wallaroo.computation_multi(name="twice")
def twice(message):
    return [message + "!", message]


@wallaroo.encoder
def produced(message):
    word, _, number = message.partition(" ")
    if word == "fixed":
        return message, "f", 0
    return wallaroo.KafkaOutput(message, word, headers=[("n", number)])


def when(message):
    """The event time of a message: its length in seconds."""
    return len(message) * 10**9


def build(address, read, topic, port):
    builder = wallaroo.ApplicationBuilder("leaving")
    source = wallaroo.KafkaSourceConfig(read, address, text, event_time=when)
    builder.new_pipeline("p", source).to(twice)
    builder.to_state_partition(number, Count, "counts", whole)
    kafka = wallaroo.KafkaSinkConfig(topic, address, produced, partitions=PARTITIONS)
    return builder.to_sinks([kafka, sink(port)]).build()


def expected(reference, application, messages):
    """What the reference gives up to the first dead letter: of each partition, and of TCP.

    Of each partition (value, key, headers, timestamp); of TCP the bytes.
    """
    records = [
        Assigned("p", ((0, 0, None),)),
        *[Consumed("p", KafkaRecord(message.encode())) for message in messages],
    ]
    trace = reference.run(Case(application, records, on_error="stop"))
    partitions = {number: [] for number in range(PARTITIONS)}
    for one in trace.outputs["p", 0]:
        partitions[one.partition].append((one.value, one.key, list(one.headers), one.timestamp))
    return partitions, b"".join(trace.outputs["p", 1])


def in_topic(kafka, topic):
    """What readers of committed records see, in the same form."""
    return {
        partition: [
            (one.value(), one.key(), one.headers() or [], one.timestamp()[1]) for one in records
        ]
        for partition, records in kafka.records(topic).items()
    }


def kill_workers():
    """Kill the Python processes in which Spark runs tasks, and those that start them."""
    for process in psutil.Process(jvm_of(os.getpid())).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # it has just ended
            if "pyspark.daemon" in process.cmdline():
                process.kill()


def test_kafka_15_and_dead_4_each_output_is_there_once_whatever_is_killed(
    spark_engine, reference, receiver, kafka, tmp_path, caplog
):
    read = kafka.topic(1)
    topic = kafka.topic(PARTITIONS, retention_ms=-1)  # event times of 1970 are old
    application = build(kafka.address, read, topic, receiver.port)
    messages = []

    def send_more(count, *others):
        more = [f"w{number % 7}" for number in range(count)] + ["fixed", *others]
        kafka.send(read, *[{"value": message.encode()} for message in more])
        messages.extend(more)

    handle = spark_engine.serve(application, options(tmp_path, on_error="stop"))
    send_more(20)
    eventually(lambda: handle.progress().written, PATIENCE)
    send_more(400)
    eventually(lambda: any(len(one) > 20 for one in in_topic(kafka, topic).values()), PATIENCE)
    os.kill(jvm_of(os.getpid()), signal.SIGKILL)
    summary = handle.wait(PATIENCE)
    assert (summary.exit_code, "died of SIGKILL" in summary.problem) == (1, True)
    assert "Exception while sending command" not in caplog.text

    handle = handle.restart()
    send_more(20)
    eventually(lambda: handle.progress().written, PATIENCE)
    for _ in range(2):
        send_more(200)
        kill_workers()
    eventually(lambda: not handle.progress().details["backlog"], PATIENCE)
    send_more(0, "w1", "bad", "w2")
    summary = handle.wait(PATIENCE)
    assert "a dead letter (--on-error stop) at step 'number'" in summary.problem
    want, of_tcp = expected(reference, application, messages)
    assert in_topic(kafka, topic) == want
    got = receiver.everything().splitlines()  # the last outputs before each kill may come twice
    assert list(dict.fromkeys(got)) == of_tcp.splitlines()

    summary = handle.restart().wait(PATIENCE)  # it meets the same message again
    assert "a dead letter (--on-error stop) at step 'number'" in summary.problem
    assert in_topic(kafka, topic) == want
