"""Outputs leave from workers to a real broker; no test here needs a JVM."""

import dataclasses
import threading

import pytest
from confluent_kafka.cimpl import NewPartitions
from small_steps import decode, encode
from spark_checkpoints import begun, spark_wrote
from wallaroo_spark.live.checkpoint import Checkpoint
from wallaroo_spark.live.kafka_sinks import KafkaSinks
from wallaroo_spark.wire.job import Leaving, Sent, pack, unpack
from wallaroo_spark.wire.lineages import order_of
from wallaroo_spark.wire.outbox import End, Outputs
from wallaroo_spark.worker import leaving
from wallaroo_spark.worker.leaving import leave

import wallaroo
from wallaroo.errors import WallarooError
from wallaroo.kafka_records import Produced
from wallaroo.transport.kafka.producing import ShutOutError

pytestmark = pytest.mark.xdist_group("Kafka")  # one broker for all of them

SINK = 1  # its node: the source's is 0


@pytest.fixture(autouse=True)
def new_worker():
    yield
    leaving._kept.clear()


@pytest.fixture
def start(kafka, tmp_path):
    """A function that takes the sinks over, as a run does at its start."""

    def started(topic, end=1_000, accept_repeats=False, planned=0, **sink):
        config = wallaroo.KafkaSinkConfig(topic, kafka.address, encode, **sink)
        source = wallaroo.TCPSourceConfig("127.0.0.1", 0, decode)
        application = wallaroo.build_application("a", wallaroo.source("p", source).to_sink(config))
        if planned:
            spark_wrote(tmp_path / "c", {0: planned}, [])
        checkpoint = Checkpoint(tmp_path / "c", application, partitions=None, default_partitions=2)
        try:
            begun(checkpoint, frames=1)
            made = KafkaSinks(
                application, checkpoint, end, kept=True, accept_repeats=accept_repeats
            )
        finally:
            checkpoint.close()
        return made

    return started


def block(*lineages, partition=0, ends=(), contexts=()):
    made = [Produced(b"%d" % n[-1], b"k", partition, (), 1_000, n[0]) for n in lineages]
    run = Outputs(SINK, list(lineages), made, partition)
    return unpack(pack(Leaving([run], list(ends), dict(contexts))))


def values(kafka, topic):
    return {p: [int(one.value()) for one in some] for p, some in kafka.records(topic).items()}


def test_kafka_15_what_is_there_is_not_sent_again_by_any_attempt(kafka, start):
    topic = kafka.topic(2)
    sinks = start(topic)
    assert leave(
        [block((3, 1), (3, 2)), block((0, 0)), block((4, 9), partition=1)], sinks.departure
    )
    again = leave([block((0, 0), (3, 1), (3, 2), (5, 3))], sinks.departure)
    assert again.sent == {(SINK, 0): Sent(4, 2)}
    leaving._kept.clear()  # another worker
    leave([block((3, 1), (3, 2), (5, 3), (5, 4))], sinks.departure)
    leave([block((5, 3), (5, 4))], sinks.departure)  # all of the record that the position names
    sinks = start(topic)  # another run
    leave([block((5, 3), (5, 4), (6, 5)), block((4, 9), partition=1)], sinks.departure)
    assert values(kafka, topic) == {0: [0, 1, 2, 3, 4, 5], 1: [9]}


def test_kafka_15_an_attempt_that_was_shut_out_sends_nothing_until_it_takes_over_again(
    kafka, start
):
    topic = kafka.topic()
    departure = start(topic).departure
    leave([block((0, 0))], departure)
    zombie = dict(leaving._kept)
    leaving._kept.clear()
    leave([block((1, 1))], departure)
    [outlet] = zombie.values()
    with pytest.raises(ShutOutError):
        outlet.send(block((1, 1), (2, 2)).outputs[0].outputs)
    leaving._kept.update(zombie)
    leave([block((1, 1), (2, 2))], departure)
    assert values(kafka, topic) == {0: [0, 1, 2]}


def test_kafka_16_a_run_that_a_later_one_has_shut_out_says_so(kafka, start):
    topic = kafka.topic()
    earlier, later = start(topic), start(topic)
    for _ in range(2):
        report = leave([block((0, 7))], earlier.departure)
        assert "another run of this checkpoint has begun" in report.problem
        assert not report.sent
    leave([block((0, 1))], later.departure)
    assert values(kafka, topic) == {0: [1]}


def test_dead_4_what_is_behind_the_first_end_in_order_does_not_leave(kafka, start):
    topic = kafka.topic(2)
    departure = start(topic).departure
    ends = [End(order_of((n, 1), 0), "on-error") for n in (8, 5)]
    leave(
        [
            block((4, 0), (5, 0), (5, 1), (6, 0), ends=ends[:1]),
            block((5, 2), (4, 1), partition=1, ends=ends[1:]),
        ],
        departure,
    )
    assert values(kafka, topic) == {0: [0, 0], 1: [1]}
    # The code is put right: what the record gives now behind what is there.
    leave([block((5, 0), (5, 3), (6, 6))], departure)
    assert values(kafka, topic)[0] == [0, 0, 3, 6]


def test_kafka_13_and_16_what_a_checkpoint_says_of_its_sinks(kafka, start):
    topic = kafka.topic(2)
    sinks = start(topic)
    report = leave([block((0, 0))], sinks.departure)
    assert sinks.sent(report.sent) == {("p", 0): Sent(1, 2)}
    admin = kafka.admin()
    admin.create_partitions([NewPartitions(topic, 5)])[topic].result(30)
    assert start(topic).topics == {SINK: 2}
    with pytest.raises(WallarooError, match="have outputs of record 0, and the input log ends"):
        start(topic, end=0)


def test_kafka_16_a_position_is_missed_only_if_outputs_may_be_behind_it(kafka, start):
    start(kafka.topic(2))
    other = kafka.topic(2)  # without a position, as if it had been idle for long
    start(other)
    other = kafka.topic(2)
    with pytest.raises(WallarooError, match=r"no position .* is not committed.*kafka-16"):
        start(other, planned=1)
    for thread in threading.enumerate():  # else it takes the other partition over behind the next
        if thread.name == "wallaroo-take-over":
            thread.join()
    sinks = start(other, planned=1, accept_repeats=True)
    leave([block((0, 0))], sinks.departure)
    assert values(kafka, other) == {0: [0], 1: []}


def test_kafka_13_outputs_that_may_have_left_keep_their_partitions(kafka, start):
    topic = kafka.topic(3)
    leave([block((0, 7), partition=1)], start(topic).departure)
    with pytest.raises(WallarooError, match=r"to 3 partitions where partitions= says 2 now"):
        start(topic, planned=1, partitions=2)
    leave([block((0, 7), partition=1)], start(topic, planned=1).departure)
    assert values(kafka, topic) == {0: [], 1: [7], 2: []}


def test_at_least_once_needs_no_transactions(kafka, start):
    topic = kafka.topic()
    sinks = start(topic, delivery="at-least-once")
    assert leave([block((0, 0), (1, 1))], sinks.departure).sent == {(SINK, 0): Sent(2, 4)}
    assert leave([block((1, 1), (2, 2))], sinks.departure).sent == {(SINK, 0): Sent(2, 4)}
    assert values(kafka, topic) == {0: [0, 1, 1, 2]}


def test_a_worker_keeps_few_clients(kafka, start, monkeypatch):
    monkeypatch.setattr(leaving, "_CLIENTS", 2)
    departure = start(kafka.topic(4)).departure
    for partition in (0, 1, 2, 1):
        leave([block((partition, 0), partition=partition)], departure)
    assert [place[-1] for place in leaving._kept] == [2, 1]
    leave([block((9, 0), partition=partition) for partition in (0, 1, 3)], departure)
    assert {place[-1] for place in leaving._kept} == {0, 1, 3}


def test_the_trace_of_a_record_goes_on_to_its_outputs(kafka, start):
    topic = kafka.topic()
    trace = (("traceparent", b"00-1-2-01"),)
    leave([block((3, 0), (4, 1)), block(contexts={4: trace})], start(topic).departure)
    [without, belongs] = kafka.records(topic)[0]
    assert (without.headers(), belongs.headers()) == (None, [*trace])


def test_kafka_17_options_are_not_shown(kafka, start):
    sinks = start(kafka.topic(), kafka={"sasl.password": "hidden-word"})
    assert "hidden-word" not in repr(sinks.departure)
    [there] = sinks.departure.destinations.values()
    assert there.options["sasl.password"] == "hidden-word"
    assert "hidden-word" not in str(dataclasses.replace(there, options=there.options))
