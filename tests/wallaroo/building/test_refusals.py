"""What is refused when an application is described, rule by rule, and what the error says to write.

`wallaroo_conformance.language` has one mistake for each rule, which every check makes; here are all
ways to make them.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from builder_parts import (
    NO_DURATIONS,
    Counting,
    Counts,
    CountsBuilder,
    Decoding,
    Doubling,
    Numbers,
    WantsArguments,
    begun,
    count,
    count_each,
    double,
    each,
    mistakes,
    own,
    plain,
    plain_with_state,
    refused,
    sink,
    source,
    split,
    table,
    with_attributes,
    words,
)
from small_steps import decode, encode, first, identity
from small_windows import decode_event, when

import wallaroo
from wallaroo import ApplicationBuilder, GenSourceConfig, TCPSinkConfig, TCPSourceConfig, kinds
from wallaroo import build_application as build
from wallaroo.components import decoder_of, state_computation_of
from wallaroo.config import tcp_parse_input_addrs, tcp_parse_output_addrs

P = "application 'app', pipeline 'p', "


class Raises(Doubling):
    def __init__(self):
        raise OSError("no such file")


class Mistyped(kinds.Computation[str, str]):
    def name(self) -> str:
        return "mistyped"

    def comptue(self, text: str) -> str:
        return text.upper()


class Yields(Doubling):
    def compute(self, data):
        yield data


class YieldsState:
    def name(self):
        return "yields state"

    def compute_multi(self, data, state):
        yield data


class Async(Doubling):
    async def compute(self, data):
        return data


def no_name():
    raise OSError("no name today")


STATEFUL = {
    "to_stateful": lambda *given: begun().to_stateful(*given, "s"),
    "to_state_partition": lambda *given: begun().to_state_partition(*given, "s", first),
    "to_state_partition_u64": lambda *given: begun().to_state_partition_u64(*given, "s", first),
}
STEPS = {
    **{name: lambda b, name=name: getattr(b, name)(double) for name in ("to", "to_parallel")},
    "to_stateful": lambda b: b.to_stateful(count, Counts, "s"),
    "to_state_partition": lambda b: b.to_state_partition(count, Counts, "s", first),
    "to_state_partition_u64": lambda b: b.to_state_partition_u64(count, Counts, "s", first),
    "to_sink": lambda b: b.to_sink(sink()),
    "to_sinks": lambda b: b.to_sinks([sink()]),
    "done": lambda b: b.done(),
}
ENDS = ("to_sink", "to_sinks", "done")

WRONG_COMPUTATIONS = [
    (count, "count", "'count it' is a state computation", ".to_stateful(count, STATE"),
    (Counting(), "Counting", "'counting' is a state computation", ".to_state_partition("),
    (count_each, "count_each", "'count each' is a state computation"),
    (plain, "plain", 'Write: @wallaroo.computation(name="…")'),
    (lambda message: message, "<lambda>", '@wallaroo.computation(name="…")'),
    (Counts, "Counts", "not a computation", "compute or compute_multi"),
    (Counts(), "Counts", "not a computation", "compute nor compute_multi"),
    *[(one, one.__name__, "not a computation") for one in (decode, first, WantsArguments)],
    (None, "", "not a computation"),
    ("double", "str", "not a computation"),
]
WRONG_CLASSES = [
    (with_attributes(Doubling, name=None), "Odd", "no method name"),
    (with_attributes(Doubling, name=lambda self, of: of), "Odd.name(of)", "no argument"),
    (with_attributes(Doubling, name=lambda self: ""), "Odd", "name() returned ''"),
    (with_attributes(Doubling, name=lambda self: 7), "Odd", "name() returned 7"),
    (with_attributes(Doubling, compute_multi=plain), "Odd", "both compute and compute_multi"),
    (with_attributes(Doubling, compute=lambda self: 1), "Odd.compute()", "one argument"),
    (
        with_attributes(Doubling, compute=lambda self, data, state, more: 1),
        "Odd.compute(data, state, more)",
        "one argument",
    ),
    (with_attributes(Doubling, compute=5), "Odd", "no method compute"),
    (
        with_attributes(Doubling, __init__=lambda self, factor: None),
        "Odd()",
        "TypeError",
        "Hand over an instance",
    ),
    (Raises, "Raises()", "OSError: no such file"),
    (with_attributes(Doubling, name=lambda self: no_name()), "name() raised OSError: no name"),
    (Mistyped, "raised TypeError", "compute"),  # else it would inherit one that gives None
    (Yields(), "Yields", "compute_multi"),
    (Async(), "Async", "Write: def"),
]
WRONG_STATE_COMPUTATIONS = [
    (double, "'double it' is a computation without state", ".to(double)"),
    (split, "'split it' is a computation without state", ".to(split)"),
    (Doubling(), "'doubling' is a computation without state", ".to(Doubling"),
    (Counting, "Counting is a class", "Write: Counting()"),
    (plain_with_state, 'Write: @wallaroo.state_computation(name="…")'),
    (Counts(), "Counts is not a state computation"),
    (None, "not a state computation"),
    (own, "'own' names its own state", "without state=", "(output, changed)"),
]
WRONG_STATES = [
    (CountsBuilder, "CountsBuilder is a class with a build method", "Write: CountsBuilder()"),
    (WantsArguments, "WantsArguments()", "__init__ wants arguments"),
    (Counts(), "Counts is not a state builder", "not an instance"),
    (plain, "plain is not a state builder"),
    (0, "int is not a state builder"),
]
WRONG_PARTITION_FUNCTIONS = [
    (plain, "plain is a plain function", "Write: @wallaroo.partition above it"),
    (double, "no method partition"),
    (Counts, "Counts is not a partition function"),
    (
        with_attributes(object, partition=lambda self, data, partitions: 0),
        "Odd.partition(data, partitions)",
        "one argument",
    ),
    (None, "NoneType is not a partition function"),
    (["a"], "list is not a partition function"),
]
WRONG_FORMATS = [
    *[(4, given) for given in (">H", "nonsense", "", None, 5, ">HH", "4x", "4s", ">f")],
    *[(2, ">I"), (8, ">d"), (1, "?"), (1, "c")],
]
WRONG_ADDRESSES = [
    *("", "a", ":1", "a:", "a:b", "a:1,", ",a:1", "a:1,,b:2", "a:65536", "a:-1", "a:1.5", "a:²"),
    "a:" + 5000 * "9",
]
NAMED: list[Any] = [wallaroo.computation, wallaroo.computation_multi]
NAMED_WITH_STATE: list[Any] = [wallaroo.state_computation, wallaroo.state_computation_multi]


def of_builder():
    for method in ("to", "to_parallel"):
        for value, call, *said in WRONG_COMPUTATIONS:
            yield partial(getattr(begun(), method), value), f"{P}{method}({call})", *said
    for method, call in STATEFUL.items():
        where = f"{P}{method}("
        yield from table(WRONG_STATE_COMPUTATIONS, lambda c, call=call: call(c, Counts), where)
        yield from table(WRONG_STATES, partial(call, count), f"{where}count)")
    for method in ("to_state_partition", "to_state_partition_u64"):
        call = partial(getattr(begun(), method), count, Counts, "s")
        yield from table(WRONG_PARTITION_FUNCTIONS, call, f"{P}{method}(count)")
    yield from table(WRONG_CLASSES, lambda c: begun().to(c), f"{P}to(")
    yield lambda: state_computation_of(YieldsState()), "YieldsState", "return ("
    yield lambda: begun().to(own), "own"
    alone = ".to_stateful(count, STATE, STATE_NAME)"
    yield from each([(count,), (count, Counts)], lambda given: begun().to_stateful(*given), alone)


def of_edges():
    write = ".new_pipeline('p', wallaroo.TCPSourceConfig(HOST, PORT, DECODER))"
    yield from each(
        [None, 7010, ("127.0.0.1", 7010), decode, sink()],
        lambda given: ApplicationBuilder("app").new_pipeline("p", given),
        *("application 'app', pipeline 'p'", "expected a source", write),
    )
    words = (f"{P}to_sink", "expected a sink", ".to_sink(wallaroo.TCP")
    wrong = [None, encode, source(), [sink()]]
    yield from each(wrong, lambda given: begun().to_sink(given), *words)
    yield from each(wrong, lambda given: begun().to_sinks([sink(), given]), *words)
    for length, shown in ((58, "s" * 58 + "'"), (59, "s" * 59 + "…"), (999, "s" * 59 + "…")):
        yield partial(begun().to_sink, "s" * length), f"expected a sink, not str '{shown}. Write"
    write = ".to_sinks([wallaroo.TCPSinkConfig(HOST, PORT, ENCODER), …])"
    words = (f"{P}to_sinks()", "a list of one sink or more", write)
    yield from each([None, [], (), sink(), "sinks"], lambda given: begun().to_sinks(given), *words)


def of_order():
    write = ".new_pipeline(NAME, SOURCE_CONFIG)"
    for step, call in STEPS.items():
        words = ("application 'app'", f"{step}(", "before any pipeline", write)
        yield partial(call, ApplicationBuilder("app")), *words
        hint = ".to_sinks([SINK_CONFIG, …])" if step.startswith("to_sink") else "begin another"
        for end in ENDS:
            ended = STEPS[end](begun())
            yield partial(call, ended), f"{P}{step}(", f"ended already, with {end}(", hint
    words = ("pipeline 'p'", "neither a sink nor done()", ".to_sink(", ".done()")
    yield begun().to(double).build, *words
    yield lambda: begun().new_pipeline("q", source()), *words
    yield ApplicationBuilder("app").build, "application 'app'", ".new_pipeline(NAME"
    yield lambda: begun().done().new_pipeline("p", source()), "'p'", "of that name already"
    taken = ApplicationBuilder("app").new_pipeline("p", source(7010)).done()
    words = ("pipeline 'q'", "127.0.0.1:7010", "pipeline 'p'")
    yield partial(taken.new_pipeline, "q", source(7010)), *words


def of_steps():
    for step, shown in (
        (double, "double), step 'double it'"),
        (Doubling(), "Doubling), step 'doubling'"),
        (identity, "identity)"),
        (plain, "plain)"),
        (Counts(), "Counts)"),
    ):
        yield partial(begun().done().to, step), f"{P}to({shown}: the pipeline has ended"


def of_names():
    for name in ("", None, 1, b"p"):
        yield lambda name=name: ApplicationBuilder(name), "application's name", repr(name)
        call = partial(ApplicationBuilder("app").new_pipeline, name, source())
        yield call, "'app'", repr(name)
        if name is not None:
            said = (f"{P}to_stateful(count)", "state partition's name")
            yield partial(begun().to_stateful, count, Counts, name), *said
    yield lambda: build("", words().done()), "an application's name"
    yield lambda: build(words().done()), "an application's name"
    yield lambda: wallaroo.source("", source()), "a pipeline's name is a non-empty str"


def of_decorators():
    for decorator, wrong, said in (
        *[(one, plain_with_state, "(message, state) does not") for one in NAMED],
        *[(one, plain, "plain(message) does not") for one in NAMED_WITH_STATE],
    ):
        yield partial(decorator(name="n"), wrong), said
        write = f'rite: @wallaroo.{decorator.__name__}(name="…")'
        yield from each(["", None, 5, b"n", plain], decorator, write)
    for decorator in (wallaroo.encoder, wallaroo.partition):
        yield partial(decorator, plain_with_state), "(message, state) does not take that"
    for decorator in (
        *(wallaroo.encoder, wallaroo.partition, wallaroo.decoder(4, ">I")),
        *(wallaroo.computation(name="n"), wallaroo.state_computation(name="n")),
    ):
        yield from each([None, "text", 5, object, encode], decorator, "decorates a function")


def of_frames():
    yield lambda: wallaroo.decoder(plain), "@wallaroo.decoder(header_length=4, "
    yield lambda: wallaroo.decoder(2), "write header_length=4, length_fmt='>I'"

    def decoder(**attributes):
        return decoder_of(with_attributes(Decoding, **attributes))

    for length in (0, 9, -1, "4", None, 4.0, True):
        yield partial(wallaroo.decoder, length, ">I"), "from 1 to 8"
        yield lambda n=length: decoder(header_length=lambda _: n), "from 1 to 8", "(frame-1)"
    for length, form in WRONG_FORMATS:
        yield partial(wallaroo.decoder, length, form), "length_fmt="
    for method in ("header_length", "payload_length", "decode"):
        yield partial(decoder, **{method: None}), f"no method {method}"
    said = "Odd.payload_length() does not take one"
    yield lambda: decoder(payload_length=lambda self: 4), said
    said = "header_length() raised OSError: no name today"
    yield lambda: decoder(header_length=lambda self: no_name()), said
    yield from each(
        [-1, "1", None, 1.0, True],
        lambda size: TCPSourceConfig("h", 1, decode, max_size=size),
        "max_size is a number of bytes",
    )


def of_configurations():
    for make, part, other in ((TCPSourceConfig, decode, encode), (TCPSinkConfig, encode, decode)):
        ports = (-1, 65536, "x", "", None, 7010.0, True, b"7010", "-1", " 1")
        said = f"{make.__name__}: a port is a number"
        yield from each(ports, lambda port, make=make, part=part: make("h", port, part), said)
        said = f"{make.__name__}: host is a non-empty"
        hosts = ("", None, 1, b"127.0.0.1")
        yield from each(hosts, lambda host, make=make, part=part: make(host, 1, part), said)
        yield partial(make, "h", 1, plain), f"{make.__name__}: plain ", "@wallaroo."
        yield partial(make, "h", 1, other), f"{other.__name__} is not "
    said = "Write: wallaroo.TCPSourceConfig(HOST, PORT, DECODER)"
    yield partial(TCPSourceConfig, "h", 0), said
    yield TCPSourceConfig, said
    yield partial(TCPSourceConfig, "h", 0, decode, other=1), said
    yield GenSourceConfig, "Write: wallaroo.GenSourceConfig(GENERATOR)"
    yield partial(GenSourceConfig, Numbers(), Numbers()), "wallaroo.GenSourceConfig(GENERATOR)"
    for generator in (object(), [1, 2], None, decode):
        yield partial(GenSourceConfig, generator), "GenSourceConfig"
        yield partial(GenSourceConfig, "name", generator), "GenSourceConfig"
    for time in NO_DURATIONS:
        made = partial(TCPSourceConfig, "h", 0, decode_event, event_time=when, idle_after=time)
        yield made, "TCPSourceConfig: idle_after"
        yield partial(GenSourceConfig, Numbers(), idle_after=time), "GenSourceConfig: idle_after"
    for event_time in (5, "time", object()):
        made = partial(TCPSourceConfig, "h", 0, decode_event, event_time=event_time)
        yield made, "TCPSourceConfig: ", "event_time"


def of_addresses():
    yield from each(WRONG_ADDRESSES, lambda text: tcp_parse_input_addrs(["--in", text]))
    for read, option in ((tcp_parse_input_addrs, "--in"), (tcp_parse_output_addrs, "--out")):
        missing = ([], ["a:1"], ["--inp", "a:1"], ["--", option, "a:1"])
        yield from each(missing, read, f"wants {option}; write {option} HOST:PORT")
    bare = (["--in"], ["--in", "--out", "a:1"])
    yield from each(bare, tcp_parse_input_addrs, "--in has no address after it")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        *mistakes("build-1", of_builder, of_edges, of_order, of_steps, of_names, of_decorators),
        *mistakes("frame-1, frame-3", of_frames),
        *mistakes("build-1, time-2, graph-4", of_configurations, of_addresses),
    ],
)
def test_a_mistake_is_refused_in_words(call, said):
    assert len(refused(call, *said)) < 6_000
