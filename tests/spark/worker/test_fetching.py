"""Tasks that read their records themselves, from a real broker."""

import pytest
from confluent_kafka import TopicPartition
from wallaroo_spark.wire.job import Topic, WireKind, WireRun
from wallaroo_spark.worker.fetching import Fetching, TooMuchError

from wallaroo.transport.kafka.cluster import BrokerError, Cluster
from wallaroo.transport.kafka.planner import RunPlanner

pytestmark = pytest.mark.xdist_group("Kafka")  # one broker for all of them


def offsets(first, partition, *between):
    return WireRun(0, "s", first, range(*between), 7, WireKind.OFFSETS, (partition,))


def fetched(topics, *frames, most=1 << 20):
    fetching = Fetching(topics, frames, most)
    pieces = [piece for run in frames for piece in fetching.of(run)]
    fetching.close()
    return [(piece.first, piece.items, piece.partitions) for piece in pieces], fetching.fetched


def test_kafka_1_offsets_that_hold_nothing_leave_their_numbers_unused(kafka):
    topic = kafka.topic(2)
    send = {"transactional.id": "a sender"}
    kafka.send(topic, {"value": b"a", "partition": 0}, {"value": None, "partition": 1}, **send)
    kafka.send(topic, {"value": b"b", "partition": 0}, **send)  # 2, and its mark at 3
    topics = {"s": Topic(topic, kafka.address, (), True, False, False)}
    frames = [offsets(10, 0, 0, 3), offsets(13, 1, 0, 2), offsets(15, 0, 3, 4)]
    found, counts = fetched(topics, *frames)
    assert found == [(10, [b"a"], (0,)), (12, [b"b"], (0,)), (13, [None], (1,))]
    assert counts["s"] == (3, 2, 1)
    assert fetched(topics, offsets(0, 0, 2, 3))[0] == [(0, [b"b"], (0,))]  # a client goes back


@pytest.mark.parametrize("traced", [False, True])
def test_traces_go_on_where_somebody_takes_them(kafka, traced):
    topic = kafka.topic(1)
    trace = ("traceparent", b"00-1-2-01")
    kafka.send(topic, {"value": b"a"}, {"value": b"b", "headers": [trace, ("other", b"")]})
    frames = [offsets(5, 0, 0, 2)]
    fetching = Fetching({"s": Topic(topic, kafka.address, (), True, False, traced)}, frames, 2)
    assert [piece.items for piece in fetching.of(frames[0])] == [[b"a", b"b"]]
    assert fetching.contexts == ({6: (trace,)} if traced else {})
    fetching.close()


def test_kafka_5_what_is_deleted_between_plan_and_fetch_is_no_silent_hole(kafka):
    topic = kafka.topic(1)
    kafka.send(topic, *[{"value": b"%d" % number} for number in range(10)])
    place = TopicPartition(topic, 0, 5)
    admin = kafka.admin()
    admin.delete_records([place])[place].result(30)
    topics = {"s": Topic(topic, kafka.address, (), True, False, False)}
    with pytest.raises(BrokerError, match="offset 3 is wanted, and the first that is there is 5"):
        fetched(topics, offsets(0, 0, 3, 8))


def test_a_task_fetches_no_more_than_it_may_and_says_how_much_that_is(kafka):
    topic = kafka.topic(2)
    large = [{"value": b"x" * 1_000, "partition": number % 2} for number in range(20)]
    kafka.send(topic, *large)
    topics = {"s": Topic(topic, kafka.address, (), True, False, False)}
    frames = [offsets(0, 0, 0, 10), offsets(10, 1, 0, 10)]
    assert fetched(topics, *frames, most=20_000)[1]["s"].records == 20
    for most, fitting in ((19_999, 19), (10_500, 10), (9_999, 9), (2_500, 2), (1, 1)):
        with pytest.raises(TooMuchError, match=rf"^{fitting} of 20 offsets"):
            fetched(topics, *frames, most=most)
    with pytest.raises(TooMuchError, match=r"^1 of 10 offsets"):
        fetched(topics, frames[0], most=1)
    assert fetched(topics, offsets(0, 0, 3, 4), most=1)[1]["s"].records == 1


def test_kafka_11_runs_are_planned_up_to_what_is_committed_and_no_more_than_there_is_room(kafka):
    topic, room = kafka.topic(2), [3]
    kafka.send(topic, *[{"value": b"", "partition": number % 2} for number in range(4)])
    cluster = Cluster(kafka.address, {}, "s")
    producer = cluster.producer("open", interval=1)
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(topic, b"open", partition=0)
    assert not producer.flush(30)
    planner = RunPlanner(
        cluster,
        topic,
        "group",
        committed_only=True,
        going_on=lambda: True,
        room=lambda: room[0],
    )
    planner.add({0: 0, 1: 1})
    planned = []
    while len(planned) < 2:  # the broker may take longer than the planner waits for it
        planned += planner.some()
    assert sorted(planned) == [(0, 0, 1, []), (1, 1, 1, [])]
    room[0] = 0
    assert planner.some() == []
    room[0] = 1
    assert planner.some() == []
    assert [*planner.bounded({0: 2, 1: 1_502}, {0: 2, 1: 2})] == [
        (1, 2, 1_001, []),
        (1, 1_002, 1_501, []),
    ]
    producer.abort_transaction(30)
