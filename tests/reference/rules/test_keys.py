"""Which entity a message meets: keys, and values that are not keys."""

import weakref

import pytest
from small_steps import Seen, keyed_by, see


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


@pytest.mark.parametrize("key", ["True", "1.0", "b'a'", "None"])
def test_route_5_what_is_no_64_bit_key_is_a_bad_key_before_it_is_unknown(app, run, letters, key):
    route = keyed_by(lambda _: eval(key))
    application = app(("to_state_partition_u64", see, Seen, "s", route, [1]))
    result = run(application, [b"a"])
    assert letters(result) == [((0,), "see", None, None, "bad-key")]
    assert result.structures["s"] == {}


def test_route_2_what_raises_when_it_is_looked_at_is_no_key(app, run, letters):
    gone = weakref.proxy(Seen())
    route = keyed_by(lambda message: gone)
    result = run(app(("to_state_partition", see, Seen, "s", route)), [b"a"])
    assert letters(result) == [((0,), "see", None, None, "bad-key")]
