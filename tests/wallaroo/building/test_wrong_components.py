"""What a builder says of components of the wrong kind."""

from __future__ import annotations

import pytest
from builder_parts import (
    Counting,
    Counts,
    CountsBuilder,
    Doubling,
    WantsArguments,
    begun,
    count,
    count_each,
    decode,
    double,
    encode,
    first,
    plain,
    plain_with_state,
    refused,
    sink,
    source,
    split,
)

from wallaroo import ApplicationBuilder


@pytest.mark.parametrize("method", ["to", "to_parallel"])
@pytest.mark.parametrize(
    ("component", "call", "parts"),
    [
        (count, "count", ["'count it' is a state computation", ".to_stateful(count, STATE"]),
        (Counting(), "Counting", ["'counting' is a state computation", ".to_state_partition("]),
        (count_each, "count_each", ["'count each' is a state computation"]),
        (plain, "plain", ['Write: @wallaroo.computation(name="…")']),
        (lambda message: message, "<lambda>", ['@wallaroo.computation(name="…")']),
        (Counts, "Counts", ["not a computation", "compute or compute_multi"]),
        (Counts(), "Counts", ["not a computation", "compute nor compute_multi"]),
        (decode, "decode", ["not a computation"]),
        (first, "first", ["not a computation"]),
        (WantsArguments, "WantsArguments", ["not a computation"]),
        (None, "", ["not a computation"]),
        ("double", "str", ["not a computation"]),
    ],
)
def test_build_1_a_computation_of_the_wrong_kind(method, component, call, parts):
    where = f"application 'app', pipeline 'p', {method}({call})"
    refused(lambda: getattr(begun(), method)(component), where, *parts)


class NoName:
    def compute(self, data):
        return data


class NameIsNoMethod(NoName):
    name = "no method"


class NameWantsMore(NoName):
    def name(self, language):
        return language


class EmptyName(NoName):
    def name(self):
        return ""


class NumberName(NoName):
    def name(self):
        return 7


class Both(Doubling):
    def compute_multi(self, data):
        return [data]


class NoArguments(Doubling):
    def compute(self):
        return 1


class ThreeArguments(Doubling):
    def compute(self, data, state, more):
        return 1


class ComputeIsNoMethod(Doubling):
    compute = 5


class WithArguments(Doubling):
    def __init__(self, factor):
        self.factor = factor


class Raises(Doubling):
    def __init__(self):
        raise OSError("no such file")


@pytest.mark.parametrize(
    ("component", "parts"),
    [
        (NoName, ["NoName", "no method name"]),
        (NameIsNoMethod, ["NameIsNoMethod", "no method name"]),
        (NameWantsMore, ["NameWantsMore.name(language)", "no argument"]),
        (EmptyName, ["EmptyName", "name() returned ''"]),
        (NumberName, ["NumberName", "name() returned 7"]),
        (Both, ["Both", "both compute and compute_multi"]),
        (NoArguments, ["NoArguments.compute()", "one argument"]),
        (ThreeArguments, ["ThreeArguments.compute(data, state, more)", "one argument"]),
        (ComputeIsNoMethod, ["ComputeIsNoMethod", "no method compute"]),
        (WithArguments, ["WithArguments()", "TypeError", "Hand over an instance"]),
        (Raises, ["Raises()", "OSError: no such file"]),
    ],
)
def test_build_1_a_class_that_is_no_computation(component, parts):
    refused(lambda: begun().to(component), f"to({component.__name__})", *parts)


STATEFUL = {
    "to_stateful": lambda computation, state="": begun().to_stateful(
        computation, Counts if state == "" else state, "s"
    ),
    "to_state_partition": lambda computation, state="": begun().to_state_partition(
        computation, Counts if state == "" else state, "s", first
    ),
    "to_state_partition_u64": lambda computation, state="": begun().to_state_partition_u64(
        computation, Counts if state == "" else state, "s", first
    ),
}


@pytest.mark.parametrize("method", STATEFUL)
@pytest.mark.parametrize(
    ("component", "parts"),
    [
        (double, ["'double it' is a computation without state", ".to(double)"]),
        (split, ["'split it' is a computation without state", ".to(split)"]),
        (Doubling(), ["'doubling' is a computation without state", ".to(Doubling"]),
        (Counting, ["Counting is a class", "Write: Counting()"]),
        (plain_with_state, ['Write: @wallaroo.state_computation(name="…")']),
        (Counts(), ["Counts is not a state computation"]),
        (None, ["not a state computation"]),
    ],
)
def test_build_1_a_state_computation_of_the_wrong_kind(method, component, parts):
    refused(
        lambda: STATEFUL[method](component), f"application 'app', pipeline 'p', {method}(", *parts
    )


@pytest.mark.parametrize("method", STATEFUL)
@pytest.mark.parametrize(
    ("state", "parts"),
    [
        (CountsBuilder, ["CountsBuilder is a class with a build method", "Write: CountsBuilder()"]),
        (WantsArguments, ["WantsArguments()", "__init__ wants arguments"]),
        (Counts(), ["Counts is not a state builder", "not an instance"]),
        (plain, ["plain is not a state builder"]),
        (0, ["int is not a state builder"]),
    ],
)
def test_build_1_a_state_of_the_wrong_kind(method, state, parts):
    where = f"application 'app', pipeline 'p', {method}(count)"
    refused(lambda: STATEFUL[method](count, state), where, *parts)


def test_build_1_to_stateful_with_the_computation_alone():
    for arguments in ((count,), (count, Counts)):
        refused(
            lambda arguments=arguments: begun().to_stateful(*arguments),
            "application 'app', pipeline 'p', to_stateful(count)",
            ".to_stateful(count, STATE, STATE_NAME)",
        )


class PartitionOfTwo:
    def partition(self, data, partitions):
        return 0


@pytest.mark.parametrize("method", ["to_state_partition", "to_state_partition_u64"])
@pytest.mark.parametrize(
    ("function", "parts"),
    [
        (plain, ["plain is a plain function", "Write: @wallaroo.partition above it"]),
        (double, ["no method partition"]),
        (Counts, ["Counts is not a partition function"]),
        (PartitionOfTwo, ["PartitionOfTwo.partition(data, partitions)", "one argument"]),
        (None, ["NoneType is not a partition function"]),
        (["a"], ["list is not a partition function"]),
    ],
)
def test_build_1_a_partition_function_of_the_wrong_kind(method, function, parts):
    where = f"application 'app', pipeline 'p', {method}(count)"
    refused(lambda: getattr(begun(), method)(count, Counts, "s", function), where, *parts)


@pytest.mark.parametrize("config", [None, 7010, ("127.0.0.1", 7010), decode, sink()])
def test_build_1_a_source_of_the_wrong_kind(config):
    refused(
        lambda: ApplicationBuilder("app").new_pipeline("p", config),
        "application 'app', pipeline 'p'",
        "expected a source",
        ".new_pipeline('p', wallaroo.TCPSourceConfig(HOST, PORT, DECODER))",
    )


@pytest.mark.parametrize("config", [None, encode, source(), [sink()]])
def test_build_1_a_sink_of_the_wrong_kind(config):
    where = ["application 'app', pipeline 'p', to_sink", "expected a sink", ".to_sink(wallaroo.TCP"]
    refused(lambda: begun().to_sink(config), *where)
    refused(lambda: begun().to_sinks([sink(), config]), *where)


@pytest.mark.parametrize("configs", [None, [], (), sink(), "sinks"])
def test_build_1_sinks_are_a_list(configs):
    refused(
        lambda: begun().to_sinks(configs),
        "application 'app', pipeline 'p', to_sinks()",
        "a list of one sink or more",
        ".to_sinks([wallaroo.TCPSinkConfig(HOST, PORT, ENCODER), …])",
    )
