"""A run on Spark from topic to topic of a real broker: outputs leave from workers (kafka-15)."""

import contextlib
import os
import signal

import psutil
import pytest
from counted import Count, send, sink, source, text, whole
from live_on_spark import PATIENCE, jvm_of, options
from receiving import eventually

import wallaroo
from wallaroo.engine import Case
from wallaroo.kafka_records import KafkaRecord
from wallaroo.records import Assigned, Consumed, Frame

pytestmark = pytest.mark.alone

PARTITIONS = 3


@wallaroo.computation_multi(name="twice")
def twice(message):
    return [message + "!", message]


@wallaroo.state_computation(name="number", state=Count)
def number(message, state):
    if message == "bad":
        raise ValueError(message)
    state.count += 1
    return f"{message} {state.count}"


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
    """Number the messages of a topic, and of frames beside it, for a topic and a peer."""
    config = wallaroo.KafkaSourceConfig(read, address, text, event_time=when)
    kafka = wallaroo.KafkaSinkConfig(topic, address, produced, partitions=PARTITIONS)
    numbered = (
        wallaroo.source("p", config)
        .merge(source("frames", event_time=when))
        .to(twice)
        .key_by(whole)
        .to(number)
    )
    return wallaroo.build_application("leaving", numbered.to_sinks([kafka, sink(port)]))


def expected(reference, application, received):
    """What the reference gives up to the first dead letter: of each partition, and of TCP.

    Of each partition (value, key, headers, timestamp); of TCP the bytes.
    """
    records = [Assigned("p", ((0, 0, None),)), *received]
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


@pytest.mark.timeout(1200)  # three starts of Spark
def test_kafka_15_stop_1_and_dead_4_each_output_is_there_once_whatever_ends_a_run(
    spark_engine, reference, receiver, kafka, tmp_path, caplog
):
    """The input log has the frames, and names the offsets of the topic's records (kafka-1)."""
    read = kafka.topic(1)
    topic = kafka.topic(PARTITIONS, retention_ms=-1)  # event times of 1970 are old
    application = build(kafka.address, read, topic, receiver.port)
    dead, received = tmp_path / "dead.jsonl", []
    own = {"on_error": "stop", "dead_letters": dead}

    def send_frames(*messages):
        send(handle, *messages, to="frames")
        received.extend([Frame("frames", message.encode()) for message in messages])

    def send_more(count, *others):
        more = [f"w{number % 7}" for number in range(count)] + ["fixed", *others]
        kafka.send(read, *[{"value": message.encode()} for message in more])
        received.extend([Consumed("p", KafkaRecord(message.encode())) for message in more])

    def delivered():
        return sum(map(len, in_topic(kafka, topic).values()))

    # The timeout holds while Spark comes up, too.
    handle = spark_engine.serve(application, options(tmp_path, stop_timeout=0.1, **own))
    send_frames("w1", "w2")
    handle.stop()
    summary = handle.wait(PATIENCE)
    assert (summary.exit_code, summary.problem) == (1, "the stop was given up after 0.1 s")
    assert summary.unprocessed == 1 + 2  # where the topic begins is a record, too
    assert b"".join(receiver.so_far) == b""

    handle = spark_engine.serve(application, options(tmp_path, **own))
    send_more(20)
    eventually(lambda: handle.progress().written, PATIENCE)
    send_more(400)
    eventually(lambda: delivered() > 60, PATIENCE)
    jvm = jvm_of(os.getpid())
    os.kill(jvm, signal.SIGKILL)
    summary = handle.wait(PATIENCE)
    assert (summary.exit_code, "died of SIGKILL" in summary.problem) == (1, True)
    assert "Exception while sending command" not in caplog.text

    handle = handle.restart()
    send_more(20)
    eventually(lambda: delivered() == 2 * len(received), PATIENCE)
    send_frames("w3")
    for _ in range(2):
        send_more(200)
        kill_workers()
    eventually(lambda: not handle.progress().details["backlog"], PATIENCE)
    jvm = jvm_of(os.getpid())
    send_more(0, "w1", "bad", "w2")
    summary = handle.wait(PATIENCE)
    assert (summary.exit_code, summary.dead_letters) == (1, {("p", "number", "raised"): 1})
    assert "a dead letter (--on-error stop) at step 'number'" in summary.problem
    assert len(dead.read_text().splitlines()) == 1
    assert not psutil.pid_exists(jvm)
    want, of_tcp = expected(reference, application, received)
    assert in_topic(kafka, topic) == want
    got = receiver.everything().splitlines()  # the last outputs before each kill may come twice
    assert list(dict.fromkeys(got)) == of_tcp.splitlines()
    assert any((tmp_path / "checkpoint" / "input").glob("*.log"))
