"""What pipelines and windows refuse when they are built, and what the errors say to write."""

from __future__ import annotations

import pytest
from builder_parts import begun, count, decode, double, encode, first, refused, sink, source
from small_windows import Gather

import wallaroo
from wallaroo import (
    GenSourceConfig,
    build_application,
    count_windows,
    range_windows,
    seconds,
    session_windows,
)


@wallaroo.state_computation(name="own", state=list)
def own(message, state):
    return message


class Bare:
    """An aggregation without combine."""

    def initial_accumulator(self):
        return 0

    def update(self, message, accumulator):
        return accumulator

    def output(self, key, accumulator):
        return accumulator


def words():
    return wallaroo.source("words", source())


def names():
    return wallaroo.source("names", source())


TEN = range_windows(seconds(10))


def test_graph_1_a_pipeline_left_open():
    refused(
        lambda: build_application("app", words().to(double)),
        "application 'app', pipeline 'words'",
        ".to_sink(wallaroo.TCPSinkConfig(HOST, PORT, ENCODER)) or .done()",
    )


@pytest.mark.parametrize("end", [lambda p: p.done(), lambda p: p.to_sink(sink())])
@pytest.mark.parametrize(
    "call",
    [
        lambda p: p.to(double),
        lambda p: p.to_parallel(double),
        lambda p: p.key_by(first),
        lambda p: p.collect(),
        lambda p: p.merge(words()),
        lambda p: words().merge(p),
        lambda p: p.to_sink(sink()),
        lambda p: p.to_sinks([sink()]),
        lambda p: p.done(),
    ],
)
def test_graph_1_a_step_behind_the_end(end, call):
    refused(lambda: call(end(words())), "the pipeline has ended already", "before the end")


def test_graph_1_an_application_without_pipelines_or_with_something_else():
    refused(lambda: build_application("app"), "wallaroo.build_application('app', PIPELINE, …)")
    refused(lambda: build_application("app", double), "expected a pipeline")
    refused(lambda: build_application("", words().done()), "an application's name")
    refused(lambda: build_application(words().done()), "an application's name")


def test_graph_1_a_source_of_no_name_or_no_config():
    refused(lambda: wallaroo.source("", source()), "a pipeline's name is a non-empty str")
    refused(lambda: wallaroo.source("p", decode), "wallaroo.TCPSourceConfig(HOST, PORT, DECODER)")
    refused(lambda: wallaroo.source("p", sink()), "expected a source")


def test_graph_1_two_sources_of_one_name_and_two_of_one_address():
    both = words().merge(words()).done()
    refused(lambda: build_application("app", both), "two sources have that name")
    both = wallaroo.source("a", source(7010)).merge(wallaroo.source("b", source(7010))).done()
    refused(lambda: build_application("app", both), "7010", "give each its own port")


def test_graph_1_no_sinks():
    for given in ([], None, sink()):
        refused(lambda given=given: words().to_sinks(given), ".to_sinks([")
    refused(lambda: words().to_sink(encode), ".to_sink(wallaroo.TCPSinkConfig(")


def test_graph_3_both_or_neither_have_a_key():
    refused(lambda: words().key_by(first).merge(names()), "'names'", ".collect() on both sides")
    refused(lambda: words().merge(names().key_by(first)), "'words'", "key_by(KEY_EXTRACTOR)")
    assert words().collect().merge(names().key_by(first))
    refused(lambda: words().merge(double), "merge(): expected a pipeline", "wallaroo.source(NAME")


def test_graph_5_two_steps_of_one_name():
    refused(
        lambda: build_application("app", words().to(double).to(double).done()),
        "step 'double it'",
        "Write another name=",
    )
    refused(
        lambda: build_application("app", words().to(own).to(own).done()),
        "step 'own'",
        "state_name= where both share a state",
    )
    windows = TEN.over(Gather())
    refused(lambda: build_application("app", words().to(windows).to(windows).done()), "'gather'")
    renamed = wallaroo.computation(name="gather")(lambda message: message)
    refused(lambda: build_application("app", words().to(windows).to(renamed).done()), "'gather'")


def test_key_1_no_key_extractor():
    refused(
        lambda: words().key_by(double),
        "pipeline 'words', key_by(double): double is not a partition function",
    )
    refused(lambda: words().key_by(None), "key_by(")


def test_key_3_a_state_computation_of_the_builder_s_form():
    refused(
        lambda: words().to(count),
        "'count it' is a state computation that does not say its state",
        '@wallaroo.state_computation(name="count it", state=STATE)',
    )


def test_key_3_one_of_the_pipeline_s_form_in_the_builder():
    for call in (
        lambda: begun().to_stateful(own, list, "own"),
        lambda: begun().to_state_partition(own, list, "own", first),
        lambda: begun().to_state_partition_u64(own, list, "own", first),
    ):
        refused(call, "'own' names its own state", "without state=", "(output, changed)")
    refused(lambda: begun().to(own), "own")


def test_key_3_a_step_with_state_in_parallel():
    for step in (own, TEN.over(Gather())):
        refused(lambda step=step: words().to_parallel(step), "to_parallel(", "Write: .to(")


def test_key_3_a_state_that_is_none():
    for given in (WantsArguments, 5):
        step = wallaroo.state_computation(name="wrong", state=given)(lambda message, state: None)
        refused(lambda step=step: build_application("app", words().to(step).done()), "step 'wrong'")


class WantsArguments:
    def __init__(self, size):
        self.size = size


def test_key_3_a_name_or_a_time_for_a_state_that_is_not_said():
    for more in ({"state_name": "x"}, {"expire_after": 5}):
        refused(
            lambda more=more: wallaroo.state_computation(name="c", **more),
            "has no state",
            "state=STATE",
        )


@pytest.mark.parametrize("expire_after", [0, -1, 1.5, True, "1"])
def test_key_4_what_is_no_duration(expire_after):
    step = wallaroo.state_computation(name="c", state=list, expire_after=expire_after)(
        lambda message, state: None
    )
    refused(lambda: build_application("app", words().to(step).done()), "expire_after")
    refused(
        lambda: begun().to_stateful(count, list, "s", expire_after=expire_after), "expire_after"
    )


def test_state_8_those_that_share_agree_on_expiry():
    steps = [
        wallaroo.state_computation(name=name, state=list, state_name="s", expire_after=after)(
            lambda message, state: None
        )
        for name, after in (("one", None), ("other", seconds(5)))
    ]
    refused(
        lambda: build_application("app", words().to(steps[0]).to(steps[1]).done()),
        "no expire_after there, expire_after 5 s here",
    )


def test_window_1_an_aggregation_without_a_window():
    for given in (Gather(), Gather):
        refused(
            lambda given=given: words().to(given),
            "is an aggregation, and has no window",
            "wallaroo.range_windows(wallaroo.seconds(60)).over(",
        )
        refused(lambda given=given: begun().to(given), "is an aggregation, and has no window")


def test_window_1_windows_without_an_aggregation():
    for windows in (wallaroo.range_windows(7), wallaroo.session_windows(7)):
        for begin, call in ((words, "to"), (begun, "to_window")):
            refused(
                lambda windows=windows, begin=begin: begin().to(windows),
                f"without an aggregation. Write: .{call}(WINDOWS.over(AGGREGATION))",
            )


def test_window_1_windows_that_are_not_over_an_aggregation():
    refused(lambda: words().to(TEN), "pipeline 'words', to(")
    refused(lambda: begun().to_window(TEN), "expected windows over an aggregation")
    refused(lambda: begun().to(TEN.over(Gather())), ".to_window(WINDOW, PARTITION_FUNCTION")
    refused(lambda: TEN.over(double), "double is not an aggregation")
    refused(lambda: TEN.over(None), "not an aggregation")


def test_window_1_two_window_steps_keep_no_windows_together():
    step = TEN.over(Gather())
    refused(lambda: begun().to_window(step).to_window(step), "another STATE_NAME")
    refused(lambda: begun().to_window(step, first, ""), "a non-empty str")


def test_window_5_a_missing_combine():
    text = "Write: def combine(self, earlier, later): …"
    refused(lambda: TEN.with_slide(seconds(5)).over(Bare), "Bare has no combine", text)
    refused(lambda: session_windows(5).over(Bare()), "Bare has no combine", text)
    assert TEN.over(Bare)
    assert TEN.with_slide(seconds(10)).over(Bare)
    assert count_windows(2).over(Bare)


@pytest.mark.parametrize("missing", ["initial_accumulator", "update", "output"])
def test_window_4_a_missing_method(missing):
    methods = {name: getattr(Bare, name) for name in ("initial_accumulator", "update", "output")}
    del methods[missing]
    refused(
        lambda: TEN.over(type("Partial", (), methods)()), "Partial is not an aggregation", missing
    )


def test_window_4_a_method_of_another_arity():
    class Wrong(Bare):
        def update(self, message):
            return message

    refused(lambda: TEN.over(Wrong()), "update")

    class WrongOutput(Bare):
        def output(self, accumulator):
            return accumulator

    refused(lambda: TEN.over(WrongOutput()), "output")


@pytest.mark.parametrize("generator", [object(), [1, 2], None, decode])
def test_graph_4_no_generator(generator):
    refused(lambda: GenSourceConfig(generator), "GenSourceConfig")
    refused(lambda: GenSourceConfig("name", generator), "GenSourceConfig")
