"""Brokers that fail on purpose: nothing is lost or doubled, and what ends a run is one line."""

import contextlib

import pytest
from confluent_kafka import KafkaError, Producer
from kafka_mock import MockCluster, Request

from wallaroo.kafka_records import Produced
from wallaroo.transport.kafka import cluster, planner
from wallaroo.transport.kafka.cluster import BrokerError, Cluster
from wallaroo.transport.kafka.destination import Destination
from wallaroo.transport.kafka.planner import RunPlanner
from wallaroo.transport.kafka.producing import Committed, OutputProducer, Place, ShutOutError
from wallaroo.transport.kafka.reader import RunReader

MOVED, SLOW = KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.REQUEST_TIMED_OUT
LOADING, BUSY = KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.CONCURRENT_TRANSACTIONS


@pytest.fixture
def brokers(monkeypatch):
    # After a failure they are asked what a topic looks like, which they do not know.
    monkeypatch.setattr(cluster, "_ANSWER", 0.5)
    with MockCluster() as made:
        made.topic("t")
        yield made


def deliverer(brokers, once):
    """Return what delivers outputs with one client, in a transaction each time if `once`."""
    there = Destination(("p", 0), brokers.address, {}, "t", 1, "id" if once else None)
    producer = OutputProducer(there)
    if once:
        producer.take_over(Place("id", 0))

    def deliver(*numbers):
        outputs = [Produced(b"%d" % n, None, 0, (), 1_000, n) for n in numbers]
        if once:
            producer.deliver_once(outputs, Committed(numbers[-1] + 1))
        else:
            producer.deliver(outputs)

    return deliver


def sent(brokers, topic="t"):
    client = Producer({"bootstrap.servers": brokers.address})
    for number in range(5):
        client.produce(topic, b"%d" % number, partition=0)
    client.flush()


def planner_of(brokers, topic, partitions, kind=Cluster):
    planner = RunPlanner(
        kind(brokers.address, {}, "p"),
        topic,
        "group",
        committed_only=True,
        going_on=lambda: True,
        room=lambda: 100,
    )
    planner.add(dict.fromkeys(range(partitions), 0))
    return planner


def until_some(planner):
    while not (runs := planner.some()):
        pass
    return [(run.partition, run.first, run.last) for run in runs]


@pytest.mark.parametrize("once", [False, True])
def test_outputs_are_there_once_though_brokers_refuse_them_at_first(brokers, once):
    deliver = deliverer(brokers, once)
    brokers.fail(Request.PRODUCE, MOVED, SLOW, KafkaError.NOT_ENOUGH_REPLICAS)
    brokers.fail(Request.ADD_OFFSETS, LOADING, BUSY)
    brokers.fail(Request.COMMIT_OFFSETS, LOADING)
    brokers.fail(Request.END_TRANSACTION, LOADING, KafkaError.COORDINATOR_NOT_AVAILABLE)
    deliver(0, 1)
    deliver(2)
    assert brokers.values("t", 3) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("once", [False, True])
def test_outputs_follow_a_leader_that_is_down_and_one_that_moves(brokers, once):
    deliver = deliverer(brokers, once)
    deliver(0)
    brokers.lead("t", 0, 2)
    deliver(1)
    with brokers.down(2):
        brokers.lead("t", 0, 3)
        deliver(2)
    assert brokers.values("t", 3) == [b"0", b"1", b"2"]


def test_records_are_read_once_though_brokers_refuse_and_their_leader_moves(brokers):
    sent(brokers)
    brokers.fail(Request.FETCH, MOVED, SLOW)
    reader = RunReader(
        Cluster(brokers.address, {}, "p"), "t", "g", committed_only=True, going_on=lambda: True
    )
    reader.add({0: 0})
    first = reader.exactly(0, 0, 2)
    brokers.lead("t", 0, 2)
    sent(brokers)
    second = reader.exactly(0, 3, 9)
    reader.close()
    values = [message.value() for run in (first, second) for message in run.messages]
    assert values == [b"0", b"1", b"2", b"3", b"4"] * 2


def test_kafka_16_a_producer_that_is_fenced_says_that_another_run_has_begun(brokers):
    deliver = deliverer(brokers, True)
    brokers.fail(Request.END_TRANSACTION, KafkaError.PRODUCER_FENCED)
    with pytest.raises(ShutOutError, match=r"^sink p/0: another run of this checkpoint has begun"):
        deliver(0)


def test_a_transaction_that_brokers_had_not_heard_of_is_sent_again(brokers):
    deliver = deliverer(brokers, True)
    deliver(0)
    brokers.fail(Request.END_TRANSACTION, KafkaError.INVALID_TXN_STATE)
    deliver(1)
    deliver(2)
    # Brokers that are real drop what is open when the id is taken over; these ones keep it.
    assert brokers.values("t", 4) == [b"0", b"1", b"1", b"2"]


@pytest.mark.parametrize("once", [False, True])
def test_what_brokers_do_not_allow_is_said_in_one_line(brokers, once):
    deliver = deliverer(brokers, once)
    brokers.fail(Request.PRODUCE, KafkaError.TOPIC_AUTHORIZATION_FAILED)
    said = r"^sink p/0: topic t at [\d.:,]+: .*Broker: Topic authorization failed.*$"
    with pytest.raises(BrokerError, match=said):
        deliver(0)


def test_kafka_12_runs_are_planned_on_though_a_leader_moves(brokers):
    sent(brokers)
    planner = planner_of(brokers, "t", 1)
    assert until_some(planner) == [(0, 0, 4)]
    brokers.lead("t", 0, 2)
    sent(brokers)
    assert until_some(planner) == [(0, 5, 9)]


def test_kafka_12_brokers_that_answer_late_are_not_connected_anew_each_time(brokers, monkeypatch):
    monkeypatch.setattr(planner, "_ANSWER", 0.2)
    monkeypatch.setattr(planner, "_LONGEST", 0.05)
    consumers = []

    class Counted(Cluster):
        def consumer(self, *arguments, **options):
            consumers.append(super().consumer(*arguments, **options))
            return consumers[-1]

    brokers.slow(80)  # a new connection needs several answers
    with contextlib.closing(planner_of(brokers, "t", 1, Counted)) as asking:
        for _ in range(40):
            asking.some()
    assert len(consumers) < 10  # each has twice as long as the one before


@pytest.mark.parametrize("fault", ["no leader", "a leader that is down"])
def test_kafka_12_a_partition_whose_leader_is_away_does_not_keep_the_others_back(brokers, fault):
    topic = brokers.topic("two", 2)
    brokers.lead(topic, 1, 2)
    planner = planner_of(brokers, topic, 2)
    with contextlib.ExitStack() as away:
        if fault == "no leader":
            brokers.lead(topic, 1, -1)
        else:
            away.enter_context(brokers.down(2))
        for end in (4, 9, 14):
            sent(brokers, topic)
            assert until_some(planner) == [(0, end - 4, end)]


def test_kafka_12_a_question_is_answered_though_another_one_failed(brokers):
    brokers.slow(20)
    cluster = Cluster(brokers.address, {}, "p")
    asked = cluster.asked_offsets("t", [0], "latest", committed_only=True)
    cluster.error(KafkaError(MOVED), "of another one")
    assert asked[0].result(60).offset == 0
