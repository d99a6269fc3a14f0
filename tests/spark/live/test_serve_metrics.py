"""A live run on Spark fills in the same figures: what the edges count, what workers have seen."""

import json
import socket
import threading
import time
import urllib.request
from collections import Counter

import pytest
from counted import Count, counting, line, number, text, whole
from receiving import Receiver, eventually, read_all
from small_steps import words
from wallaroo_spark.jvm.session import session
from wallaroo_spark.live.watch import Watch

import wallaroo
from wallaroo.engine import ServeOptions
from wallaroo.frames import frames
from wallaroo.keys import partition_number
from wallaroo.metrics.registry import Registry
from wallaroo.metrics.snapshot import snapshot
from wallaroo.monitor.server import Monitor

shared = pytest.mark.xdist_group("spark")  # in the session that all such tests share


@wallaroo.computation(name="slow")
def slow(message):
    if message == "bad":
        raise ValueError(message)
    time.sleep(0.005)
    return message


@shared
def test_figures_are_those_that_were_sent_and_seen_in_workers(spark_engine, monkeypatch):
    # Half a minute otherwise, in which all tests of this process would wait.
    monkeypatch.setattr("wallaroo_spark.live.figures._SIZE", 0.5)
    session()
    receiver = Receiver()
    builder = wallaroo.ApplicationBuilder("measured")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
    builder.to(words).to(slow).to_state_partition(number, Count, "counts", whole)
    application = builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", receiver.port, line)).build()
    registry = Registry(application, "spark")
    followed = []
    registry.on_followed = followed.append
    monitor = Monitor(registry, "127.0.0.1", 0)
    monitor.start()

    def figures():
        with urllib.request.urlopen(monitor.url + "api", timeout=30) as answer:
            return json.load(answer)

    handle = spark_engine.serve(
        application,
        ServeOptions(
            partitions=2, stop_timeout=120, metrics=registry, options={"checkpoint": None}
        ),
    )
    try:
        with socket.create_connection(handle.addresses["p"]) as connection:
            connection.sendall(frames([b"a b a", b"\xff", b"bad c", b"a"]))
            eventually(lambda: figures()["sinks"][0]["written"] == 5, 300)
            eventually(lambda: figures()["processed"] == 4, 60)
            eventually(lambda: figures()["phases"] and figures()["executors"], 60)
            eventually(lambda: figures()["sources"][0]["latency"]["whole"]["count"] == 4, 60)
        found = figures()
        eventually(lambda: figures()["kept"]["checkpoint_bytes"] > 1_000, 60)
    finally:
        handle.stop()
        assert handle.wait(300).problem is None
        monitor.close()
        receiver.close()
    assert found["ready"]
    (source,), (sink,) = found["sources"], found["sinks"]
    split, sleeping, counted = found["steps"]
    assert (source["frames"], source["sent"], source["dead_letters"]) == (4, 3, {"decode": 1})
    assert (split["received"], split["sent"]) == (3, 6)
    assert (sleeping["received"], sleeping["sent"]) == (6, 5)
    assert sleeping["dead_letters"] == {"raised": 1}
    assert sleeping["time"]["p50"] >= 0.005 * 0.99
    assert (counted["received"], counted["calls"]) == (5, 5)
    assert (sink["calls"], sink["connected"], sink["reconnects"]) == (5, True, 0)
    (partition,) = found["partitions"]
    assert (partition["entities"], partition["visits"]) == (3, 5)
    by_number = Counter([partition_number(key, 2) for key in ("a", "b", "a", "c", "a")])
    assert partition["visits_by_number"] == {str(one): by_number[one] for one in sorted(by_number)}
    assert (partition["numbers"], partition["skew"]) == (2, max(by_number.values()) / 2.5)
    at = partition_number("a", 2)
    hottest = {"key": "'a'", "number": at, "visits": 3, "share": 3 / 5}
    assert partition["busiest"][0] == hottest
    shards = {one["number"]: one["busiest"] for one in partition["busiest_numbers"]}
    assert shards[at][0] == hottest
    assert source["latency"]["whole"]["count"] == 4
    assert found["phases"]["addBatch"] > 0
    assert found["backlog"] == 0
    (executor,), (host,) = found["executors"], found["hosts"]
    assert executor["executor"] == "driver"
    assert executor["tasks"] >= 2
    assert executor["seconds"] > 0
    assert host["records"] == 4 + 5  # frames, and messages at the state step
    assert host["seconds"] >= 5 * 0.005
    assert found["kept"]["log_bytes"] > 0
    assert found["kept"]["log_written"] <= found["time"]
    assert found["kept"]["restarts"] == 0
    first = followed[0]
    assert (first.source, first.sequence, list(first.delivered)) == ("p", 0, [("p", 0)])
    words_of_it = [(0, 0), (0, 1), (0, 2)]
    assert [(visit.node, visit.lineage, visit.error) for visit in first.visits.kept] == [
        *((0, (0,), None), (1, (0,), None)),
        # At the state step first where the key is found, then where the entity is.
        *[(node, lineage, None) for node in (2, 3, 3, 4) for lineage in words_of_it],
    ]
    slept = [visit for visit in first.visits.kept if visit.node == 2]
    assert all(visit.ended - visit.began >= 5_000_000 for visit in slept)
    assert first.arrived <= slept[0].began < slept[-1].ended <= first.ended


@shared
def test_a_stalled_sink_is_named_before_and_when_the_log_is_full(spark_engine, monkeypatch):
    session()
    noted = Watch.made

    def noted_and_looked_at(watch, outputs):
        noted(watch, outputs)
        registry.tick()

    monkeypatch.setattr(Watch, "made", noted_and_looked_at)
    big = b"x" * 20_000
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # the system takes little
        application = counting(listener.getsockname()[1])
        registry = Registry(application, "spark")
        own = {"checkpoint": None, "log_bytes": 2 << 20, "batch_bytes": 1 << 20}
        handle = spark_engine.serve(
            application,
            ServeOptions(partitions=2, stop_timeout=120, metrics=registry, options=own),
        )
        peer, _ = listener.accept()

        def figures():
            registry.tick()
            return snapshot(registry)

        def stalled():
            found = figures()["verdict"]
            return found["level"] == "bad" and found["text"].startswith("Sink p/0 is slow; ")

        with socket.create_connection(handle.addresses["p"]) as connection:
            sender = threading.Thread(target=connection.sendall, args=(frames([big] * 400),))
            sender.start()
            eventually(stalled, 240, lambda: figures()["verdict"])
            found = figures()
            assert found["verdict"]["text"].endswith("; sources are held back.")
            assert found["sinks"][0]["full"]
            assert found["sinks"][0]["waiting_for"] >= 1
            assert found["sources"][0]["backlog"] == found["backlog"] > 0
            assert len(found["not_ready"]) == 1
            assert found["not_ready"][0].startswith("sources are not read: sink p/0 is slow, and ")
            reader = threading.Thread(target=read_all, args=(peer,))
            reader.start()
            eventually(lambda: figures()["sinks"][0]["written"] == 400, 300)
            eventually(lambda: figures()["processed"] == 400, 60)
            sender.join()
        found = figures()
        assert (found["ready"], found["held_back"]) == (True, "")
        assert (found["sources"][0]["backlog"], found["sinks"][0]["waiting_for"]) == (0, None)
        handle.stop()
        assert handle.wait(300).problem is None
        reader.join()
        peer.close()
