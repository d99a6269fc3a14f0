"""Where state is held: levels, and partitions that must be held together."""

import pytest
from small_steps import decode
from wallaroo_spark.worker.plan import plan

import wallaroo


@wallaroo.state_computation(name="keep")
def keep(message, state):
    return message, False


def build(*pipelines):
    builder = wallaroo.ApplicationBuilder("plan")
    for index, partitions in enumerate(pipelines):
        builder.new_pipeline(f"p{index}", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        for name in partitions:
            builder.to_stateful(keep, dict, name)
        builder.done()
    return plan(builder.build())


@pytest.mark.parametrize(
    ("pipelines", "expected"),
    [
        ([""], []),
        (["a"], [(0, "a", False)]),
        (["abc"], [(0, "a", False), (1, "b", False), (2, "c", False)]),
        (["ab", "b"], [(0, "a", False), (1, "b", False)]),
        (["ab", "cb"], [(0, "a", False), (1, "b", False), (0, "c", False)]),
        (["abd", "cd"], [(0, "a", False), (1, "b", False), (2, "d", False), (0, "c", False)]),
        (["aa"], [(0, "a", True)]),
        (["aba"], [(0, "ab", True)]),
        (["ab", "ba"], [(0, "ab", True)]),
        (["cabad"], [(0, "c", False), (1, "ab", True), (2, "d", False)]),
        (["ab", "bc", "ca", "ad"], [(0, "abc", True), (1, "d", False)]),
    ],
)
def test_order_1_partitions_in_a_circle_are_held_together(pipelines, expected):
    found = build(*pipelines)
    assert [(c.level, "".join(c.partitions), c.fused) for c in found.groups] == expected
    assert found.levels == max([level + 1 for level, _, _ in expected], default=0)
