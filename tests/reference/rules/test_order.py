"""In which order messages, outputs and dead letters come, however long the pipeline."""

from __future__ import annotations

import pytest
from small_steps import (
    Seen,
    first,
    identity,
    multi,
    stateful,
    stateful_multi,
)

import wallaroo


@pytest.mark.parametrize("steps", [30])
def test_order_1_deep_pipelines_of_every_kind(app, run, letters, steps):
    @multi
    def twice(text):
        return [None, text]

    @stateful_multi
    def again(text, state):
        state.items.append(text)
        return iter([text]), True

    @stateful
    def count(text, state):
        state.items.append(text)
        return text, True

    many = [
        [
            ("to", twice),
            ("to_stateful", again, Seen, f"s{n}"),
            ("to_state_partition", count, Seen, f"t{n}", first),
            ("to", identity),
        ][n % 4]
        for n in range(steps)
    ]
    refuse = wallaroo.encoder(lambda text: 1 / 0 if text == "x" else text)
    result = run(app(*many, encoder=[refuse, refuse]), [b"a", b"x", b"b"])
    assert result.outputs == {("p", 0): [b"a", b"b"], ("p", 1): [b"a", b"b"]}
    multis = [0 if n % 4 else 1 for n in range(steps) if n % 4 < 2]
    assert letters(result) == [((1, *multis), None, sink, None, "encode") for sink in (0, 1)]


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
