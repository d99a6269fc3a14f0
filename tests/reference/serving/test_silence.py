"""Windows that wait for a partition from which nothing comes (kafka-9): who says so, and when."""

import pytest
from small_topics import counted_by_timestamps
from wallaroo_reference.compiled.machine import Compiled
from wallaroo_reference.isolated.interpreter import Interpreter

import wallaroo
from wallaroo import KafkaRecord
from wallaroo.metrics.registry import Registry
from wallaroo.metrics.silence import Silence, named
from wallaroo.records import Assigned, End

SECOND = 10**9


class Run:
    def __init__(self, machine, **options):
        application = counted_by_timestamps(**options)
        self.machine = machine(application)
        self.registry = Registry(application, "reference")
        machine = self.machine
        self.silence = Silence(
            application, machine.moment, lambda: machine.open_windows, self.registry
        )
        self.machine.take(Assigned("s", ((0, 0, None), (1, 0, None), (2, 0, None))))

    def send(self, partition, seconds):
        record = KafkaRecord(b"", timestamp=seconds * SECOND, partition=partition)
        self.machine.feed("s", [record], seconds * SECOND, partition)

    def look(self):
        self.silence.look()
        return self.silence.partitions


@pytest.fixture(params=[Compiled, Interpreter])
def run(request):
    return lambda **options: Run(request.param, **options)


def test_silent_partitions_are_named_once_with_what_to_do(run, caplog):
    made = run()
    for second in range(40):
        made.send(0, second)
        if second < 5:
            made.send(1, second)
        if second == 20:
            assert made.look() == {}
    assert made.look() == {"s": [1, 2]}
    assert made.registry.sources["s"].silent == (1, 2)
    made.look()
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("windows wait for partitions 1 and 2 of source s: nothing came")
    assert "idle_after=" in said
    made.send(2, 41)
    made.send(1, 41)
    assert made.look() == {}
    assert made.registry.sources["s"].silent == ()


def test_what_holds_nothing_back_is_not_named(run):
    idle = run(idle_after=wallaroo.minutes(1))
    ended = run()
    for made in (idle, ended):
        for second in range(40):
            made.send(0, second)
    ended.machine.take(End("s", partition=1))
    ended.send(2, 40)
    assert (idle.look(), ended.look()) == ({}, {})


def test_few_partitions_are_named():
    assert named("s", {3}) == "partition 3 of source s"
    assert named("s", range(9)) == "partitions 0, 1, 2, 3, 4 and 4 more of source s"
