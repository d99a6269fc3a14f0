"""Figures of user code in a worker: what its tasks have seen, without a JVM."""

import time

from counted import Count, line, number, text, whole
from wallaroo_spark.jvm.pickling import pickle_application
from wallaroo_spark.wire.job import FINISHED, Address, CaseSpec, HeadBlock, Report, WireRun, unpack
from wallaroo_spark.worker import tasks
from wallaroo_spark.worker.plan import plan
from wallaroo_spark.worker.segments import MemoryMap

import wallaroo
from wallaroo.keys import identity
from wallaroo.metrics.registry import Registry


@wallaroo.state_computation(name="number again")
def number_again(message, state):
    state.count += 1
    return f"{message} {state.count}", True


@wallaroo.partition
def first_word(message):
    return message.split()[0]


def test_all_calls_and_visits_inside_a_component_that_is_held_together_count_once(monkeypatch):
    monkeypatch.setattr(tasks, "begin_task", lambda: None)  # of this process's garbage
    builder = wallaroo.ApplicationBuilder("twice")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
    builder.to_state_partition(number, Count, "counts", whole)
    builder.to_state_partition(number_again, Count, "counts", first_word)
    application = builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 0, line)).build()
    (group,) = plan(application).groups
    assert group.fused
    case = CaseSpec(pickle_application(application), 1, isolated=False, measured=True)
    # The failing call makes the task process its messages once more, with copies.
    block = HeadBlock({0: case}, [WireRun(0, "p", 0, [b"a", b"bad", b"a"])])
    began = time.monotonic()
    rows = tasks.run_head(block, 1, 1)
    inside = [unpack(row.block) for row in rows if row.level == 0]
    rows += tasks.run_level(0, inside, MemoryMap(), 1)
    took = time.monotonic() - began
    reports = [unpack(row.block) for row in rows if row.level == FINISHED]
    registry = Registry(application, "spark")
    report = Report.merged(reports)
    assert report.taken == {Address(0, 0, 0): 3}
    ((records, seconds),) = report.worked.values()
    assert records == 3 + 3  # frames, and messages at the states
    assert 0 <= seconds <= took
    for harvest in report.figures:
        registry.add(harvest)
    visits = registry.partitions["counts"].busiest
    assert dict(visits.top(3)) == {identity("a"): 4, identity("bad"): 1}
    assert [(node.time.count, node.sent) for node in registry.nodes[1:3]] == [(3, 2), (2, 2)]
