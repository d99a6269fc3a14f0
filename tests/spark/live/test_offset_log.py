"""The log that stands in Spark's offsets: what a run has left, the next one finds."""

import json
import os
from pathlib import Path

import pytest
from wallaroo_spark.live.log_feed import LogFeed
from wallaroo_spark.live.offset_log import OffsetLog
from wallaroo_spark.live.resume import Resume
from wallaroo_spark.live.spark_part import cut_last, read_spark_part
from wallaroo_spark.wire.job import CaseSpec, Topic, unpack

from wallaroo.records import Assigned, End, Tick
from wallaroo.transport.identity import CheckpointError
from wallaroo.transport.input_log import InputLogError

FOLDER = Path("not needed here")


def filled(log):
    log.append_records([Assigned("s", ((0, 5, 40), (1, 0, None)), 10, "id"), Tick(20)])
    log.append_offsets("s", 0, 5, 34, 30)
    log.append_records([End("s", 15, partition=0), End("s", 31, "ValueError", "no")])
    return log


def shown(runs):
    return [(*run.place, len(run.payloads)) if run.kind.name == "OFFSETS" else run for run in runs]


def test_recover_1_a_micro_batch_that_is_not_committed_is_found_again():
    log = filled(OffsetLog(FOLDER, 100, 7))
    offset = json.loads(json.dumps({"next": 134, **log.kept(100, 134)}))
    again = OffsetLog.restored(FOLDER, 100, offset)
    assert (again.first_sequence, again.next_sequence, again.latest_at) == (100, 134, 31)
    assert again.runs(100, 134) == log.runs(100, 134)
    assert [run.at for run in again.runs(100, 134)] == [10, 20, 30, 30, 31]  # time-1
    assert shown(again.runs(110, 120)) == [(0, 13, 10)]  # kafka-1: number and offset run together
    again.drop_before(134)
    assert (again.first_sequence, again.runs(134, 134)) == (134, [])


def test_what_is_committed_is_not_found_again():
    log = filled(OffsetLog(FOLDER))
    again = OffsetLog.restored(FOLDER, 34, {"next": 34, **log.kept(0, 34)})
    assert (again.first_sequence, again.next_sequence, again.latest_at) == (34, 34, 31)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({}, id="no records"),
        pytest.param({"records": [["TICK", "", 1, 2, ""]]}, id="too few"),
        pytest.param({"records": [["OFFSETS", "s", 1, 6, ""]]}, id="offsets of no partition"),
    ],
)
def test_an_offset_that_does_not_say_what_is_in_it_is_refused(said):
    with pytest.raises(CheckpointError, match="up to 9 does not say what they are"):
        OffsetLog.restored(FOLDER, 3, {"next": 9, **said})


def feed_of(log, failures, **options):
    case = CaseSpec(b"an application", partitions=1, isolated=True)
    options = {"tasks": 1, "batch_bytes": 1 << 20, "resume": Resume(), "timed": True, **options}
    return LogFeed(log, case, failed=failures.append, **options)


def test_kafka_15_what_spark_has_planned_is_on_disk_before_tasks_begin(tmp_path, monkeypatch):
    for name in ("8", "9", "10", ".10.crc"):
        (tmp_path / name).write_bytes(b"")
    synced, fsync = [], os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink()) or fsync(fd)
    )
    failures = []
    feed = feed_of(filled(OffsetLog(tmp_path)), failures)
    assert feed.blocks(1, 2)
    assert synced == [tmp_path / "10", tmp_path]
    (tmp_path / "10").unlink()
    (tmp_path / "10").mkdir()
    with pytest.raises(InputLogError):
        feed.blocks(1, 2)
    assert failures == [f"{tmp_path} cannot be synced: Is a directory"]
    feed.close()


def test_a_micro_batch_that_is_too_large_is_cut_and_what_is_behind_it_comes_next(tmp_path):
    part, topics = tmp_path / "spark", {"s": Topic("t", "b:1", (), True, False, False)}
    for folder in ("offsets", "commits"):
        (part / folder).mkdir(parents=True)

    def planned(number, feed, start):
        """Do what Spark does when it plans a micro-batch, and return where that ends."""
        end = feed.latest(start)
        settings = json.dumps({"conf": {"spark.sql.shuffle.partitions": "2"}})
        offset = json.dumps({"next": end, **feed.kept(start, end)})
        (part / "offsets" / str(number)).write_text(f"v1\n{settings}\n{offset}")
        feed.blocks(start, end)
        return end

    feed = feed_of(OffsetLog(part / "offsets"), [], topics=topics)
    feed.append_offsets("s", 0, 30, 59, 7)
    assert planned(0, feed, 0) == 30
    at_first = feed.sources
    assert cut_last(part, 7, 100) == (30, 2)
    feed.cut(2)
    [block] = feed.blocks(0, 2)
    assert [run.items for run in unpack(block).frames] == [range(30, 32)]
    assert feed.sources["s"].position.offsets == {0: 32}
    assert at_first["s"].position.offsets == {0: 60}
    (part / "commits" / "0").touch()
    assert read_spark_part(part)[:2] == (2, 30)  # the rest may have left in another attempt
    assert planned(1, feed, 2) == 4
    feed.fetched(2, 10)
    assert feed.latest(4) == 4 + 16  # eight times as many as before
    feed.close()

    found = read_spark_part(part)
    log = OffsetLog.restored(part / "offsets", found.committed, found.offset)
    assert (log.first_sequence, log.next_sequence) == (2, 30)
    assert shown(log.runs(2, 30)) == [(0, 32, 28)]
    feed = feed_of(log, [], topics=topics, planned=found.planned)
    assert feed.kept(4, 6)["planned"] == 30
    feed.close()
