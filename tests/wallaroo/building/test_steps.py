"""Where a step may stand."""

from __future__ import annotations

import pytest
from builder_parts import Counts, begun, count, double, first, refused, sink, source

from wallaroo import ApplicationBuilder

STEPS = {
    "to": lambda b: b.to(double),
    "to_parallel": lambda b: b.to_parallel(double),
    "to_stateful": lambda b: b.to_stateful(count, Counts, "s"),
    "to_state_partition": lambda b: b.to_state_partition(count, Counts, "s", first),
    "to_state_partition_u64": lambda b: b.to_state_partition_u64(count, Counts, "s", first),
    "to_sink": lambda b: b.to_sink(sink()),
    "to_sinks": lambda b: b.to_sinks([sink()]),
    "done": lambda b: b.done(),
}


@pytest.mark.parametrize("step", STEPS)
def test_build_1_a_step_before_any_pipeline(step):
    builder = ApplicationBuilder("app")
    refused(
        lambda: STEPS[step](builder),
        "application 'app'",
        f"{step}(",
        "before any pipeline",
        ".new_pipeline(NAME, SOURCE_CONFIG)",
    )


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("end", ["to_sink", "to_sinks", "done"])
def test_build_1_a_step_after_the_pipelines_end(step, end):
    builder = STEPS[end](begun())
    text = refused(
        lambda: STEPS[step](builder),
        "application 'app', pipeline 'p'",
        f"{step}(",
        f"ended already, with {end}(",
    )
    if step in ("to_sink", "to_sinks"):
        assert ".to_sinks([SINK_CONFIG, …])" in text


def test_build_1_a_pipeline_with_neither_sink_nor_done():
    for call in (begun().to(double).build, lambda: begun().new_pipeline("q", source())):
        refused(
            call,
            "application 'app', pipeline 'p'",
            "neither a sink nor done()",
            ".to_sink(",
            ".done()",
        )


def test_build_1_no_pipeline_at_all():
    refused(ApplicationBuilder("app").build, "application 'app'", ".new_pipeline(NAME")


def test_build_1_two_pipelines_of_one_name():
    builder = begun().done()
    refused(
        lambda: builder.new_pipeline("p", source()),
        "application 'app', pipeline 'p'",
        "of that name already",
    )


def test_build_1_two_sources_on_one_address():
    builder = ApplicationBuilder("app").new_pipeline("p", source(7010)).done()
    refused(
        lambda: builder.new_pipeline("q", source(7010)),
        "application 'app', pipeline 'q'",
        "127.0.0.1:7010",
        "pipeline 'p'",
    )
    builder.new_pipeline("q", source(7011)).done()


def test_build_1_port_0_is_no_address_yet():
    begun().done().new_pipeline("q", source(0)).done().build()


@pytest.mark.parametrize("name", ["", None, 1, b"p"])
def test_build_1_names_are_non_empty_text(name):
    refused(lambda: ApplicationBuilder(name), "application's name", repr(name))
    refused(lambda: ApplicationBuilder("app").new_pipeline(name, source()), "'app'", repr(name))
    if name is not None:
        refused(
            lambda: begun().to_stateful(count, Counts, name),
            "application 'app', pipeline 'p', to_stateful(count)",
            "state partition's name",
        )
