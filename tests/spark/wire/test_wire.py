"""What travels between workers and the driver: runs of messages, lineages, rows."""

import pickle
import random
import subprocess
import sys
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wallaroo_spark.wire.job import Address, Fetched, Held, Report, Row, Sent
from wallaroo_spark.wire.lineages import numbering
from wallaroo_spark.wire.outbox import (
    End,
    Finished,
    Messages,
    Outputs,
    arrivals,
    in_order,
    outputs_in_order,
)
from wallaroo_spark.wire.rows import ARROW_SCHEMA, from_batch, to_batch

from wallaroo.metrics.figures import Harvest
from wallaroo.metrics.following import Visits
from wallaroo.user_code.output import Line


def messages(node, *lineages):
    return Messages(node, lineages, [b"key"] * len(lineages), list(map(str, lineages)))


@pytest.mark.parametrize(
    "runs",
    [
        [messages(3, (0,), (1,)), messages(3, (2,), (5,))],
        [messages(3, (2,), (5,)), messages(3, (0,), (1,))],
        [messages(3, (0,), (5,)), messages(3, (1,), (2,))],
        [messages(3), messages(3, (0,), (1,), (2,), (5,))],
    ],
    ids=["one after the other", "in the wrong order", "overlapping", "with an empty one"],
)
def test_order_1_runs_are_merged_by_lineage(runs):
    merged = arrivals(runs)
    assert merged == [((n,), 3, b"key", str((n,)), None) for n in (0, 1, 2, 5)]
    outputs = [Outputs(4, run.lineages, run.messages) for run in runs]
    assert outputs_in_order(outputs) == [(lineage, text) for lineage, _, _, text, _ in merged]


def test_time_4_what_windows_gave_comes_before_the_record_itself():
    ordered = [
        (3, -2, (90, b"k")),
        (3, -1, (40, b"z")),
        (3, -1, (50, b"a"), 4),
        (3, -1, (50, b"b")),
        (3,),
        (3, 0),
    ]
    runs = [messages(1, *ordered[1::2]), messages(1, *ordered[::2])]
    assert [arrival[0] for arrival in arrivals(runs)] == ordered
    outputs = [Outputs(4, run.lineages, run.messages) for run in runs]
    assert [lineage for lineage, _ in outputs_in_order(outputs)] == ordered


def test_order_1_of_one_lineage_the_earlier_step_comes_first():
    runs = [messages(5, (0, 1), (1, 0)), messages(2, (0,), (1, 0))]
    assert [(lineage, node) for lineage, node, *_ in arrivals(runs)] == [
        ((0,), 2),
        ((0, 1), 5),
        ((1, 0), 2),
        ((1, 0), 5),
    ]


small = st.integers(0, 2)
in_runs = st.lists(
    st.tuples(st.integers(0, 3), st.sets(st.tuples(small) | st.tuples(small, small), max_size=4)),
    max_size=4,
    unique_by=lambda run: run[0],
)


@given(in_runs)
def test_order_1_any_runs_are_merged_by_lineage_and_node(runs):
    made = [messages(node, *sorted(lineages)) for node, lineages in runs]
    ordered = sorted([(lineage, node) for node, lineages in runs for lineage in lineages])
    assert [(lineage, node) for lineage, node, *_ in arrivals(made)] == ordered
    outputs = [Outputs(9, run.lineages, run.messages) for run in made]
    assert [lineage for lineage, _ in outputs_in_order(outputs)] == [one for one, _ in ordered]


@pytest.mark.parametrize(
    "lineages",
    [[], [(0,), (7,)], [(0, 2, 1), (1 << 40, 0, 3)], [(0, -1, (1 << 70, b"k"), 5), (0,)]],
    ids=str,
)
def test_a_run_travels_as_it_is(lineages):
    run = messages(1, *lineages)
    again = pickle.loads(pickle.dumps(run, 5))
    assert [*arrivals([again])] == [*arrivals([run])]
    outputs = pickle.loads(pickle.dumps(Outputs(2, run.lineages, [b"a"] * len(lineages)), 5))
    assert ([*outputs.lineages], [*outputs.outputs]) == (lineages, [b"a"] * len(lineages))
    assert [outputs.lineages[at] for at in range(-len(lineages), 0)] == lineages


@pytest.mark.parametrize("width", [1, 3])
def test_order_1_many_outputs_are_merged_as_few_are(width):
    chance = random.Random(width)
    lineages = [tuple(chance.choices(range(40), k=width)) for _ in range(3_000)]
    parts = [sorted(lineages[part::3]) for part in range(3)]
    runs = [
        Outputs(4, part, [b"%d %d" % (number, at) * (at % 3) for at in range(len(part))])
        for number, part in enumerate(parts)
    ]
    arrived = [pickle.loads(pickle.dumps(run, 5)) for run in runs]
    assert list(in_order(arrived)) == [output for _, output in outputs_in_order(runs)]
    assert list(in_order(arrived[1:2])) == runs[1].outputs


def test_time_4_windows_of_all_shards_are_numbered_by_end_and_key():
    finished = Finished(fired={(7, -1): [(10, b"b"), (20, b"a")]})
    finished.add(Finished(fired={(7, -1): [(10, b"a"), (20, b"b")], (8, -1): [(5, b"z")]}))
    numbered = numbering(finished.fired)
    assert numbered((7, -1, (10, b"a"))) == (7, -1, 0)
    assert numbered((7, -1, (10, b"b"), 3)) == (7, -1, 1, 3)
    assert numbered((7, -1, (20, b"b"))) == (7, -1, 3)
    assert numbered((8, -1, (5, b"z"))) == (8, -1, 0)
    assert numbered((7, 0)) == (7, 0)
    assert numbered((7, 1, 2)) == (7, 1, 2)


def test_dead_3_a_window_that_killed_workers_has_the_number_of_those_before_it():
    numbered = numbering({(7, -1): [(10, b"a"), (20, b"a")]})
    assert numbered((7, -1, (20, b"b"))) == (7, -1, 2)
    assert numbered((9, -1, (20, b"b"))) == (9, -1, 0)


LARGEST = 2**31 - 1


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [Row(0, 0, b"")],
        [Row(0, 0, None)],
        [Row(-LARGEST - 1, LARGEST, b"a\0"), Row(1, -1, None), Row(2, 0, b"")],
        [Row(number, 1, b"x" * number if number % 3 else None) for number in range(17)],
    ],
)
def test_a_batch_gives_the_rows_it_was_made_of(rows):
    batch = to_batch(iter(rows))
    batch.validate(full=True)
    assert batch.schema == ARROW_SCHEMA
    assert list(from_batch(batch)) == rows


def test_a_worker_needs_no_pandas_for_it():
    script = """
import sys
from wallaroo_spark.wire.job import Row
from wallaroo_spark.wire.rows import from_batch, to_batch
assert list(from_batch(to_batch([Row(0, 1, b"a")]))) == [Row(0, 1, b"a")]
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)


AN_ADDRESS = Address(0, 1, 2)
FULL = Report(
    finished={0: Finished(ends=[End((1,), "exit")])},
    printed=[Line("step", "text")],
    entities=[(AN_ADDRESS, b"id", ["int", 1], b"state")],
    held={AN_ADDRESS: Held(1)},
    span=(0, 3),
    figures=[Harvest({}, {}, 5, 0)],
    visits=Visits(left_out=1),
    worked={"host": (1, 0.5)},
    taken={AN_ADDRESS: 2},
    sent={(3, 0): Sent(1, 20)},
    fetched={"source": Fetched(1, 20, 0)},
    problem="no broker answers",
)


@pytest.mark.parametrize("name", [field.name for field in fields(Report)])
def test_what_one_task_has_to_report_comes_to_the_driver(name):
    report = Report(**{name: getattr(FULL, name)})
    assert report
    for reports in ([report, Report()], [Report(), report]):
        assert Report.merged(reports) == report
    assert not Report.merged([Report(), Report()])


def test_what_tasks_have_done_is_added_up():
    reports = [
        Report(worked={"a": (1, 0.5)}, fetched={"p": Fetched(1, 20, 1)}),
        Report(worked={"a": (2, 1.0), "b": (3, 0.25)}, fetched={"p": Fetched(2, 30, 0)}),
    ]
    merged = Report.merged(reports)
    assert merged.worked == {"a": (3, 1.5), "b": (3, 0.25)}
    assert merged.fetched == {"p": Fetched(3, 50, 1)}
