"""What decoders and computations are given, and what becomes of what they give."""

from __future__ import annotations

import collections
import enum

import pytest
from small_steps import (
    Seen,
    computation,
    gives_items,
    identity,
    literal,
    multi,
    see,
    stateful,
    stateful_multi,
)

import wallaroo


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


def test_dead_1_a_decoder_that_raises(app, run, letters):
    result = run(app(("to", identity)), [b"a", b"\xff", b"b"])
    assert result.output == [b"'a';", b"'b';"]
    assert letters(result) == [((1,), None, None, None, "decode")]
    (letter,) = result.dead_letters
    assert (letter.error_type, letter.source, letter.pipeline, letter.payload) == (
        "UnicodeDecodeError",
        "p",
        "p",
        b"\xff",
    )
    assert "can't decode byte 0xff" in letter.error


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
def test_compute_2_what_has_no_order_or_no_items_is_a_bad_result(app, run, letters, result):
    if result is Seen:
        result = Seen()
    found = run(app(("to", gives_items(result))), [b"a"])
    assert found.output == []
    assert letters(found) == [((0,), "gives", None, None, "bad-result")]
    assert found.dead_letters[0].error_type is None
    assert "a multi computation returns" in found.dead_letters[0].error


@multi
def yields_until_it_raises(text):
    for character in text:
        if character == "!":
            raise ValueError("enough")
        yield character


def test_compute_2_no_item_goes_on_when_consuming_raises(app, run, letters):
    result = run(app(("to", yields_until_it_raises)), [b"ab", b"ab!", b"c"])
    assert result.output == [b"'a';", b"'b';", b"'c';"]
    assert letters(result) == [((1,), "yields_until_it_raises", None, None, "raised")]
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
def test_compute_2_an_iter_that_raises_has_raised(app, run, letters, result, error_type):
    found = run(app(("to", gives_items(result))), [b"a"])
    assert letters(found) == [((0,), "gives", None, None, "raised")]
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
    assert "'b'" in repr(result.structures["s"])
