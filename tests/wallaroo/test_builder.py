"""What the builder makes, and what it refuses: who, what was expected, what to write (build-1)."""

from __future__ import annotations

import pickle

import pytest

import wallaroo
from wallaroo import ApplicationBuilder, TCPSinkConfig, TCPSourceConfig, WallarooParameterError
from wallaroo.topology import Sink, Source, Step


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload


@wallaroo.encoder
def encode(message):
    return message


@wallaroo.computation(name="double it")
def double(message):
    return 2 * message


@wallaroo.computation_multi(name="split it")
def split(message):
    return message.split()


@wallaroo.state_computation(name="count it")
def count(message, state):
    return message, True


@wallaroo.state_computation_multi(name="count each")
def count_each(message, state):
    return [message], True


@wallaroo.partition
def first(message):
    return message[0]


def plain(message):
    return message


def plain_with_state(message, state):
    return message, True


class Counts:
    pass


class WantsArguments:
    def __init__(self, size):
        self.size = size


class CountsBuilder:
    def __init__(self, start=0):
        self.start = start

    def build(self):
        return Counts()


class SlottedBuilder:
    __slots__ = ("start",)

    def __init__(self, start):
        self.start = start

    def build(self):
        return Counts()


class Doubling:
    def name(self):
        return "doubling"

    def compute(self, data):
        return 2 * data


class Counting:
    def name(self):
        return "counting"

    def compute(self, data, state):
        return data, True


class First:
    def partition(self, data):
        return data[0]


class Decoding:
    def header_length(self):
        return 4

    def payload_length(self, header):
        return int.from_bytes(header, "big")

    def decode(self, payload):
        return payload


class Encoding:
    def encode(self, message):
        return message


def source(port=0, decoder=decode):
    return TCPSourceConfig("127.0.0.1", port, decoder)


def sink(port=7002):
    return TCPSinkConfig("127.0.0.1", port, encode)


def begun(pipeline="p"):
    return ApplicationBuilder("app").new_pipeline(pipeline, source())


def refused(call, *parts):
    with pytest.raises(WallarooParameterError) as caught:
        call()
    text = str(caught.value)
    for part in parts:
        assert part in text, text
    assert "\n" not in text
    return text


# -- what is built -------------------------------------------------------------------------------


def test_build_1_calls_chain_or_stand_alone():
    chained = (
        ApplicationBuilder("app")
        .new_pipeline("p", source())
        .to(split)
        .to_parallel(double)
        .to_stateful(count, Counts, "all")
        .to_state_partition(count_each, Counts, "some", first, ["a", "b"])
        .to_state_partition_u64(count, CountsBuilder(), "numbers", first)
        .to_sinks([sink(1), sink(2)])
        .new_pipeline("q", source())
        .to_stateful(count, Counts, "all")
        .done()
        .build()
    )
    alone = ApplicationBuilder("app")
    alone.new_pipeline("p", source())
    alone.to(split)
    alone.to_parallel(double)
    alone.to_stateful(count, Counts, "all")
    alone.to_state_partition(count_each, Counts, "some", first, ["a", "b"])
    alone.to_state_partition_u64(count, CountsBuilder(), "numbers", first)
    alone.to_sinks([sink(1), sink(2)])
    alone.new_pipeline("q", source())
    alone.to_stateful(count, Counts, "all")
    alone.done()
    application = alone.build()
    for one in (chained, application):
        assert [type(node) for node in one.nodes] == [Source, *[Step] * 5, Sink, Sink, Source, Step]
        assert [step.name for step in one.steps] == [
            "split it",
            "double it",
            "count it",
            "count each",
            "count it",
            "count it",
        ]
        assert [part.name for part in one.partitions] == ["all", "some", "numbers"]


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


@pytest.mark.parametrize(
    ("component", "name"),
    [
        (Doubling, "doubling"),
        (Doubling(), "doubling"),
        (double, "double it"),
        (split, "split it"),
    ],
)
def test_build_1_stateless_components_are_classes_instances_or_decorated(component, name):
    application = begun().to(component).to_parallel(component).done().build()
    assert [step.name for step in application.steps] == [name, name]


def test_build_1_decoder_encoder_and_partition_function_may_be_classes():
    for decoder, encoder, route in ((Decoding, Encoding, First), (Decoding(), Encoding(), First())):
        application = (
            ApplicationBuilder("app")
            .new_pipeline("p", source(decoder=decoder))
            .to_state_partition(Counting(), Counts, "counts", route)
            .to_sink(TCPSinkConfig("127.0.0.1", 1, encoder))
            .build()
        )
        (step,) = application.steps
        assert step.operation.route.call("xyz") == "x"
        assert application.sources["p"].config.decoder.call(b"a") == b"a"
        assert application.sinks["p", 0].config.encoder.call(b"a") == b"a"


def test_build_1_an_application_pickles():
    application = begun().to(Doubling).to_stateful(count, Counts, "all").done().build()
    copy = pickle.loads(pickle.dumps(application))
    assert [step.name for step in copy.steps] == ["doubling", "count it"]
    assert copy.partition["all"].builder.call is Counts


# -- where a step stands -------------------------------------------------------------------------

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


# -- components of the wrong kind or arity -------------------------------------------------------


@pytest.mark.parametrize("method", ["to", "to_parallel"])
@pytest.mark.parametrize(
    ("component", "call", "parts"),
    [
        (count, "count", ["'count it' is a state computation", ".to_stateful(count, STATE"]),
        (Counting(), "Counting", ["'counting' is a state computation", ".to_state_partition("]),
        (count_each, "count_each", ["'count each' is a state computation"]),
        (plain, "plain", ['Write: @wallaroo.computation(name="…")']),
        (lambda message: message, "<lambda>", ['@wallaroo.computation(name="…")']),
        (Counts, "Counts", ["no computation", "compute or compute_multi"]),
        (Counts(), "Counts", ["no computation", "compute nor compute_multi"]),
        (decode, "decode", ["no computation"]),
        (first, "first", ["no computation"]),
        (WantsArguments, "WantsArguments", ["no computation"]),
        (None, "", ["no computation"]),
        ("double", "str", ["no computation"]),
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
        (Counts(), ["Counts is no state computation"]),
        (None, ["no state computation"]),
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
        (Counts(), ["Counts is no state builder", "not an instance"]),
        (plain, ["plain is no state builder"]),
        (0, ["int is no state builder"]),
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
        (Counts, ["Counts is no partition function"]),
        (PartitionOfTwo, ["PartitionOfTwo.partition(data, partitions)", "one argument"]),
        (None, ["NoneType is no partition function"]),
        (["a"], ["list is no partition function"]),
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


# -- listed keys ---------------------------------------------------------------------------------


def keyed(keys, *, u64=False):
    method = "to_state_partition_u64" if u64 else "to_state_partition"
    return lambda: getattr(begun(), method)(count, Counts, "s", first, keys).done().build()


@pytest.mark.parametrize(
    "keys",
    ["abc", b"abc", ("a", "b"), {"a", "b"}, {"a": 1}, range(3), iter(["a"]), 3, {"a": 1}.keys()],
)
def test_build_1_keys_are_a_list(keys):
    refused(
        keyed(keys),
        "application 'app', pipeline 'p', to_state_partition(count)",
        "partition_keys is a list of keys",
        "Write: list(",
    )


def test_build_1_keys_are_not_empty():
    refused(keyed([]), "application 'app', pipeline 'p', to_state_partition(count)", "is empty")


@pytest.mark.parametrize("keys", [["a", "b", "a"], [(1, ("x",)), (1, ("x",))], [0, 1, 0]])
def test_build_1_keys_do_not_repeat(keys):
    refused(keyed(keys), "pipeline 'p', to_state_partition(count)", f"repeats {keys[0]!r}"[:8])


def deep_key():
    key = ()
    for _ in range(5_000):
        key = (key,)
    return key


@pytest.mark.parametrize("key", [deep_key(), 10**5_000], ids=["deep", "long"])
def test_build_1_keys_that_cannot_be_shown_do_not_repeat_either(key):
    refused(keyed([key, key]), "pipeline 'p', to_state_partition(count)", "partition_keys repeats ")


def test_route_2_listed_keys_of_like_value_and_other_type_are_different():
    keys = ["1", b"1", 1, (1,), ("1",), (), ((),), ""]
    assert keyed(keys)().partition["s"].keys == tuple(keys)


@pytest.mark.parametrize("key", [True, None, 1.0, ["a"], (1, [2]), "x" * 65536])
def test_route_2_a_listed_key_is_a_key(key):
    refused(keyed(["a", key]), "pipeline 'p', to_state_partition(count)", "partition_keys holds")


@pytest.mark.parametrize("key", [-1, 2**64, "a", b"a", (1,), True])
def test_route_5_a_listed_64_bit_key_is_one(key):
    refused(keyed([0, key], u64=True), "to_state_partition_u64(count)", "partition_keys holds")


def test_route_5_the_ends_of_the_range():
    assert keyed([0, 2**64 - 1], u64=True)().partition["s"].keys == (0, 2**64 - 1)


# -- state-8 -------------------------------------------------------------------------------------

COUNTS_BUILDER = CountsBuilder(1)


def shared(one, other):
    """Two pipelines that say what they do of partition ``s``."""

    def build():
        builder = ApplicationBuilder("app")
        for name, say in (("p", one), ("q", other)):
            say(builder.new_pipeline(name, source())).done()
        return builder.build()

    return build


def says(state=Counts, keys=None, *, u64=False):
    method = "to_state_partition_u64" if u64 else "to_state_partition"
    return lambda builder: getattr(builder, method)(count, state, "s", first, keys)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (says(), says()),
        (says(COUNTS_BUILDER), says(COUNTS_BUILDER)),
        (says(CountsBuilder(2)), says(CountsBuilder(2))),
        (says(SlottedBuilder(2)), says(SlottedBuilder(2))),
        (says(keys=["a", "b"]), says(keys=["b", "a"])),
        (says(keys=[0, 1], u64=True), says(keys=[1, 0], u64=True)),
    ],
)
def test_state_8_pipelines_that_agree_share_a_partition(one, other):
    application = shared(one, other)()
    assert [part.name for part in application.partitions] == ["s"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (says(Counts), says(Doubling)),
        (says(Counts), says(CountsBuilder())),
        (says(CountsBuilder(1)), says(CountsBuilder(2))),
        (says(SlottedBuilder(1)), says(SlottedBuilder(2))),
        (says(CountsBuilder(1)), says(SlottedBuilder(1))),
        (says(), says(keys=["a"])),
        (says(keys=["a"]), says(keys=["a", "b"])),
        (says(keys=["1"]), says(keys=[1])),
        (says(keys=[1]), says(keys=[(1,)])),
        (says(), says(u64=True)),
        (says(keys=[1]), says(keys=[1], u64=True)),
        (says(), lambda builder: builder.to_stateful(count, Counts, "s")),
    ],
)
def test_state_8_pipelines_that_disagree_do_not_build(one, other):
    for build in (shared(one, other), shared(other, one)):
        refused(
            build,
            "application 'app', pipeline 'q'",
            "state partition 's' is shared with step 'count it' of pipeline 'p'",
            "they disagree",
        )


def test_state_8_within_one_pipeline_too():
    refused(
        lambda: says(Doubling)(says(Counts)(begun())),
        "shared with step 'count it' of pipeline 'p'",
    )


def test_state_8_very_deep_keys_agree():
    shared(says(keys=[deep_key(), "a"]), says(keys=["a", deep_key()]))()


class Incomparable:
    def __eq__(self, other):
        raise ValueError("ambiguous")

    __hash__ = None


def test_state_8_builders_whose_attributes_cannot_be_compared_disagree():
    refused(
        shared(says(CountsBuilder(Incomparable())), says(CountsBuilder(Incomparable()))),
        "they disagree",
    )
