"""What a key is, and when two are the same (route-2)."""

import enum
import json
from collections import namedtuple

import pytest
from drawn_keys import keys
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.keys import (
    MAX_ENCODED_KEY,
    BadKeyError,
    decode_key,
    encode_key,
    identity,
    key_from_json,
    key_to_json,
    partition_number,
    respelling_hint,
    show_key,
)


def deep(levels, innermost=()):
    key = innermost
    for _ in range(levels):
        key = (key,)
    return key


def same(one, other):
    """Types and values are the same, at every depth: the rule's own words."""
    if type(one) is not type(other):
        return False
    if type(one) is tuple:
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


@given(keys, keys)
def test_route_2_two_keys_are_the_same_when_types_and_values_are(one, other):
    expected = same(one, other)
    assert (encode_key(one) == encode_key(other)) is expected
    assert (identity(one) == identity(other)) is expected
    if expected:
        assert hash(identity(one)) == hash(identity(other))


@given(st.lists(keys, unique_by=encode_key, max_size=6))
def test_route_2_different_keys_stay_apart_in_a_dict(several):
    assert len({identity(key) for key in several}) == len(several)


@pytest.mark.parametrize(("length", "shown"), [(78, "'{}'"), (79, "'{}…")])
def test_a_key_is_shown_whole_if_it_is_short(length, shown):
    assert show_key("a" * length) == shown.format("a" * length)


@given(keys)
def test_route_2_an_encoding_has_one_key(key):
    assert same(decode_key(encode_key(key)), key)
    assert same(key_from_json(json.loads(json.dumps(key_to_json(key)))), key)
    assert len(show_key(key)) <= 81


@given(st.lists(keys | st.integers(0, 2**64), max_size=10).map(tuple))
def test_route_4_a_tuple_is_encoded_as_its_items_are(key):
    items = b"".join(map(encode_key, key))
    assert encode_key(key) == b"t" + len(key).to_bytes(4, "big") + items


class Text(str):
    pass


class Bytes(bytes):
    pass


class Number(enum.IntEnum):
    ONE = 1


class Name(enum.StrEnum):
    ONE = "one"


Pair = namedtuple("Pair", "left right")


SUBCLASSES = [Text("a"), Bytes(b"a"), Number.ONE, Name.ONE, Pair(1, 2)]
CONTAINERS = [[1], {"a": 1}, {1}, frozenset(), bytearray(b"a"), memoryview(b"a")]
NO_KEYS = [True, False, None, 1.0, 1j, float("nan"), object(), object, *SUBCLASSES, *CONTAINERS]


@pytest.mark.parametrize("key", NO_KEYS)
def test_route_2_nothing_else_is_a_key(key):
    for value in (key, (key,), ("a", (key,), 1)):
        for call in (encode_key, identity):
            with pytest.raises(BadKeyError, match="a key is a str, bytes, int or a tuple of keys"):
                call(value)
        with pytest.raises(BadKeyError):
            partition_number(value, 3)


FITS = MAX_ENCODED_KEY - 5


@pytest.mark.parametrize(
    ("longest", "longer"),
    [
        ("a" * FITS, "a" * (FITS + 1)),
        ("é" * (FITS // 2), "é" * (FITS // 2 + 1)),
        ("\ud800" * (FITS // 3), "\ud800" * (FITS // 3 + 1)),
        ("😀" * (FITS // 4), "😀" * (FITS // 4 + 1)),
        (bytes(FITS), bytes(FITS + 1)),
        ((1 << (8 * FITS - 1)) - 1, 1 << (8 * FITS - 1)),
        (-(1 << (8 * FITS - 1)), -(1 << (8 * FITS - 1)) - 1),
        (((),) * (FITS // 5), ((),) * (FITS // 5 + 1)),
        (deep(MAX_ENCODED_KEY // 5 - 1), deep(MAX_ENCODED_KEY // 5)),
        (("a" * (FITS - 5),), ("a" * (FITS - 4),)),
    ],
    ids=["ascii", "latin", "surrogate", "emoji", "bytes", "int", "-int", "wide", "deep", "inside"],
)
def test_route_2_an_encoding_is_64_kib_at_most(longest, longer):
    assert len(encode_key(longest)) <= MAX_ENCODED_KEY < len(encode_key(longest)) + 5
    identity(longest)
    for call in (encode_key, identity):
        with pytest.raises(BadKeyError, match="over 65536 bytes"):
            call(longer)


def test_route_2_enormous_values_are_refused_without_being_encoded():
    shared = ()
    for _ in range(100):
        shared = (shared, shared)  # 2**100 items, were it written out
    # Not (0,) * 10_000_000, which mypy would write out: it took a third of its time.
    wide = tuple([0] * 10_000_000)  # mypy would write out (0,) * 10_000_000, and take 15 s longer
    for key in ("a" * 10_000_000, bytes(10_000_000), 1 << 100_000_000, wide, shared):
        with pytest.raises(BadKeyError):
            encode_key(key)


def test_route_2_very_deep_tuples_are_keys():
    one, other = deep(10_000), deep(10_000)
    assert identity(one) == identity(other)
    assert identity(one) != identity(deep(9_999))
    assert identity(one) != identity(deep(9_999, "x"))
    assert encode_key(decode_key(encode_key(one))) == encode_key(one)
    assert encode_key(key_from_json(key_to_json(one))) == encode_key(one)
    assert len(show_key(one)) <= 81
    partition_number(one, 7)


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"s",
        b"x\x00\x00\x00\x00",
        b"s\x00\x00\x00\x02a",
        b"i\x00\x00\x00\x02\x00\x01",
        b"t\x00\x00\x00\x01",
        b"i\x00\x00\x00\x00",
        b"s\x00\x00\x00\x01aa",
        encode_key("a") * 2,
        b"s\x00\x00\x00\x01\xff",
    ],
)
def test_route_2_what_is_no_encoding_is_refused(encoded):
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it says
        decode_key(encoded)


@given(st.binary(max_size=40))
def test_route_2_no_two_encodings_have_one_key(encoded):
    try:
        key = decode_key(encoded)
    except ValueError:
        return
    assert encode_key(key) == encoded


@pytest.mark.parametrize(
    ("key", "listed", "how"),
    [
        (b"kw", "kw", "key.decode()"),
        ("kw", b"kw", "key.encode()"),
        ("\u20ac", "\u20ac".encode(), "key.encode()"),
        (97, "a", "chr(key)"),
        (97, b"a", "bytes([key])"),
        (0, b"\0", "bytes([key])"),
        (255, b"\xff", "bytes([key])"),
        (0, "\0", "chr(key)"),
        (0x10FFFF, "\U0010ffff", "chr(key)"),
        ("a", 97, "ord(key)"),
        (b"a", 97, "ord(key)"),
        ("97", 97, "int(key)"),
        (97, "97", "str(key)"),
    ],
)
def test_route_3_a_key_listed_in_another_type_gets_a_hint(key, listed, how):
    hint = respelling_hint(key, {listed}.__contains__)
    assert hint == f"; {listed!r} is: write {how}"
    assert eval(how, {"key": key}) == listed


@pytest.mark.parametrize("key", [b"\xff", "\ud800", -1, 2**40, "ab", b"", "", ("a",), 5])
def test_route_3_a_key_listed_in_no_type_gets_none(key):
    assert respelling_hint(key, {"kw", b"kw", 97}.__contains__) == ""


@pytest.mark.parametrize(
    ("key", "said"),
    [
        (1.0, "not float; for a whole number divide by //, not by /"),
        ((1, 2.0), "not float inside a tuple; for a whole number divide by //, not by /"),
        (None, "not NoneType; does the partition function return on every path?"),
        (True, "not bool; convert it: int(key)"),
        (("a", Name.ONE), "not Name inside a tuple; convert it: str(key)"),
        (Pair(1, 2), "not Pair; convert it: tuple(key)"),
        ([1], "not list"),
    ],
)
def test_route_2_what_is_no_key_is_named_with_a_hint_for_the_usual_slips(key, said):
    with pytest.raises(BadKeyError) as refused:
        encode_key(key)
    assert str(refused.value) == f"a key is a str, bytes, int or a tuple of keys, {said}"


def test_route_2_a_float_of_numpy_gets_the_hint_for_floats():
    numpy = pytest.importorskip("numpy")
    with pytest.raises(BadKeyError, match="for a whole number divide by //, not by /"):
        encode_key(numpy.float64(1))


@pytest.mark.parametrize(
    ("key", "form"),
    [
        ("a\u20ac", {"str": "a\u20ac"}),
        (b"\0a", {"bytes": "AGE="}),
        (-7, {"int": "-7"}),
        (1 << 1000, {"int": f"{1 << 1000:#x}"}),
        ((), {"tuple": []}),
        (("a", (1,)), {"tuple": [{"str": "a"}, {"tuple": [{"int": "1"}]}]}),
        ("\ud83d\ude00", {"encoded": "cwAAAAbtoL3tuIA="}),
    ],
    ids=["text", "bytes", "number", "long number", "empty", "nested", "pair of surrogates"],
)
def test_dead_1_a_key_in_json_says_its_type(key, form):
    assert key_to_json(key) == form


@pytest.mark.parametrize("form", [None, 1.5, {}, {"str": 1}, {"tuple": "ab"}, {"what": "a"}])
def test_what_is_no_key_in_json_is_refused(form):
    with pytest.raises(ValueError, match="not a type-tagged key"):
        key_from_json(form)
