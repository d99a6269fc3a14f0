"""Runs that are read from a real broker."""

from itertools import islice
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError
from listening import Received
from small_steps import record

import wallaroo
from wallaroo.kafka_records import KafkaRecord, KafkaRun
from wallaroo.metrics.figures import TopicPlace
from wallaroo.records import Assigned
from wallaroo.transport.kafka.beginning import begin
from wallaroo.transport.kafka.cluster import BrokerError, BrokersAwayError, Cluster
from wallaroo.transport.kafka.lag import Lag
from wallaroo.transport.kafka.reader import RunReader, in_turn
from wallaroo.transport.kafka.source import KafkaSource
from wallaroo.transport.kafka.sources import KafkaSources
from wallaroo.transport.logged import LoggedSource, TopicPosition

pytestmark = pytest.mark.xdist_group("Kafka")  # one broker for all of them

TRANSACTION = {"transactional.id": "a sender"}


def reads(topic, **options):
    """Return what a source reads; its brokers are told to it otherwise."""
    return wallaroo.KafkaSourceConfig(topic, "127.0.0.1:1", record, **options)


@pytest.fixture
def reader(kafka):
    made = []

    def make(topic, positions, **options):
        options = {"committed_only": True, "going_on": lambda: True, **options}
        made.append(RunReader(Cluster(kafka.address, {}, "p"), topic, "test", **options))
        made[-1].add(positions)
        return made[-1]

    yield make
    for each in made:
        each.close()


def numbered(count, partition=0):
    return [{"value": b"%d" % number, "partition": partition} for number in range(count)]


def values(run):
    return [message.value() for message in run.messages]


def until_some(reader):
    while not (runs := reader.some()):
        pass
    return runs


def test_records_of_a_partition_come_in_order_of_offsets(kafka, reader):
    topic = kafka.topic(1)
    kafka.send(topic, *numbered(5))
    (run,) = until_some(reader(topic, {0: 2}))
    assert (run.first, run.last, values(run)) == (2, 4, [b"2", b"3", b"4"])


def test_a_run_is_read_again_over_the_offsets_that_hold_nothing(kafka, reader):
    topic = kafka.topic(1)
    kafka.send(topic, *numbered(2), **TRANSACTION)  # 0, 1, and its mark at 2
    kafka.send(topic, *numbered(2), **TRANSACTION)  # 3, 4, and its mark at 5
    run = reader(topic, {0: 0}).exactly(0, 0, 5)
    assert [message.offset() for message in run.messages] == [0, 1, 3, 4]
    assert run.pieces(topic, whole=False) == [[b"0", b"1"], 1, [b"0", b"1"], 1]


def test_a_reader_that_has_read_ahead_goes_elsewhere_and_back(kafka, reader):
    topic = kafka.topic(2)
    kafka.send(topic, *[{"value": bytes(1_000), "partition": n % 2} for n in range(12_000)])
    again = reader(topic, {})
    for _ in range(2):
        again.go_to({0: range(6_000), 1: range(6_000)})
        assert len(again.exactly(1, 0, 5_999).messages) == 6_000  # the other is kept from reading
        again.go_to({0: range(10, 20)})
        assert [one.offset() for one in again.exactly(0, 10, 19).messages] == [*range(10, 20)]
        again.go_to({})


def test_runs_of_several_partitions_are_read_again_in_the_order_of_the_log(kafka, reader):
    topic = kafka.topic(2)
    large = [{"value": bytes(1_000), "partition": number % 2} for number in range(12_000)]
    kafka.send(topic, *large)  # so that one partition is kept from reading on
    again = reader(topic, {0: 0, 1: 0})
    for run in [(1, 0, 0), (0, 0, 5_999), (1, 1, 5_998), (1, 5_999, 5_999)]:
        read = again.exactly(*run)
        assert (read.partition, read.first, read.last) == run
        assert [message.offset() for message in read.messages] == [*range(run[1], run[2] + 1)]


def test_a_bounded_read_takes_a_thousand_offsets_of_each_partition_in_turn(kafka, reader):
    topic = kafka.topic(3)
    kafka.send(topic, *numbered(2_500), *numbered(1_001, partition=2), **TRANSACTION)
    cluster = Cluster(kafka.address, {}, "p")
    while (ends := cluster.offsets(topic, [0, 1, 2], "latest")) != {0: 2501, 1: 0, 2: 1002}:
        pass  # a transaction's marks are written a moment after it is committed
    kafka.send(topic, *numbered(7))  # they came later
    starts = dict.fromkeys(ends, 0)
    runs = list(reader(topic, starts).bounded(ends, starts))
    assert [(run.partition, run.first, run.last) for run in runs] == [
        *[(0, 0, 999), (2, 0, 999), (0, 1000, 1999), (2, 1000, 1001), (0, 2000, 2500)]
    ]
    assert sum([len(run.messages) for run in runs]) == 3_501


def test_kafka_10_a_bounded_read_has_the_same_turns_wherever_it_is_restarted():
    starts, ends = {0: 7, 1: 0, 2: 3}, {0: 2_600, 1: 3_001, 2: 3}

    def turns(positions):
        for partition, first, last in in_turn(positions, ends, starts):
            positions[partition] = last + 1
            yield partition, first, last

    whole = list(turns(dict(starts)))
    assert whole[:3] == [(0, 7, 1_006), (1, 0, 999), (0, 1_007, 2_006)]
    for stop in range(len(whole)):
        positions = dict(starts)
        before = list(islice(turns(positions), stop))
        assert before + list(turns(positions)) == whole


def test_an_accepted_gap_of_one_partition_leaves_the_ends_of_the_others():
    before = TopicPosition("id", {0: 3, 1: 4}, 1, {0: 90, 1: 80}, {0: 0, 1: 0})
    after = before.with_assigned(Assigned("p", ((0, 10, 90),), 7, "id"))
    assert after == TopicPosition("id", {0: 10, 1: 4}, 1, {0: 90, 1: 80}, {0: 0, 1: 0})
    assert TopicPosition.from_form(after.form) == after


def test_records_of_a_transaction_that_is_open_are_not_read_if_committed_ones_are_wanted(
    kafka, reader
):
    topic = kafka.topic(1)
    kafka.send(topic, *numbered(2))
    producer = Cluster(kafka.address, {}, "p").producer("open", interval=1)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    producer.flush(30)
    assert len(kafka.records(topic, "read_uncommitted")[0]) == 3
    assert values(*until_some(reader(topic, {0: 0}))) == [b"0", b"1"]
    assert Cluster(kafka.address, {}, "p").offsets(topic, [0], "latest") == {0: 2}
    producer.abort_transaction(30)


@pytest.mark.parametrize(
    ("start", "offset"),
    [("earliest", 0), ("latest", 4), ({0: 3}, 3), (2_000_000_001, 2), (9 * 10**9, 4)],
)
def test_a_new_run_begins_where_it_is_told(kafka, start, offset):
    topic = kafka.topic(1)
    kafka.send(topic, *[{"value": b"", "timestamp": 1000 * number} for number in range(1, 4)])
    kafka.send(topic, {"value": b"", "timestamp": 2500})
    config = reads(topic, start=start)
    position, _ = begin(Cluster(kafka.address, {}, "p"), "p", config, None)
    assert position.offsets == {0: offset}


def _made_again(kafka, topic):
    admin = kafka.admin()
    admin.delete_topics([topic])[topic].result(30)
    kafka.topic(1, topic)
    while not kafka.partitions(topic):
        pass  # it takes a moment until all know of it


def _shortened(kafka, topic):
    from confluent_kafka import TopicPartition

    admin = kafka.admin()
    place = TopicPartition(topic, 0, 3)
    admin.delete_records([place])[place].result()


def test_kafka_5_an_offset_behind_all_that_is_there_is_refused(kafka):
    topic = kafka.topic(1)
    kafka.send(topic, *numbered(5))
    cluster = Cluster(kafka.address, {}, "p")
    before = TopicPosition(cluster.topic(topic).id, {0: 9})
    with pytest.raises(BrokerError, match=r"offset 9 is wanted, and the partition has .* 0 to 4"):
        begin(cluster, "p", reads(topic), before)


def test_kafka_5_a_gap_in_what_is_read_once_more_is_accepted_too(kafka, caplog):
    topic = kafka.topic(1)
    kafka.send(topic, *numbered(5))
    cluster = Cluster(kafka.address, {}, "p")
    before = TopicPosition(cluster.topic(topic).id, {0: 4})
    assert begin(cluster, "p", reads(topic), before, {0: 2})[0] == before
    _shortened(kafka, topic)
    with pytest.raises(BrokerError, match=r"offset 2 is wanted, .* 3 to 4 now; .* --accept-gaps"):
        begin(cluster, "p", reads(topic), before, {0: 2})
    begun = begin(cluster, "p", reads(topic), before, {0: 2}, accept_gaps=True)
    assert begun == (before, {0: range(3, 5)})
    assert "offset 2 is wanted" in caplog.text

    source = wallaroo.KafkaSourceConfig(topic, kafka.address, record)
    application = wallaroo.build_application("a", wallaroo.source("p", source).done())
    sources = KafkaSources(
        application,
        {"p": LoggedSource(position=before)},
        None,
        None,
        accept_gaps=True,
        measured=False,
        going_on=lambda: True,
        again={"p": {0: 1}},
    )
    sources.begin()
    run = sources.fetch("p", 0, 1, 3)
    assert (run.first, run.last, [one.offset() for one in run.messages]) == (1, 3, [3])
    assert sources.fetch("p", 0, 0, 2) == (0, 0, 2, [])
    sources.close()
    # A record that was dead, and that compaction has taken since, is shown without its value.
    there = KafkaRecord(b"3", topic=topic, partition=0, offset=3)
    kafka.send(topic, {"value": b"", "partition": 0}, **TRANSACTION)  # 5, and its mark at 6
    gone = KafkaRecord(None, topic=topic, partition=0, offset=6)
    assert sources.look_up("p", 0, [3, 6]) == {3: there, 6: gone}
    sources.close()


class Runs(Received):
    """Keeps runs, and why a source has failed."""

    def receive_run(self, source, run, at):
        self.order.append(run)

    def input_failed(self, problem):
        self.input_ended(problem)


def test_kafka_5_a_topic_that_is_made_again_while_it_is_read_is_noticed_before_the_next_look(
    whole_kafka, monkeypatch
):
    monkeypatch.setattr("wallaroo.transport.kafka.source._NEW_PARTITIONS", float("inf"))
    topic, received = whole_kafka.topic(1), Runs()
    whole_kafka.send(topic, *numbered(5))
    source = KafkaSource(
        Cluster(whole_kafka.address, {}, "p"),
        "p",
        reads(topic),
        received,
        lambda call, *arguments: call(*arguments),
        room=lambda: 100,
    )
    source.begin(LoggedSource(), {}, accept_gaps=False)
    source.go_on(0)
    source.start()
    while not received.order:
        pass
    _made_again(whole_kafka, topic)
    assert received.ended.wait(60)
    assert "was made again while it was read" in received.problem or "nknown" in received.problem
    assert received.order == [(0, 0, 4, [])]
    source.close()


def test_a_topic_that_is_not_there_is_named(kafka):
    with pytest.raises(BrokerError, match=r"p: topic nowhere at .*: .*nknown topic"):
        begin(Cluster(kafka.address, {}, "p"), "p", reads("nowhere"), None)


def test_an_option_that_the_client_does_not_know_is_named_without_the_others(kafka):
    cluster = Cluster(kafka.address, {"sasl.password": "secret", "no.such": 1}, "p")
    with pytest.raises(BrokerError, match=r"options: .*no\.such") as raised:
        cluster.topic("t")
    assert "secret" not in str(raised.value)


def test_kafka_10_a_partition_that_was_added_is_no_part_of_a_bounded_read(kafka):
    topic = kafka.topic(2)
    cluster = Cluster(kafka.address, {}, "p")
    before = TopicPosition(cluster.topic(topic).id, {0: 0}, 1, {0: 0})  # it had one partition
    assert begin(cluster, "p", reads(topic, until="end"), before)[0] == before


def test_kafka_5_an_accepted_gap_may_lead_back_and_is_logged(kafka):
    topic = kafka.topic()
    kafka.send(topic, *numbered(5))
    cluster = Cluster(kafka.address, {}, "p")
    before = TopicPosition(cluster.topic(topic).id, {0: 9}, 1)
    source = KafkaSource(cluster, "p", reads(topic), None, None)
    source.begin(LoggedSource(position=before), {}, accept_gaps=True)
    assert source.go_on(7) == [Assigned("p", ((0, 5, None),), 7, before.topic)]
    assert source._position.offsets == {0: 5}


def test_a_coordinator_that_is_not_there_yet_is_waited_for():
    cluster = Cluster("127.0.0.1:1", {}, "p")
    for code in (KafkaError.NOT_COORDINATOR, KafkaError._TRANSPORT):
        assert isinstance(cluster.error(KafkaError(code), "topic t"), BrokersAwayError)


def test_kafka_10_a_read_that_becomes_bounded_has_its_ends_logged(kafka):
    topic = kafka.topic()
    kafka.send(topic, *numbered(5))
    cluster = Cluster(kafka.address, {}, "p")
    before = TopicPosition(cluster.topic(topic).id, {0: 3}, 1)
    source = KafkaSource(cluster, "p", reads(topic, until="end"), None, None)
    source.begin(LoggedSource(position=before), {}, accept_gaps=False)
    (assigned,) = source.go_on(7)
    assert assigned == Assigned("p", ((0, 3, 5),), 7, before.topic)
    assert source._position == before.with_assigned(assigned)


def test_figures_say_how_far_a_source_is_behind(kafka, reader):
    topic = kafka.topic(2)
    kafka.send(topic, *numbered(5), **TRANSACTION)
    cluster = Cluster(kafka.address, {}, "p")
    while cluster.offsets(topic, [0], "latest") != {0: 6}:  # its mark follows the commit
        pass
    lag = Lag(lambda some: cluster.asked_offsets(topic, some, "latest", committed_only=True))
    lag.look({0: 2, 1: 0})
    assert [place.lag for place in lag.places.values()] == [None, None]
    while None in [place.lag for place in lag.places.values()]:
        lag.look({0: 2, 1: 0})
    assert lag.places == {0: TopicPlace(2, 6), 1: TopicPlace(0, 0)}
    assert lag.places[0].lag == 4
    reading = reader(topic, {0: 0, 1: 0})
    while reading.standing[0] < 6:  # the mark of the transaction is nothing to read
        reading.some()
    assert reading.bytes_in == 5


def test_the_ends_of_a_bounded_read_are_not_asked_for():
    lag = Lag(lambda _: pytest.fail("they are known"), {0: 7})
    lag.look({0: 3})
    assert lag.places[0].lag == 4


@pytest.mark.parametrize("stopped", [False, True])
def test_kafka_10_a_stop_leaves_out_an_end_with_the_records_before_it(stopped):
    posted, receiver, reader = [], Mock(), Mock(positions={0: 0})

    def bounded(ends, starts):
        reader.positions[0] = 2
        yield KafkaRun(0, 0, 1, [])

    reader.bounded = bounded
    config = reads("topic", until="end")
    source = KafkaSource(Mock(), "p", config, receiver, lambda *call: posted.append(call))
    source._read_to(reader, {0: 2}, {0: 0}, 7)
    if stopped:
        source.close()
    for call, *given in posted:
        call(*given)
    names = [name for name, *_ in receiver.mock_calls]
    assert names == ([] if stopped else ["receive_run", "receive_records", "receive_records"])
