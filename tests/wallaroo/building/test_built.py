"""What a builder builds."""

from builder_parts import (
    Counts,
    CountsBuilder,
    Doubling,
    begun,
    count,
    count_each,
    double,
    refused,
    sink,
    source,
    split,
)
from small_steps import first

import wallaroo
from wallaroo import ApplicationBuilder
from wallaroo.operations import Stateless
from wallaroo.topology import Sink, Source, Step

CALLS = [
    ("new_pipeline", "p", source()),
    ("to", split),
    ("to_parallel", double),
    ("to_stateful", count, Counts, "all"),
    ("to_state_partition", count_each, Counts, "some", first, ["a", "b"]),
    ("to_state_partition_u64", count, CountsBuilder(), "numbers", first),
    ("to_sinks", [sink(1), sink(2)]),
    ("new_pipeline", "q", source()),
    ("to_stateful", count, Counts, "all"),
    ("done",),
]


def test_build_1_calls_chain_or_stand_alone():
    chained = alone = ApplicationBuilder("app")
    for method, *arguments in CALLS:
        chained = getattr(chained, method)(*arguments)
    application = chained.build()
    assert application == alone.build()
    kinds = [type(node) for node in application.nodes]
    assert kinds == [Source, *[Step] * 5, Sink, Sink, Source, Step]
    names = ["split it", "double it", "count it", "count each", "count it", "count it"]
    assert [step.name for step in application.steps] == names
    assert [part.name for part in application.partitions] == ["all", "some", "numbers"]


def test_graph_1_both_forms_build_the_same_topology():
    builder, pipelines = ApplicationBuilder("app"), []
    for name, *steps, end in (
        ("p", ("to", split), ("to_parallel", double), ("to_sinks", [sink(1), sink(2)])),
        ("a", ("to_parallel", Doubling()), ("to_sink", sink(3))),
    ):
        config = source()
        builder.new_pipeline(name, config)
        pipeline = wallaroo.source(name, config)
        for method, given in (*steps, end):
            getattr(builder, method)(given)
            pipeline = getattr(pipeline, method)(given)
        pipelines.append(pipeline)
    application = wallaroo.build_application("app", *pipelines)
    assert application == builder.build()
    assert [step.position for step in application.steps] == [0, 1, 0]
    operations = [step.operation for step in application.steps]
    assert [one.parallel for one in operations if isinstance(one, Stateless)] == [False, True, True]


def test_graph_1_positions_count_from_0_in_each_pipeline():
    builder = begun().to(double).to(split).done().new_pipeline("q", source()).to(double).done()
    steps = builder.build().steps
    assert [(step.pipeline, step.position) for step in steps] == [("p", 0), ("p", 1), ("q", 0)]


def test_build_1_a_builder_may_build_twice_and_go_on():
    builder = begun().to(double).done()
    first_one = builder.build()
    second_one = builder.new_pipeline("q", source()).done().build()
    assert list(first_one.sources) == ["p"]
    assert list(second_one.sources) == ["p", "q"]


def test_build_1_an_error_leaves_the_builder_as_it_was():
    builder = begun()
    for call in (
        lambda: builder.to(count),
        lambda: builder.to_stateful(double, Counts, "left over"),
        lambda: builder.to_state_partition(count, CountsBuilder, "left over", first),
        lambda: builder.to_sinks([sink(), None]),
        lambda: builder.to_sinks([]),
    ):
        refused(call)
    application = builder.to(double).done().build()
    assert [type(node) for node in application.nodes] == [Source, Step]
    assert application.partitions == ()
