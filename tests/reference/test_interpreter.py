"""The rules, one by one, on both machines; those that cost copies are in test_isolation.py."""

from __future__ import annotations

import collections
import enum

import pytest

import wallaroo


class Seen:
    """A state: what it has seen."""

    def __init__(self):
        self.items = []


def computation(function):
    return wallaroo.computation(name=function.__name__)(function)


def multi(function):
    return wallaroo.computation_multi(name=function.__name__)(function)


def stateful(function):
    return wallaroo.state_computation(name=function.__name__)(function)


def stateful_multi(function):
    return wallaroo.state_computation_multi(name=function.__name__)(function)


def gives(value):
    """A computation that gives `value` for every message."""
    return wallaroo.computation(name="gives")(lambda message: value)


def gives_items(result):
    return wallaroo.computation_multi(name="gives")(lambda message: result)


def returns(result):
    """A state computation that returns `result` after it has counted."""

    def compute(message, state):
        state.items.append(message)
        return result

    return wallaroo.state_computation(name="returns")(compute)


def keyed_by(function):
    return wallaroo.partition(function)


@computation
def identity(message):
    return message


@multi
def words(text):
    return text.split()


@multi
def characters(text):
    return list(text)


@stateful
def see(message, state):
    state.items.append(message)
    return "".join(state.items), True


@wallaroo.partition
def whole(message):
    return message


@wallaroo.partition
def first(message):
    return message[0]


@wallaroo.decoder(header_length=4, length_fmt=">I")
def literal(payload):
    """A message written as a Python literal, or anything else that can be evaluated."""
    return eval(payload)


# -- decode --------------------------------------------------------------------------------------


def test_decode_1_the_decoder_gets_each_payload_once_as_bytes(app, run):
    got = []

    @wallaroo.decoder(header_length=4, length_fmt=">I")
    def decode(payload):
        got.append(payload)
        return payload

    result = run(app(decoder=decode), [b"a", b"", b"\xff"])
    assert got == [b"a", b"", b"\xff"]
    assert {type(payload) for payload in got} == {bytes}
    assert result.output == [b"b'a';", b"b'';", b"b'\\xff';"]


def test_decode_1_none_filters(app, run):
    result = run(app(decoder=literal), [b"None", b"1", b"None"])
    assert result.output == [b"1;"]
    assert result.dead_letters == []


def test_frame_2_an_empty_payload_is_decoded_like_any_other(app, run):
    assert run(app(), [b"", b"a", b""]).output == [b"'';", b"'a';", b"'';"]


def test_dead_1_a_decoder_that_raises(app, run, told):
    result = run(app(("to", identity)), [b"a", b"\xff", b"b"])
    assert result.output == [b"'a';", b"'b';"]
    assert told(result) == [((1,), None, None, None, "decode")]
    (letter,) = result.dead_letters
    assert (letter.error_type, letter.source, letter.pipeline, letter.payload) == (
        "UnicodeDecodeError",
        "p",
        "p",
        b"\xff",
    )
    assert "can't decode byte 0xff" in letter.error


# -- compute -------------------------------------------------------------------------------------

FALSY = [b"0", b"''", b"b''", b"[]", b"False", b"()", b"{}", b"0.0", b"set()"]


@pytest.mark.parametrize("message", FALSY)
def test_compute_1_only_none_filters(app, run, message):
    application = app(
        ("to", identity),
        ("to_parallel", identity),
        ("to_stateful", returns_message, Seen, "s"),
        decoder=literal,
    )
    expected = f"{eval(message)!r};".encode()
    assert run(application, [message, b"None"]).output == [expected]


@stateful
def returns_message(message, state):
    return message, False


@computation
def drop_digits(text):
    return None if text.isdigit() else text


def test_compute_1_none_filters(app, run):
    result = run(app(("to", drop_digits)), [b"1", b"a", b"22"])
    assert result.output == [b"'a';"]
    assert result.dead_letters == []


def test_compute_3_to_and_to_parallel_mean_the_same(app, run):
    payloads = [b"a b", b"c", b"", b"d e f"]
    traces = [
        run(app((method, words), ("to_stateful", see, Seen, "s")), payloads).trace
        for method in ("to", "to_parallel")
    ]
    assert traces[0] == traces[1]


def by_getitem():
    class Old:
        def __getitem__(self, index):
            return ["x", None, "y"][index]

    return Old()


@pytest.mark.parametrize(
    "make",
    [
        lambda: ["x", None, "y"],
        lambda: ("x", None, "y"),
        lambda: iter(["x", None, "y"]),
        lambda: (item for item in ["x", None, "y"]),
        lambda: collections.deque(["x", None, "y"]),
        lambda: dict.fromkeys("ab", "x").values(),
        lambda: range(2),
        lambda: map(str, [1, 2]),
        lambda: memoryview(b"ab"),
        lambda: type("Listed", (list,), {})("xy"),
        lambda: [[], 0, "", False],
        by_getitem,
    ],
)
def test_compute_2_any_iterable_gives_its_items(app, run, make):
    application = app(("to", wallaroo.computation_multi(name="m")(lambda message: make())))
    expected = [f"{item!r};".encode() for item in make() if item is not None]
    assert run(application, [b"a"]).output == expected


@pytest.mark.parametrize("result", [None, [], (), [None], [None, None], iter(())])
def test_compute_2_none_and_nothing_give_nothing(app, run, result):
    found = run(app(("to", gives_items(result))), [b"a"])
    assert found.output == []
    assert found.dead_letters == []


class Letters(enum.Enum):
    A = 1


BAD_ITEMS = [
    "text",
    "",
    b"bytes",
    b"",
    bytearray(b"a"),
    {"a": 1},
    {},
    collections.OrderedDict(),
    collections.Counter("a"),
    {1},
    set(),
    frozenset([1]),
    1,
    0,
    True,
    False,
    1.5,
    object(),
    len,
    Letters.A,
    Seen,
]


@pytest.mark.parametrize("result", BAD_ITEMS, ids=lambda value: type(value).__name__)
def test_compute_2_what_has_no_order_or_no_items_is_a_bad_result(app, run, told, result):
    if result is Seen:
        result = Seen()
    found = run(app(("to", gives_items(result))), [b"a"])
    assert found.output == []
    assert told(found) == [((0,), "gives", None, None, "bad-result")]
    assert found.dead_letters[0].error_type is None
    assert "a multi computation returns" in found.dead_letters[0].error


@multi
def yields_until_it_raises(text):
    for character in text:
        if character == "!":
            raise ValueError("enough")
        yield character


def test_compute_2_no_item_goes_on_when_consuming_raises(app, run, told):
    result = run(app(("to", yields_until_it_raises)), [b"ab", b"ab!", b"c"])
    assert result.output == [b"'a';", b"'b';", b"'c';"]
    assert told(result) == [((1,), "yields_until_it_raises", None, None, "raised")]
    assert result.dead_letters[0].error_type == "ValueError"


class BadIteration:
    def __iter__(self):
        raise LookupError("no items today")


class NoIterator:
    def __iter__(self):
        return 5


@pytest.mark.parametrize(
    ("result", "error_type"), [(BadIteration(), "LookupError"), (NoIterator(), "TypeError")]
)
def test_compute_2_an_iter_that_raises_has_raised(app, run, told, result, error_type):
    found = run(app(("to", gives_items(result))), [b"a"])
    assert told(found) == [((0,), "gives", None, None, "raised")]
    assert found.dead_letters[0].error_type == error_type


def test_compute_2_it_is_consumed_before_anything_goes_on(app, run):
    order = []

    @multi
    def items(text):
        for character in text:
            order.append(f"yields {character}")
            yield character
        order.append("end")

    @computation
    def next_step(character):
        order.append(f"takes {character}")
        return character

    run(app(("to", items), ("to", next_step)), [b"ab"])
    assert order == ["yields a", "yields b", "end", "takes a", "takes b"]


def test_compute_2_a_list_that_is_part_of_the_state_is_consumed_inside_the_call(app, run):
    @stateful_multi
    def tell_all(message, state):
        state.items.append(message)
        return state.items, True

    @stateful
    def one_more(message, state):
        if len(state.items) < 5:
            state.items.append(message + "!")
        return message, True

    application = app(("to_stateful", tell_all, Seen, "s"), ("to_stateful", one_more, Seen, "s"))
    result = run(application, [b"a", b"b"])
    assert result.output == [b"'a';", b"'a';", b"'a!';", b"'b';"]
    assert result.findings == []


def test_compute_2_a_state_computations_generator_runs_inside_the_call(app, run):
    @stateful_multi
    def lazily(message, state):
        def items():
            for character in message:
                state.items.append(character)
                yield "".join(state.items)

        return items(), True

    result = run(app(("to_stateful", lazily, Seen, "s"), ("to_stateful", see, Seen, "t")), [b"ab"])
    assert result.output == [b"'a';", b"'aab';"]
    assert "'b'" in repr(result.entities["s"])


@pytest.mark.parametrize("result", BAD_ITEMS, ids=lambda value: type(value).__name__)
def test_compute_2_of_a_state_computation_too(app, run, told, result):
    if result is Seen:
        result = Seen()
    compute = wallaroo.state_computation_multi(name="gives")(lambda message, state: (result, True))
    found = run(app(("to_stateful", compute, Seen, "s")), [b"a"])
    assert told(found) == [((0,), "gives", None, (), "bad-result")]


# -- order ---------------------------------------------------------------------------------------


def test_order_1_lineage_counts_left_out_items(app, run):
    @multi
    def with_gaps(text):
        return [None if character == "-" else character for character in text]

    @computation
    def refuse(character):
        raise ValueError(character)

    result = run(app(("to", words), ("to", with_gaps), ("to", refuse)), [b"a-b -c", b"", b"-- d"])
    assert [letter.lineage for letter in result.dead_letters] == [
        (0, 0, 0),
        (0, 0, 2),
        (0, 1, 1),
        (2, 1, 0),
    ]


def test_order_1_depth_first_one_input_after_the_other(app, run):
    order = []

    @stateful
    def inner(message, state):
        order.append(f"inner {message}")
        return message, False

    @stateful
    def outer(message, state):
        order.append(f"outer {message}")
        return message, False

    run(
        app(
            ("to", words),
            ("to_stateful", inner, Seen, "s"),
            ("to", characters),
            ("to_stateful", outer, Seen, "t"),
        ),
        [b"ab c", b"d"],
    )
    assert order == [
        "inner ab",
        "outer a",
        "outer b",
        "inner c",
        "outer c",
        "inner d",
        "outer d",
    ]


def test_order_1_a_partition_visited_twice_by_one_message(app, run):
    result = run(
        app(("to", characters), ("to_stateful", see, Seen, "s"), ("to_stateful", see, Seen, "s")),
        [b"ab"],
    )
    # a: sees a, gives "a"; again: sees "a", gives "aa". b: "aab"; again: "aabaab".
    assert result.output == [b"'aa';", b"'aabaab';"]


def test_order_1_the_sequence_counts_over_all_sources(add_pipeline, run):
    builder = wallaroo.ApplicationBuilder("app")
    for name in "pq":
        add_pipeline(builder, ("to_stateful", see, Seen, "shared"), name=name)
    result = run(builder.build(), [b"a", ("q", b"b"), b"\xff", ("q", b"\xff"), b"c"])
    assert result.outputs == {("p", 0): [b"'a';", b"'abc';"], ("q", 0): [b"'ab';"]}
    assert [(one.lineage, one.source) for one in result.dead_letters] == [((2,), "p"), ((3,), "q")]


# -- keys ----------------------------------------------------------------------------------------

KEYS = ["'1'", "b'1'", "1", "(1,)", "()", "''", "b''", "0", "-1", "'\\ud800'", "(('a', 1), b'')"]


def test_route_1_same_keys_meet_different_never(app, run):
    @wallaroo.encoder
    def encode(count):
        return str(count)

    @stateful
    def count(message, state):
        state.items.append(1)
        return len(state.items), True

    application = app(
        ("to_state_partition", count, Seen, "s", whole), decoder=literal, encoder=encode
    )
    payloads = [key.encode() for key in KEYS] * 2
    result = run(application, payloads)
    assert result.output == [b"1"] * len(KEYS) + [b"2"] * len(KEYS)
    assert {repr(key) for key in result.entities["s"]} == {repr(eval(key)) for key in KEYS}


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("key", ["True", "None", "1.0", "[1]", "(1, True)", "{}", "'x' * 65536"])
def test_route_2_anything_else_is_a_bad_key_before_it_is_unknown(app, run, told, key, listed):
    keys = [1, "a"] if listed else None
    application = app(("to_state_partition", see, Seen, "s", keyed_by(lambda _: eval(key)), keys))
    result = run(application, [b"a", b"b"])
    assert result.output == []
    assert told(result) == [
        ((0,), "see", None, None, "bad-key"),
        ((1,), "see", None, None, "bad-key"),
    ]
    assert result.dead_letters[0].error_type is None
    assert result.entities["s"] == {}


class Sub(str):
    pass


def test_route_2_a_subclass_is_never_taken_for_the_key_it_equals(app, run, told):
    made = {"plain": "k", "sub": Sub("k"), "one": 1, "true": True, "int": enum.IntEnum("E", "K").K}
    application = app(("to_state_partition", see, Seen, "s", keyed_by(made.__getitem__)))
    result = run(application, [b"plain", b"sub", b"one", b"true", b"int", b"plain"])
    assert told(result) == [
        ((1,), "see", None, None, "bad-key"),
        ((3,), "see", None, None, "bad-key"),
        ((4,), "see", None, None, "bad-key"),
    ]
    assert result.output == [b"'plain';", b"'one';", b"'plainplain';"]


def test_route_3_listed_keys_only(app, run, told):
    application = app(("to_state_partition", see, Seen, "s", whole, ["a", "b"]))
    result = run(application, [b"a", b"c", b"a", b"c"])
    assert result.output == [b"'a';", b"'aa';"]
    assert told(result) == [
        ((1,), "see", None, "c", "unknown-key"),
        ((3,), "see", None, "c", "unknown-key"),
    ]
    assert list(result.entities["s"]) == ["a"]
    assert "'c'" in result.dead_letters[0].error
    assert "'s'" in result.dead_letters[0].error


@pytest.mark.parametrize(("listed", "key"), [(1, "'1'"), ("1", "1"), ((1,), "1"), (1, "(1,)")])
def test_route_3_a_listed_key_is_of_its_type(app, run, told, listed, key):
    application = app(
        ("to_state_partition", see, Seen, "s", keyed_by(lambda _: eval(key)), [listed])
    )
    assert told(run(application, [b"a"])) == [((0,), "see", None, eval(key), "unknown-key")]


def test_route_3_listed_tuples_are_found(app, run):
    application = app(
        (
            "to_state_partition",
            see,
            Seen,
            "s",
            keyed_by(lambda text: (text, (1, b"x"))),
            [("a", (1, b"x"))],
        )
    )
    result = run(application, [b"a", b"b", b"a"])
    assert result.output == [b"'a';", b"'aa';"]
    assert [letter.reason for letter in result.dead_letters] == ["unknown-key"]


def test_route_2_very_deep_keys(app, run):
    def deep(text):
        key = text
        for _ in range(10_000):
            key = (key,)
        return key

    result = run(app(("to_state_partition", see, Seen, "s", keyed_by(deep))), [b"a", b"b", b"a"])
    assert result.output == [b"'a';", b"'b';", b"'aa';"]
    assert len(result.trace.canonical_json()) > 10_000


@pytest.mark.parametrize("key", ["0", "1", "2**64 - 1"])
def test_route_5_64_bit_keys(app, run, key):
    application = app(("to_state_partition_u64", see, Seen, "s", whole), decoder=literal)
    found = run(
        app(("to_state_partition_u64", see_number, Seen, "s", whole), decoder=literal),
        [key.encode()],
    )
    assert list(found.entities["s"]) == [eval(key)]
    assert application.partition["s"].u64


@stateful
def see_number(message, state):
    state.items.append(message)
    return message, True


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(
    "key", ["-1", "2**64", "'a'", "b'a'", "True", "(1,)", "1.0", "None", "10**99"]
)
def test_route_5_all_else_is_a_bad_key(app, run, told, key, listed):
    application = app(
        ("to_state_partition_u64", see, Seen, "s", keyed_by(lambda _: eval(key)))
        + (([1],) if listed else ())
    )
    result = run(application, [b"a"])
    assert told(result) == [((0,), "see", None, None, "bad-key")]
    assert result.entities["s"] == {}


def test_route_5_listed_and_unknown(app, run, told):
    application = app(
        ("to_state_partition_u64", see_number, Seen, "s", whole, [1, 2]), decoder=literal
    )
    result = run(application, [b"1", b"3", b"1"])
    assert told(result) == [((1,), "see_number", None, 3, "unknown-key")]


def test_route_6_to_stateful_has_one_entity(app, run):
    result = run(app(("to_stateful", see, Seen, "s")), [b"a", b"b"])
    assert list(result.entities["s"]) == [()]
    assert result.output == [b"'a';", b"'ab';"]


def test_route_1_the_partition_function_is_called_once_per_visit(app, run):
    calls = []
    route = keyed_by(lambda text: calls.append(text) or text[0])
    run(app(("to_state_partition", see, Seen, "s", route, ["a"])), [b"ab", b"ac", b"b"])
    assert calls == ["ab", "ac", "b"]


def test_dead_1_a_partition_function_that_raises(app, run, told):
    result = run(app(("to_state_partition", see, Seen, "s", first)), [b"a", b"", b"ab"])
    assert told(result) == [((1,), "see", None, None, "raised")]
    assert result.dead_letters[0].error_type == "IndexError"
    assert result.output == [b"'a';", b"'aab';"]


@pytest.mark.parametrize("error", [KeyError, ValueError, StopIteration, TypeError, RuntimeError])
def test_dead_3_whatever_a_partition_function_raises(app, run, told, error):
    def route(text):
        raise error(text)

    result = run(app(("to_state_partition", see, Seen, "s", keyed_by(route))), [b"a"])
    assert told(result) == [((0,), "see", None, None, "raised")]
    assert result.dead_letters[0].error_type == error.__name__


# -- state ---------------------------------------------------------------------------------------


class CountingBuilder:
    def __init__(self, fail=()):
        self.fail = fail

    built = 0

    def build(self):
        type(self).built += 1
        if type(self).built in self.fail:
            raise KeyError("not now")
        return Seen()


def test_state_1_an_entity_is_built_once_when_its_first_message_comes(app, run):
    CountingBuilder.built = 0
    application = app(("to_state_partition", see, CountingBuilder(), "s", first, ["a", "b", "c"]))
    assert CountingBuilder.built == 0
    result = run(application, [b"a", b"a", b"b", b"a"])
    assert CountingBuilder.built == 2
    assert list(result.entities["s"]) == ["a", "b"]


@pytest.mark.parametrize(
    "compute",
    [
        returns((None, False)),
        wallaroo.state_computation(name="raises")(lambda message, state: 1 / 0),
        returns("nonsense"),
    ],
)
def test_state_1_it_exists_whatever_its_first_message_does(app, isolated, compute):
    result = isolated(app(("to_stateful", compute, Seen, "s")), [b"a"])
    ((key, state),) = result.entities["s"].items()
    assert key == ()
    assert state[3] == ["dict", [[["str", "items"], ["list", []]]]]


def test_state_1_an_entity_that_is_built_exists_though_its_message_dies(app, run):
    raises = wallaroo.state_computation(name="raises")(lambda message, state: 1 / 0)
    result = run(app(("to_state_partition", raises, Seen, "s", whole)), [b"a", b"b"])
    assert list(result.entities["s"]) == ["a", "b"]


def test_state_1_a_builder_that_raises_tries_again_with_the_next_message(app, run, told):
    CountingBuilder.built = 0
    application = app(("to_state_partition", see, CountingBuilder(fail=(1, 2)), "s", whole))
    result = run(application, [b"a", b"a", b"a", b"a"])
    assert told(result) == [((0,), "see", None, "a", "raised"), ((1,), "see", None, "a", "raised")]
    assert result.dead_letters[0].error_type == "KeyError"
    assert result.output == [b"'a';", b"'aa';"]


def test_state_1_a_builder_that_only_raises_leaves_no_entity(app, run):
    class Never:
        def build(self):
            raise ValueError

    assert run(app(("to_stateful", see, Never(), "s")), [b"a"]).entities == {"s": {}}


def test_state_1_a_state_may_be_none(app, run):
    class Nothing:
        def build(self):
            return None

    compute = wallaroo.state_computation(name="c")(lambda message, state: (repr(state), False))
    result = run(app(("to_stateful", compute, Nothing(), "s")), [b"a", b"b"])
    assert result.output == [b"'None';", b"'None';"]
    assert result.entities == {"s": {(): None}}


class Pair(tuple):
    pass


Named = collections.namedtuple("Named", "output changed")


@pytest.mark.parametrize("result", [("x", True), Named("x", True), Pair(("x", False))])
def test_state_2_a_pair(app, run, result):
    found = run(app(("to_stateful", returns(result), Seen, "s")), [b"a"])
    assert found.dead_letters == []
    assert found.output == [b"'x';"]


class Truth:
    def __bool__(self):
        return True


class Unequal:
    def __eq__(self, other):
        raise ValueError("the truth value of this is ambiguous")

    __hash__ = None


class LyingTuple(tuple):
    def __iter__(self):
        raise OSError("no")

    def __len__(self):
        return 2


@pytest.mark.parametrize(
    ("result", "hint"),
    [
        (None, "return (None, False)"),
        ("x", "return (output, True)"),
        (True, ""),
        (["x", True], "return (output, changed)"),
        ((), "0 items"),
        (("x",), "1 items"),
        (("x", True, 1), "3 items"),
        (("x", 1), "Write: bool(1)"),
        (("x", 0), "Write: bool(0)"),
        (("x", None), "changed is None"),
        (("x", "True"), "changed is a str"),
        (("x", Truth()), "changed is a Truth"),
        (("x", Unequal()), "changed is a Unequal"),
        ((True, "x"), "the wrong way round"),
        ("xy", ""),
        ({"x": 1, "y": 2}, ""),
        (iter([1, True]), ""),
    ],
)
def test_state_2_anything_else_is_a_bad_result(app, run, told, result, hint):
    found = run(app(("to_state_partition", returns(result), Seen, "s", whole)), [b"a"])
    assert found.output == []
    assert told(found) == [((0,), "returns", None, "a", "bad-result")]
    assert found.dead_letters[0].error_type is None
    assert hint in found.dead_letters[0].error


def test_state_2_a_tuple_that_lies_harms_nobody_else(app, run):
    lies = returns(LyingTuple(("x", True)))
    found = run(app(("to_stateful", lies, Seen, "s")), [b"a", b"b"])
    assert len(found.output) + len(found.dead_letters) == 2


def test_state_2_a_numpy_bool_is_none(app, run, told):
    numpy = pytest.importorskip("numpy", reason="numpy is not installed")
    for changed in (numpy.True_, numpy.zeros(3)):
        found = run(app(("to_stateful", returns(("x", changed)), Seen, "s")), [b"a"])
        assert [letter.reason for letter in found.dead_letters] == ["bad-result"]


def test_state_3_changed_is_kept(app, run):
    assert run(app(("to_stateful", see, Seen, "s")), [b"a", b"b"]).output == [b"'a';", b"'ab';"]


def test_state_5_none_sends_nothing_and_the_state_is_kept(app, run):
    @stateful
    def every_second(message, state):
        state.items.append(message)
        return ("".join(state.items) if len(state.items) % 2 == 0 else None), True

    @stateful_multi
    def nothing(message, state):
        state.items.append(message)
        return None, True

    result = run(app(("to_stateful", every_second, Seen, "s")), [b"a", b"b", b"c", b"d"])
    assert result.output == [b"'ab';", b"'abcd';"]
    result = run(app(("to_stateful", nothing, Seen, "s")), [b"a", b"b"])
    assert result.output == []
    assert "'b'" in repr(result.entities["s"])


def test_state_7_raising_is_a_dead_letter(app, run, told):
    @stateful
    def refuse_b(message, state):
        if message == "b":
            raise LookupError("no b")
        state.items.append(message)
        return "".join(state.items), True

    result = run(app(("to_stateful", refuse_b, Seen, "s")), [b"a", b"b", b"c"])
    assert result.output == [b"'a';", b"'ac';"]
    assert told(result) == [((1,), "refuse_b", None, (), "raised")]
    assert result.dead_letters[0].error_type == "LookupError"


def test_state_8_pipelines_share_entities(add_pipeline, run):
    builder = wallaroo.ApplicationBuilder("app")
    for name in "pq":
        add_pipeline(builder, ("to_state_partition", see, Seen, "s", first), name=name)
    result = run(builder.build(), [b"a1", ("q", b"a2"), ("q", b"b"), b"a3"])
    assert result.outputs == {
        ("p", 0): [b"'a1';", b"'a1a2a3';"],
        ("q", 0): [b"'a1a2';", b"'b';"],
    }


def test_state_9_partitions_of_other_names_share_nothing(app, run):
    result = run(
        app(
            ("to_state_partition", see, Seen, "s", first),
            ("to_state_partition", see, Seen, "t", first),
        ),
        [b"a", b"ab"],
    )
    assert result.output == [b"'a';", b"'aaab';"]
    assert set(result.entities) == {"s", "t"}


# -- sinks ---------------------------------------------------------------------------------------


class Chunk(bytes):
    def __bytes__(self):
        raise OSError("no")


class Text(str):
    def encode(self, *args):
        raise OSError("no")


@pytest.mark.parametrize(
    ("encoded", "written"),
    [
        (b"a", b"a"),
        (b"", b""),
        ("é", "é".encode()),
        ("", b""),
        (Chunk(b"c"), b"c"),
        (Text("é"), "é".encode()),
    ],
    ids=["bytes", "no bytes", "text", "no text", "of bytes", "of text"],
)
def test_sink_1_bytes_or_text(app, run, encoded, written):
    result = run(app(encoder=wallaroo.encoder(lambda message: encoded)), [b"a"])
    assert result.dead_letters == []
    assert result.output == [written]
    assert type(result.output[0]) is bytes


def test_sink_1_none_writes_nothing(app, run):
    result = run(app(encoder=wallaroo.encoder(lambda message: None)), [b"a"])
    assert (result.output, result.dead_letters) == ([], [])


@pytest.mark.parametrize(
    "encoded",
    [
        0,
        False,
        bytearray(b"a"),
        memoryview(b"a"),
        [b"a"],
        ("a",),
        object(),
        "\ud800",
        Sub("\ud800"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_sink_1_anything_else_is_a_dead_letter(app, run, told, encoded):
    result = run(app(("to", identity), encoder=wallaroo.encoder(lambda message: encoded)), [b"a"])
    assert result.output == []
    assert told(result) == [((0,), None, 0, None, "encode")]
    assert result.dead_letters[0].error_type is None


@pytest.mark.parametrize("error", [ValueError, UnicodeEncodeError, KeyError, StopIteration])
def test_sink_1_raising_is_a_dead_letter_of_that_sink_alone(app, run, told, error):
    arguments = ("utf-8", "a", 0, 1, "why") if error is UnicodeEncodeError else ("why",)

    def encode(message):
        raise error(*arguments)

    fine = wallaroo.encoder(lambda message: message)
    result = run(app(encoder=[fine, wallaroo.encoder(encode), fine]), [b"a", b"b"])
    assert result.outputs == {("p", 0): [b"a", b"b"], ("p", 1): [], ("p", 2): [b"a", b"b"]}
    assert told(result) == [((0,), None, 1, None, "encode"), ((1,), None, 1, None, "encode")]
    assert result.dead_letters[0].error_type == error.__name__


def test_sink_2_every_sink_gets_every_message(app, run):
    encoders = [wallaroo.encoder(lambda m, n=n: f"{n}{m}") for n in range(3)]
    result = run(app(("to", words), encoder=encoders), [b"a b"])
    assert result.outputs == {("p", n): [f"{n}a".encode(), f"{n}b".encode()] for n in range(3)}


def test_sink_2_done_ends_without_a_sink(app, run):
    result = run(app(("to_stateful", see, Seen, "s"), sinks=0), [b"a"])
    assert result.outputs == {}
    assert list(result.entities["s"]) == [()]


# -- dead letters --------------------------------------------------------------------------------


def test_dead_1_letters_come_in_order_of_lineage_step_and_sink(app, run, told):
    @multi
    def split(text):
        if text == "!":
            raise ValueError
        return text.split()

    @computation
    def refuse_x(text):
        if text == "x":
            raise ValueError
        return text

    @wallaroo.encoder
    def refuse_y(text):
        if text == "y":
            raise ValueError
        return text

    application = app(
        ("to", split),
        ("to", refuse_x),
        ("to_state_partition", see, Seen, "s", whole, ["a", "y"]),
        encoder=[refuse_y, refuse_y],
    )
    result = run(application, [b"x a z y", b"!", b"\xff", b"y"])
    assert told(result) == [
        ((0, 0), "refuse_x", None, None, "raised"),
        ((0, 2), "see", None, "z", "unknown-key"),
        ((0, 3), None, 0, None, "encode"),
        ((0, 3), None, 1, None, "encode"),
        ((1,), "split", None, None, "raised"),
        ((2,), None, None, None, "decode"),
    ]
    assert [one.payload for one in result.dead_letters] == [b"x a z y"] * 4 + [b"!", b"\xff"]
    assert [one.order for one in result.dead_letters] == sorted(
        one.order for one in result.dead_letters
    )


def test_dead_2_one_bad_message_harms_no_other(app, run):
    @computation
    def refuse(text):
        if "!" in text:
            raise ValueError
        return text

    application = app(("to", words), ("to", refuse), ("to_stateful", see, Seen, "s"))
    bad = run(application, [b"a ! b", b"!", b"c"])
    good = run(application, [b"a b", b"c"])
    assert bad.output == good.output


class Silent(Exception):
    def __str__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "error",
    [
        Silent(),
        Exception(),
        StopIteration("x"),
        RecursionError(),
        MemoryError(),
        AssertionError(),
        OSError(2, "x"),
        ExceptionGroup("several", [ValueError()]),
        StopAsyncIteration(),
        EOFError(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("where", ["decode", "compute", "multi", "stateful", "encode"])
def test_dead_3_every_exception_counts(app, run, error, where):
    def fails(*arguments):
        raise error

    steps = {
        "compute": ("to", wallaroo.computation(name="f")(fails)),
        "multi": ("to", wallaroo.computation_multi(name="f")(fails)),
        "stateful": ("to_stateful", wallaroo.state_computation(name="f")(fails), Seen, "s"),
    }
    special = {
        "decode": {"decoder": wallaroo.decoder(header_length=4, length_fmt=">I")(fails)},
        "encode": {"encoder": wallaroo.encoder(fails)},
    }
    application = app(*[steps[where]] if where in steps else [], **special.get(where, {}))
    result = run(application, [b"a", b"b"])
    reason = where if where in special else "raised"
    assert [(one.reason, one.error_type) for one in result.dead_letters] == [
        (reason, type(error).__name__)
    ] * 2
    assert result.trace.ended is None


class Abort(BaseException):
    pass


class Interrupt(KeyboardInterrupt):  # of the very class, `testing.run` raises it again
    pass


@pytest.mark.parametrize("error", [SystemExit, Interrupt, GeneratorExit, Abort])
@pytest.mark.parametrize(
    "where", ["decode", "compute", "multi", "consume", "partition", "build", "stateful", "encode"]
)
def test_dead_3_an_exit_ends_the_run(app, run, error, where):
    def fails(*arguments):
        if arguments and arguments[0] in ("x", b"x"):
            raise error
        return {"multi": [*arguments], "stateful": (arguments[0], True)}.get(where, arguments[0])

    def consumed(text):
        yield text
        fails(text)

    class Builder:
        built = 0

        def build(self):
            Builder.built += 1
            if Builder.built > 1:
                raise error
            return Seen()

    partition = ("to_state_partition", see, Seen, "s", whole)
    steps = {
        "compute": ("to", wallaroo.computation(name="f")(fails)),
        "multi": ("to", wallaroo.computation_multi(name="f")(fails)),
        "consume": ("to", wallaroo.computation_multi(name="f")(consumed)),
        "stateful": ("to_stateful", wallaroo.state_computation(name="f")(fails), Seen, "s"),
        "partition": (*partition[:4], wallaroo.partition(fails)),
        "build": ("to_state_partition", see, Builder(), "s", whole),
    }
    special = {
        "decode": {"decoder": wallaroo.decoder(header_length=4, length_fmt=">I")(fails)},
        "encode": {"encoder": wallaroo.encoder(fails)},
    }
    application = app(*[steps[where]] if where in steps else [], **special.get(where, {}))
    result = run(application, [b"a", b"x", b"b"])
    assert len(result.output) == 1  # what was before
    assert result.dead_letters == []
    ended = result.trace.ended
    step = {"partition": "see", "build": "see", "decode": None, "encode": None}.get(where, "f")
    assert (ended.kind, ended.pipeline, ended.step) == ("exit", "p", step)
    assert (ended.lineage, ended.error_type) == ((1,), error.__name__)


def test_dead_3_items_before_the_exit_are_delivered(app, run):
    @computation
    def leave_at_x(text):
        if text == "x":
            raise SystemExit(0)
        if text == "!":
            raise ValueError
        return text

    result = run(app(("to", words), ("to", leave_at_x)), [b"a ! b x c"])
    assert result.output == [b"'a';", b"'b';"]
    assert [letter.lineage for letter in result.dead_letters] == [(0, 1)]
    assert result.trace.ended.lineage == (0, 3)


# -- dead-4 --------------------------------------------------------------------------------------


def test_dead_4_stop_at_the_first_dead_letter(app, run, told):
    @computation
    def refuse(text):
        if text == "!":
            raise ValueError
        return text

    application = app(("to", words), ("to", refuse), ("to_stateful", see, Seen, "s"))
    result = run(application, [b"a", b"b ! c", b"d"], on_error="stop")
    assert result.output == [b"'a';", b"'ab';"]
    assert told(result) == [((1, 1), "refuse", None, None, "raised")]
    ended = result.trace.ended
    assert (ended.kind, ended.step, ended.lineage) == ("on-error", "refuse", (1, 1))
    assert "'c'" not in repr(result.entities)


@pytest.mark.parametrize("sink", [0, 1, 2])
def test_dead_4_sinks_get_exactly_what_precedes_it(app, run, sink):
    encoders = [
        wallaroo.encoder(lambda m, n=n: 5 if n == sink and m == "x" else m) for n in range(3)
    ]
    result = run(app(encoder=encoders), [b"a", b"x", b"b"], on_error="stop")
    assert result.outputs == {("p", n): [b"a", b"x"] if n < sink else [b"a"] for n in range(3)}
    assert result.trace.ended.step is None


@pytest.mark.parametrize("batches", [None, [1], [2, 1], [1, 1, 1, 1]])
@pytest.mark.parametrize("payload", [b"\xff", b"unknown", b""])
def test_dead_4_whatever_the_reason_and_the_cut(app, run, payload, batches):
    application = app(("to_state_partition", see, Seen, "s", first, ["a", "b"]))
    result = run(application, [b"a", payload, b"b", b"a"], on_error="stop", batches=batches)
    assert result.output == [b"'a';"]
    assert len(result.dead_letters) == 1
    assert list(result.entities["s"]) == ["a"]


def test_dead_4_without_a_dead_letter_nothing_stops(app, run):
    result = run(app(), [b"a", b"b"], on_error="stop")
    assert result.output == [b"'a';", b"'b';"]
    assert result.trace.ended is None


# -- many steps ----------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", [11, 12, 13, 14, 25, 30, 60])
def test_order_1_deep_pipelines(app, run, steps):
    @multi
    def one_more(items):
        return [None, (*items, len(items))]

    @computation
    def last(items):
        raise ValueError

    @wallaroo.decoder(header_length=4, length_fmt=">I")
    def begin(payload):
        return ()

    application = app(*[("to", one_more)] * steps, decoder=begin)
    assert run(application, [b"a"]).output == [f"{tuple(range(steps))!r};".encode()]
    result = run(app(*[("to", one_more)] * steps, ("to", last), decoder=begin), [b"a", b"b"])
    assert [letter.lineage for letter in result.dead_letters] == [
        (n, *[1] * steps) for n in range(2)
    ]


@pytest.mark.parametrize("steps", [30])
def test_order_1_deep_pipelines_of_every_kind(app, run, told, steps):
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
    assert told(result) == [((1, *multis), None, sink, None, "encode") for sink in (0, 1)]


# -- names that are only names -------------------------------------------------------------------


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
