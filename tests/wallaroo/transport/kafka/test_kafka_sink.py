"""Outputs that go to a real broker."""

import re
import threading
import time

import pytest
from kafka_broker import broker
from small_steps import encode

import wallaroo
from wallaroo.kafka_records import Produced
from wallaroo.transport.kafka import cluster
from wallaroo.transport.kafka.cluster import BrokersAwayError, Cluster
from wallaroo.transport.kafka.destination import Destination, persisting
from wallaroo.transport.kafka.producing import Committed, OutputProducer, Place, ShutOutError
from wallaroo.transport.kafka.sink import KafkaSink

pytestmark = pytest.mark.xdist_group("Kafka")  # one broker for all of them


class Sinks:
    def __init__(self, kafka, loop_thread):
        self.kafka = kafka
        self.loop = loop_thread
        self.problems = []
        self.room = threading.Event()
        self.made = []

    def open(self, topic, once=True, brokers=None, options=None):
        brokers = brokers or self.kafka.address
        there = Destination(("p", 0), brokers, options or {}, topic, 2, topic if once else None)
        while True:
            sink = KafkaSink(
                there,
                interval=0.05,
                post=self.loop.post,
                on_room=self.room.set,
                failed=self.problems.append,
            )
            try:
                sink.prepare(1 << 40, needs_position=False)
                break
            except BrokersAwayError:  # one that has just started; a run makes a new one too
                time.sleep(0.1)
        self.loop.call(sink.start)
        self.made.append(sink)
        return sink

    def write(self, sink, *outputs):
        self.loop.call(sink.write, list(outputs))

    def drain(self, sink):
        self.loop.run(sink.drain(), 60)


@pytest.fixture
def sinks(kafka, loop_thread):
    made = Sinks(kafka, loop_thread)
    yield made
    for sink in made.made:
        loop_thread.call(sink.close)
        sink._thread.join(60)


def outputs(*numbers, partition=0):
    return [Produced(b"%d" % n, b"k", partition, (("h", b"v"),), 1_000 + n, n) for n in numbers]


def values(kafka, topic):
    return {p: [int(one.value()) for one in some] for p, some in kafka.records(topic).items()}


@pytest.mark.parametrize("once", [False, True])
def test_outputs_arrive_with_all_that_they_have(kafka, sinks, once):
    topic = kafka.topic(2)
    sink = sinks.open(topic, once)
    sinks.write(sink, *outputs(0, 1))
    sinks.write(sink, *outputs(2, partition=1))
    sinks.drain(sink)
    assert (sink.written, sink.pending) == (3, 0)
    assert values(kafka, topic) == {0: [0, 1], 1: [2]}
    record = kafka.records(topic)[1][0]
    assert (record.key(), record.headers(), record.timestamp()) == (b"k", [("h", b"v")], (1, 1002))


def test_the_largest_output_is_taken(kafka, sinks):
    """What the judge of outputs lets pass must pass the client and the broker too (kafka-13)."""
    topic = kafka.topic()
    config = wallaroo.KafkaSinkConfig(topic, kafka.address, encode)
    sink = sinks.open(topic, once=False, options=config.kafka.read())
    sinks.write(sink, Produced(b"x" * (config.max_message_size - 1), b"k", 0, (), 0, 0))
    sinks.drain(sink)
    assert (sinks.problems, sink.written) == ([], 1)


def test_a_sink_that_is_full_has_room_again(kafka, sinks):
    topic = kafka.topic()
    sink = sinks.open(topic)
    written = [outputs(*range(begin, begin + 1_000)) for begin in range(0, 60_000, 1_000)]

    def write():
        for some in written:
            sink.write(some)
        return sink.full

    assert sinks.loop.call(write)
    assert sinks.room.wait(60)
    sinks.drain(sink)
    assert values(kafka, topic) == {0: list(range(60_000))}


def test_a_sink_is_full_by_the_bytes_of_its_outputs(kafka, sinks):
    topic = kafka.topic()
    sink = sinks.open(topic)
    large = [one._replace(value=bytes(900_000)) for one in outputs(*range(20))]

    def write():
        sink.write(large)
        return sink.full

    assert sinks.loop.call(write)
    assert sinks.room.wait(60)
    assert sink.bytes_out == 20 * (900_000 + len(b"k") + len(b"hv"))
    sinks.drain(sink)


@pytest.fixture
def given_up(whole_kafka, monkeypatch):
    """A client whose transaction was open for too long, so that the brokers have aborted it."""
    monkeypatch.setattr(cluster, "_TRANSACTION", 1.0)
    topic = whole_kafka.topic()
    brokers = Cluster(whole_kafka.address, {}, "p")

    def make():
        made = OutputProducer(Destination(("p", 0), whole_kafka.address, {}, topic, 1, topic))
        made.take_over(Place(topic, 0))
        return made

    given_up = persisting(make)
    given_up.begin()
    given_up.send(outputs(0, 1))
    given_up.flush()
    while brokers.offsets(topic, [0], "latest") != {0: 3}:  # the mark of its end stands at 2
        pass
    return given_up, make, topic


def test_a_transaction_that_was_open_for_too_long_is_sent_again(kafka, given_up):
    producer, _, topic = given_up
    assert producer.commit(outputs(0, 1), Committed(2))
    producer.deliver_once(outputs(2), Committed(3))
    assert values(kafka, topic) == {0: [0, 1, 2]}


def test_kafka_16_who_was_shut_out_meanwhile_does_not_come_back(kafka, given_up):
    producer, make, topic = given_up
    make().deliver_once(outputs(0), Committed(1))
    with pytest.raises(ShutOutError, match="another run of this checkpoint has begun"):
        producer.commit(outputs(0, 1), Committed(2))
    assert values(kafka, topic) == {0: [0]}


def test_a_topic_that_is_deleted_while_it_is_written_ends_the_run(
    whole_kafka, sinks, monkeypatch, eventually
):
    monkeypatch.setattr(cluster, "_TRANSACTION", 2.0)
    topic = whole_kafka.topic()
    sink = sinks.open(topic)
    sinks.write(sink, *outputs(0))
    sinks.drain(sink)
    admin = whole_kafka.admin()
    admin.delete_topics([topic])[topic].result(30)
    sinks.write(sink, *outputs(1))
    eventually(lambda: sinks.problems)
    said = rf"^sink p/0: topic {topic} at [\d.:]+: Broker: Unknown topic or partition$"
    assert re.match(said, sinks.problems[0])


@pytest.mark.nightly("two starts of a broker; test_kafka_faults has brokers that are away")
def test_a_broker_that_is_killed_and_comes_back_has_each_output_once(sinks, whole_kafka):
    with broker() as kafka:
        once_each, at_least = kafka.topic(), kafka.topic()
        asked = Cluster(kafka.address, {}, "source s")
        assert asked.offsets(at_least, [0], "latest") == {0: 0}
        both = [
            sinks.open(once_each, True, kafka.address),
            sinks.open(at_least, False, kafka.address),
        ]
        for begin in range(0, 10_000, 100):
            for sink in both:
                sinks.write(sink, *outputs(*range(begin, begin + 100)))
            if begin == 3_000:
                kafka.kill()
            if begin == 6_000:
                kafka.start()
        for sink in both:
            sinks.drain(sink)
        assert values(kafka, once_each) == values(kafka, at_least) == {0: list(range(10_000))}
        assert persisting(lambda: asked.offsets(at_least, [0], "latest")) == {0: 10_000}
        assert not sinks.problems
