"""Which entity a message meets: keys, and values that are not keys."""

import enum
import weakref

import pytest
from small_steps import Seen, keyed_by, see


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


def test_route_3_a_key_that_is_listed_in_another_type_gets_a_hint(app, run):
    application = app(("to_state_partition", see, Seen, "s", keyed_by(str.encode), ["kw"]))
    [letter] = run(application, [b"kw"]).dead_letters
    assert letter.error.endswith("; 'kw' is: write key.decode()")


def test_route_2_very_deep_keys(app, run):
    def deep(text):
        key = text
        for _ in range(10_000):
            key = (key,)
        return key

    result = run(app(("to_state_partition", see, Seen, "s", keyed_by(deep))), [b"a", b"b", b"a"])
    assert result.output == [b"'a';", b"'b';", b"'aa';"]
    assert len(result.trace.canonical_json()) > 10_000


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


def test_route_2_what_raises_when_it_is_looked_at_is_no_key(app, run, letters):
    gone = weakref.proxy(Seen())
    route = keyed_by(lambda message: gone)
    result = run(app(("to_state_partition", see, Seen, "s", route)), [b"a"])
    assert letters(result) == [((0,), "see", None, None, "bad-key")]
