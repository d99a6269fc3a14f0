"""Messages and outputs as columns: the order in which runs are merged, and how they travel."""

from __future__ import annotations

import pickle

import pytest
from wallaroo_spark.wire.outbox import Messages, Outputs, arrivals, outputs_in_order


def messages(node, *lineages):
    run = Messages(node)
    for lineage in lineages:
        run.lineages.append(lineage)
        run.keys.append(b"key")
        run.messages.append(str(lineage))
    return run


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


def test_order_1_of_one_lineage_the_earlier_step_comes_first():
    runs = [messages(5, (0, 1), (1, 0)), messages(2, (0,), (1, 0))]
    assert [(lineage, node) for lineage, node, *_ in arrivals(runs)] == [
        ((0,), 2),
        ((0, 1), 5),
        ((1, 0), 2),
        ((1, 0), 5),
    ]


@pytest.mark.parametrize(
    "lineages",
    [[], [(0,), (7,)], [(0, 2, 1), (1 << 40, 0, 3)], [(0, -1, (1 << 70, b"k"), 5), (0,)]],
    ids=str,
)
def test_a_run_travels_as_it_is(lineages):
    run = messages(1, *lineages)
    assert pickle.loads(pickle.dumps(run, 5)) == run
    outputs = Outputs(2, run.lineages, [b"a"] * len(lineages))
    assert pickle.loads(pickle.dumps(outputs, 5)) == outputs
