"""What tasks make of their results; no test here needs a JVM."""

from __future__ import annotations

import sys

from wallaroo_spark.wire.job import LEAVING, HeadBlock, Report, WireRun, leaving_tasks, unpack
from wallaroo_spark.wire.outbox import End, Finished, Outputs
from wallaroo_spark.worker import tasks

SHARDS = 8


def outputs(partition: int | None, number: int) -> Outputs:
    return Outputs(1, [(number,)], [b"%d" % number], partition)


def test_outputs_of_a_partition_leave_from_one_task_and_others_stay():
    finished = Finished(outputs=[outputs(None, 0), outputs(0, 1), outputs(1, 2), outputs(0, 3)])
    rows = tasks._leaving(finished, {}, SHARDS)
    assert [run.lineages for run in finished.outputs] == [[(0,)]]
    taken = [
        {(run.partition, number) for run in unpack(row.block).outputs for (number,) in run.lineages}
        for row in rows
    ]
    assert sorted(set().union(*taken)) == [(0, 1), (0, 3), (1, 2)]
    assert len([some for some in taken if {(0, 1), (0, 3)} & some]) == 1


def test_all_tasks_from_which_outputs_leave_are_told_where_the_run_ends():
    end = End((), "exit")
    rows = tasks._leaving(Finished(outputs=[outputs(0, 1)], ends=[end]), {}, SHARDS)
    assert len({row.shard for row in rows}) == len(rows) == leaving_tasks(SHARDS) > 1
    assert all(row.level == LEAVING and unpack(row.block).ends == [end] for row in rows)


def test_a_task_without_topics_needs_no_client_of_kafka(monkeypatch):
    monkeypatch.setitem(sys.modules, "wallaroo_spark.worker.fetching", None)
    block = HeadBlock({}, [WireRun(0, "p", 0, [b"a"])])
    assert list(tasks._fetched(block, Report(), {})) == block.frames
