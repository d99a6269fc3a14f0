"""The input log as a feed: what Spark is offered, when, and what is said if something is gone."""

from __future__ import annotations

import contextlib
import pickle
import threading
from typing import Any

import pytest
from counted import text
from wallaroo_spark.jvm.pickling import pickle_application
from wallaroo_spark.live.log_feed import LogFeed
from wallaroo_spark.live.resume import Resume
from wallaroo_spark.plans.feed import FeedClient, FeedServer
from wallaroo_spark.wire.job import CaseSpec, HeadBlock, Topic, unpack
from wallaroo_spark.worker.tasks import run_head

import wallaroo
from wallaroo.kafka_records import KafkaRecord
from wallaroo.records import Assigned, Consumed, End, Unused, Value
from wallaroo.transport.input_log import InputLog, InputLogError
from wallaroo.transport.logged import LoggedSource, encoded

CASE = CaseSpec(b"an application", partitions=2, isolated=True)


@pytest.fixture
def open_feed(tmp_path):
    opened = []

    def open_it(*, max_bytes=1 << 20, batch_bytes=1000, tasks=2, timed=True, skip=(), topics=()):
        feed: Any = LogFeed(
            InputLog.open(tmp_path / "log", max_bytes),
            CASE,
            tasks=tasks,
            batch_bytes=batch_bytes,
            failed=events.append,
            resume=Resume(),
            timed=timed,
            skip=skip,
            topics=dict(topics),
        )
        feed.room_made = lambda: events.append("room")
        feed.events = events
        opened.append(feed)
        return feed

    events = []
    yield open_it
    for feed in opened:
        feed.close()


def test_recover_1_only_what_is_durable_is_offered(open_feed):
    feed = open_feed()
    assert feed.latest(0) == 0
    feed.append("p", [b"a", b"b"])
    assert feed.latest(0) == 2
    assert feed.latest(2) == 2


def test_the_records_of_many_dead_letters_are_read_at_once(open_feed, monkeypatch):
    feed = open_feed()
    feed.append("p", [b"%d" % number for number in range(10)])
    reads, runs = [], feed.log.runs
    monkeypatch.setattr(feed.log, "runs", lambda *span: reads.append(span) or runs(*span))
    found = feed.records({2, 3, 7})
    assert {number: record.payload for number, record in found.items()} == {
        2: b"2",
        3: b"3",
        7: b"7",
    }
    assert reads == [(2, 8)]


def test_recover_1_a_batch_that_is_asked_for_again_is_the_same(open_feed):
    feed = open_feed(batch_bytes=1 << 20)
    feed.append("p", [b"%d" % n for n in range(10)])
    feed.append("q", [b"x" * 30_000] * 4)
    end = feed.latest(0)
    blocks = feed.blocks(0, end)
    assert blocks == feed.blocks(0, end)
    parts = [unpack(block) for block in blocks]
    assert [part.span for part in parts] == [(0, 14), None]
    assert [part.cases for part in parts] == [{0: CASE}, {0: CASE}]
    frames = [run for part in parts for run in part.frames]
    assert [(run.source, run.first, len(run.items)) for run in frames] == [
        ("p", 0, 7),
        ("p", 7, 3),
        ("q", 10, 4),
    ]


@pytest.mark.parametrize(("timed", "runs"), [(False, [(0, 0, 3)]), (True, [(0, 5, 2), (2, 7, 1)])])
def test_frames_are_apart_by_arrival_time_only_where_time_decides(open_feed, timed, runs):
    feed = open_feed(timed=timed)
    feed.append("p", [b"a", b"b"], 5)
    feed.append("p", [b"c"], 7)
    frames = [run for block in feed.blocks(0, feed.latest(0)) for run in unpack(block).frames]
    assert [(run.first, run.at, len(run.items)) for run in frames] == runs


def test_frame_4_a_connection_is_closed_once_its_frames_are_durable(open_feed):
    feed = open_feed()
    feed.append("p", [b"a"])
    durable = threading.Event()
    feed.when_durable(durable.set)
    assert durable.wait(60)
    assert feed.latest(0) == 1


def test_frame_4_a_failed_sync_closes_no_connection_in_order(open_feed, monkeypatch):
    feed = open_feed()
    failed = threading.Event()

    def sync():
        failed.set()
        raise InputLogError("Input/output error")

    monkeypatch.setattr(feed.log, "sync", sync)
    closed = threading.Event()
    feed.append("p", [b"a"])
    feed.when_durable(closed.set)
    assert failed.wait(60)
    feed._syncing.join(60)
    assert not closed.is_set()
    assert feed.events == ["Input/output error"]


def test_what_is_committed_makes_room(open_feed):
    feed = open_feed(max_bytes=8000)
    while not feed.full:
        feed.append("p", [b"x" * 500])
    feed.log.sync()
    end = feed.latest(feed.received - 1)
    assert end == feed.received
    feed.latest(end)  # Spark asks what comes after it once it has committed what lies before
    assert not feed.full
    assert feed.committed == end
    assert set(feed.events) == {"room"}


def test_an_input_log_that_lost_frames_is_noticed(open_feed):
    feed = open_feed()
    feed.append("p", [b"a"])
    feed.latest(0)
    assert feed.latest(5) == 5
    (problem,) = feed.events
    assert "half deleted: Spark has committed frames up to 5" in problem


def test_a_feed_answers_over_its_socket_what_it_answers(open_feed, tmp_path):
    feed = open_feed()
    feed.append("p", [b"a", b"b"])
    with FeedServer(feed, tmp_path) as server:
        client = FeedClient(server.address)
        assert client.first() == 0
        assert client.offset(0)["next"] == 2
        assert client.blocks(0, 2) == feed.blocks(0, 2)
        assert client.offset(2)["next"] == 2
        client.close()
    assert feed.committed == 2


def test_a_feed_is_closed_while_a_client_waits_for_its_answer(tmp_path):
    for _ in range(20):  # the close must meet a server's thread in a call
        asked = threading.Barrier(2)
        with FeedServer(_Empty(), tmp_path) as server:
            client = FeedClient(server.address)
            asking = threading.Thread(target=_ask_until_closed, args=(client, asked))
            asking.start()
            asked.wait()
        asking.join(60)
        assert not asking.is_alive()
        client.close()


class _Empty:
    """A feed that has no input."""

    def first(self):
        return 0

    def latest(self, start):
        return start

    def blocks(self, start, end):
        return []


def _ask_until_closed(client, asked):
    client.first()
    asked.wait()
    with contextlib.suppress(OSError, EOFError):
        while True:
            client.offset(0)


def test_a_record_that_is_left_out_is_a_dead_letter_of_its_source(open_feed):
    feed = open_feed(skip=[1, 3], tasks=1)
    feed.append("p", [b"a", b"bad", b"c"])
    feed.append_records([Value("g", 1), Value("g", 2)])
    (block,) = feed.blocks(0, 5)
    runs = unpack(block).frames
    why = "it is left out, as --skip-record %d says"
    assert [(run.kind, run.first, list(run.items)) for run in runs] == [
        ("frames", 0, [b"a"]),
        ("skipped", 1, [why % 1]),
        ("frames", 2, [b"c"]),
        ("unportable", 3, [why % 3]),
        ("values", 4, [pickle.dumps(2, 5)]),
    ]
    builder = wallaroo.ApplicationBuilder("skips")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
    case = CaseSpec(pickle_application(builder.done().build()), partitions=1, isolated=True)
    rows = run_head(HeadBlock({0: case}, runs[:3], (0, 3)), 1, 0)
    found = [unpack(row.block).finished[0].letters for row in rows if row.block]
    assert [(one.lineage, one.reason, one.error_type) for one in found[0]] == [
        ((1,), "decode", "SkippedRecordError")
    ]


def test_graph_4_a_value_that_is_left_out_is_not_the_one_a_generator_goes_on_from(open_feed):
    feed = open_feed(skip=[1])
    feed.append_records([Value("g", 1), Value("g", 2)])
    feed.blocks(0, 2)
    assert feed.sources == {"g": LoggedSource(last=encoded(1), behind=1)}


def test_kafka_1_and_2_offsets_go_to_tasks_and_so_do_records_that_are_logged_whole(open_feed):
    topic = Topic("t", "b:1", (("sasl.password", "secret"),), True, False, False)
    feed = open_feed(skip=(3, 8), topics={"s": topic})
    read = [KafkaRecord(b"%d" % offset, partition=1, offset=offset) for offset in (4, 5, 7)]
    consumed = [Consumed("s", record) for record in read]
    feed.append_records(
        [Assigned("s", ((1, 4, None),)), *consumed[:2], Unused("s", 1), consumed[2]]
    )
    feed.append_offsets("s", 0, 20, 24, 0)  # numbers 5 to 9
    feed.append_records([End("s", partition=1)])
    while (end := feed.latest(0)) < 11:
        pass  # they become durable
    block = unpack(feed.blocks(0, end)[0])
    assert [(run.kind, run.first, run.partitions) for run in block.frames] == [
        ("assigned", 0, (1,)),
        ("records", 1, (1,)),
        ("records", 4, (1,)),
        ("offsets", 5, (0,)),
        ("skipped", 8, (0,)),
        ("offsets", 9, (0,)),
        ("end", 10, (1,)),
    ]
    assert [run.items for run in block.frames[1:6:2]] == [
        [b"4", b"5"],
        range(20, 23),
        range(24, 25),
    ]
    assert dict(block.topics) == {"s": topic}


def test_kafka_5_what_is_gone_of_an_earlier_run_is_left_out(open_feed):
    topics = {"s": Topic("t", "b:1", (), True, False, False)}
    feed = open_feed(topics=topics)
    for first, last in ((3, 4), (5, 9)):
        feed.append_offsets("s", 0, first, last, 0)
    feed.close()
    feed = open_feed(topics=topics)
    feed.there = {"s": {0: range(6, 8)}}
    feed.append_offsets("s", 0, 8, 9, 0)  # they are there now, and others
    while (end := feed.latest(0)) < 9:
        pass  # they become durable
    block = unpack(feed.blocks(0, end)[0])
    assert [(run.first, run.items) for run in block.frames] == [(3, range(6, 8)), (7, range(8, 10))]
