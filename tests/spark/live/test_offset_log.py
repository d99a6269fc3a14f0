"""The log that stands in Spark's offsets: what a run has left, the next one finds."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from wallaroo_spark.live.log_feed import LogFeed
from wallaroo_spark.live.offset_log import OffsetLog
from wallaroo_spark.live.resume import Resume
from wallaroo_spark.wire.job import CaseSpec

from wallaroo.records import Assigned, End, Tick
from wallaroo.transport.checkpoint import CheckpointError
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


@pytest.mark.parametrize("offset", [{"next": 9}, {"next": 9, "records": [["TICK", "", 1, 2, ""]]}])
def test_an_offset_that_does_not_say_what_is_in_it_is_refused(offset):
    with pytest.raises(CheckpointError, match="up to 9 does not say what they are"):
        OffsetLog.restored(FOLDER, 3, offset)


def test_kafka_15_what_spark_has_planned_is_on_disk_before_tasks_begin(tmp_path, monkeypatch):
    for name in ("8", "9", "10", ".10.crc"):
        (tmp_path / name).write_bytes(b"")
    synced, fsync = [], os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda fd: synced.append(Path(f"/proc/self/fd/{fd}").readlink()) or fsync(fd)
    )
    failures = []
    case = CaseSpec(b"an application", partitions=1, isolated=True)
    feed = LogFeed(
        filled(OffsetLog(tmp_path)),
        case,
        tasks=1,
        batch_bytes=1,
        failed=failures.append,
        resume=Resume(),
        timed=True,
    )
    assert feed.blocks(1, 2)
    assert synced == [tmp_path / "10", tmp_path]
    (tmp_path / "10").unlink()
    (tmp_path / "10").mkdir()
    with pytest.raises(InputLogError):
        feed.blocks(1, 2)
    assert failures == [f"{tmp_path} cannot be synced: Is a directory"]
    feed.close()
