"""Names of every kind (build-1)."""

import pytest
from small_steps import (
    Seen,
)

import wallaroo


@pytest.mark.parametrize(
    "name", ["a b", "1", "é", "\n", "'", '"""', "\\", "\0", "\ud800", "def", "#"]
)
def test_build_1_any_name_will_do(add_pipeline, run, name):
    compute = wallaroo.computation(name=name)(lambda message: message)
    fail = wallaroo.state_computation(name=name)(lambda message, state: 1 / 0)
    builder = wallaroo.ApplicationBuilder(name)
    add_pipeline(builder, ("to", compute), ("to_stateful", fail, Seen, name), name=name)
    result = run(builder.build(), [(name, b"a")])
    assert [letter.step for letter in result.dead_letters] == [name]
