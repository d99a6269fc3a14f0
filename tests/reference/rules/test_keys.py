"""Which entity a message meets: keys, and values that are not keys."""

from __future__ import annotations

import enum
import weakref

import pytest
from small_steps import Seen, keyed_by, literal, see, stateful, whole


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize("key", ["True", "None", "1.0", "[1]", "(1, True)", "{}", "'x' * 65536"])
def test_route_2_anything_else_is_a_bad_key_before_it_is_unknown(app, run, letters, key, listed):
    keys = [1, "a"] if listed else None
    application = app(("to_state_partition", see, Seen, "s", keyed_by(lambda _: eval(key)), keys))
    result = run(application, [b"a", b"b"])
    assert result.output == []
    assert letters(result) == [
        ((0,), "see", None, None, "bad-key"),
        ((1,), "see", None, None, "bad-key"),
    ]
    assert result.dead_letters[0].error_type is None
    assert result.structures["s"] == {}


class Sub(str):
    pass


class Number(enum.IntEnum):
    K = 1


def test_route_2_a_subclass_is_never_taken_for_the_key_it_equals(app, run, letters):
    made = {"plain": "k", "sub": Sub("k"), "one": 1, "true": True, "int": Number.K}
    application = app(("to_state_partition", see, Seen, "s", keyed_by(made.__getitem__)))
    result = run(application, [b"plain", b"sub", b"one", b"true", b"int", b"plain"])
    assert letters(result) == [
        ((1,), "see", None, None, "bad-key"),
        ((3,), "see", None, None, "bad-key"),
        ((4,), "see", None, None, "bad-key"),
    ]
    assert result.output == [b"'plain';", b"'one';", b"'plainplain';"]


def test_route_3_listed_keys_only(app, run, letters):
    application = app(("to_state_partition", see, Seen, "s", whole, ["a", "b"]))
    result = run(application, [b"a", b"c", b"a", b"c"])
    assert result.output == [b"'a';", b"'aa';"]
    assert letters(result) == [
        ((1,), "see", None, "c", "unknown-key"),
        ((3,), "see", None, "c", "unknown-key"),
    ]
    assert list(result.structures["s"]) == ["a"]
    assert "'c'" in result.dead_letters[0].error
    assert "'s'" in result.dead_letters[0].error


def test_route_3_a_key_that_is_listed_in_another_type_gets_a_hint(app, run):
    application = app(("to_state_partition", see, Seen, "s", keyed_by(str.encode), ["kw"]))
    [letter] = run(application, [b"kw"]).dead_letters
    assert letter.error.endswith("; 'kw' is: write key.decode()")


@pytest.mark.parametrize(("listed", "key"), [(1, "'1'"), ("1", "1"), ((1,), "1"), (1, "(1,)")])
def test_route_3_a_listed_key_is_of_its_type(app, run, letters, listed, key):
    application = app(
        ("to_state_partition", see, Seen, "s", keyed_by(lambda _: eval(key)), [listed])
    )
    assert letters(run(application, [b"a"])) == [((0,), "see", None, eval(key), "unknown-key")]


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
    assert list(found.structures["s"]) == [eval(key)]
    assert application.partition["s"].u64


@stateful
def see_number(message, state):
    state.items.append(message)
    return message, True


@pytest.mark.parametrize("listed", [True, False])
@pytest.mark.parametrize(
    "key", ["-1", "2**64", "'a'", "b'a'", "True", "(1,)", "1.0", "None", "10**99"]
)
def test_route_5_all_else_is_a_bad_key(app, run, letters, key, listed):
    application = app(
        ("to_state_partition_u64", see, Seen, "s", keyed_by(lambda _: eval(key)))
        + (([1],) if listed else ())
    )
    result = run(application, [b"a"])
    assert letters(result) == [((0,), "see", None, None, "bad-key")]
    assert result.structures["s"] == {}


@pytest.mark.parametrize("error", [KeyError, ValueError, StopIteration, TypeError, RuntimeError])
def test_dead_3_whatever_a_partition_function_raises(app, run, letters, error):
    def route(text):
        raise error(text)

    result = run(app(("to_state_partition", see, Seen, "s", keyed_by(route))), [b"a"])
    assert letters(result) == [((0,), "see", None, None, "raised")]
    assert result.dead_letters[0].error_type == error.__name__


def test_route_2_what_raises_when_it_is_looked_at_is_no_key(app, run, letters):
    gone = weakref.proxy(Seen())
    route = keyed_by(lambda message: gone)
    result = run(app(("to_state_partition", see, Seen, "s", route)), [b"a"])
    assert letters(result) == [((0,), "see", None, None, "bad-key")]
