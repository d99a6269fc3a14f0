"""States are compared by what they are made of, never by order, sharing or `__eq__`."""

from __future__ import annotations

import array
import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wallaroo
from wallaroo.canonical import structure, structure_or_kind
from wallaroo.trace import canonical_json


class Plain:
    def __init__(self, **attributes):
        self.__dict__.update(attributes)


class Liar(Plain):
    def __eq__(self, other):
        return True

    def __hash__(self):
        return 1


class Slots:
    __slots__ = ("left", "right")
    right: object

    def __init__(self, left):
        self.left = left


class SlotsAndDict(Slots):
    pass


class Reduced:
    def __init__(self, *items):
        self.items = items

    def __reduce__(self):
        return (Reduced, self.items)


class State:
    def __init__(self, value):
        self.value = value
        self.cache = object()

    def __getstate__(self):
        return self.value

    def __setstate__(self, value):
        self.__init__(value)


class Text(str):
    pass


class Tagged(list):
    pass


class Bag(set):
    pass


class NamedBag(set):
    def __init__(self, items, name="bag"):
        super().__init__(items)
        self.name = name

    def __reduce__(self):
        return (NamedBag, (list(self), self.name))


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Other(enum.Enum):
    RED = 1


Pair = collections.namedtuple("Pair", "left right")
Couple = collections.namedtuple("Couple", "left right")


@dataclasses.dataclass
class Data:
    left: object
    right: object = None


@dataclasses.dataclass(slots=True, frozen=True)
class SlottedData:
    left: object


@wallaroo.computation(name="c")
def computation(data):
    return data


NUMBERS = [None, True, False, 0, 1, -1, 10**5000, 0.0, -0.0, 1.0, math.nan, math.inf]
COMPLEX = [1 + 0j, 0j, complex(0.0, -0.0)]
TEXTS = ["", "1", "\ud800", Text("1"), b"1", bytearray(b"1")]
LISTS = [[], (), [1], (1,), Tagged([1]), [[]], [[], []], Pair(1, 2), Couple(1, 2), Pair(2, 1)]
SETS = [set(), frozenset(), {1}, frozenset([1]), Bag([1]), Bag([2]), NamedBag([1])]
NAMED_SETS = [NamedBag([1], "sack"), NamedBag([1], None), NamedBag([2])]
DICTS = [{}, {1: 1}, {1: 2}, {"1": 1}, {None: 1}, {(): {}}, collections.OrderedDict(a=1)]
PLAIN = [Plain(), Plain(a=1), Plain(a=1.0), Plain(b=1), Liar(), Liar(a=1)]
SLOTTED = [Slots(1), Slots(2), SlotsAndDict(1), SlottedData(1)]
OWN = [Reduced(), Reduced(1), State(1), State(2), Data(1), Data(1, 2)]
ENUMS = [Colour.RED, Colour.BLUE, Other.RED]
COLLECTIONS = [
    collections.Counter("a"),
    collections.defaultdict(int, a=1),
    collections.defaultdict(list, a=1),
    collections.deque([1]),
    collections.deque([1], maxlen=3),
]
LIBRARY = [datetime.date(2026, 1, 1), decimal.Decimal("1"), decimal.Decimal("1.0")]
ARRAYS = [fractions.Fraction(1, 2), array.array("i", [1]), array.array("h", [1])]
OTHERS = [range(3), slice(1), ValueError("a"), KeyError("a")]
BY_NAME = [int, str, len, math.sqrt, math.sin, Plain, json.dumps, Plain(a=1).__init__, computation]
VALUES = [
    *(*NUMBERS, *COMPLEX, *TEXTS, *LISTS, *SETS, *NAMED_SETS, *DICTS, *COLLECTIONS),
    *(*PLAIN, *SLOTTED, *OWN, *ENUMS, *LIBRARY, *ARRAYS, *OTHERS, *BY_NAME),
]


def same(one, other):
    return canonical_json(structure(one)) == canonical_json(structure(other))


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"{type(value).__name__}")
def test_isolation_a_pickle_round_trip_has_the_same_structure(value):
    form = structure(value)
    assert json.loads(canonical_json(form)) == form  # made of JSON values
    assert same(pickle.loads(pickle.dumps(value)), value)
    assert same(value, value)


def test_isolation_no_two_of_them_have_the_same_structure():
    for one, other in itertools.combinations(VALUES, 2):
        assert not same(one, other), (one, other)


def touched(error):
    vars(error)  # from now on it has a __dict__
    return error


def with_right(slots, right):
    slots.right = right
    return slots


INNER = [1]
ALIKE = {
    "floats of the same bits": (math.nan, float("nan")),
    "the order of a dict": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    "the order of attributes": (Plain(a=1, b=2), Plain(b=2, a=1)),
    "the order of a subclass of dict": (
        collections.OrderedDict(a=1, b=2),
        collections.OrderedDict(b=2, a=1),
    ),
    "the order of counts": (collections.Counter("ab"), collections.Counter("ba")),
    "sharing in a list": ([INNER, INNER], [[1], [1]]),
    "sharing of attributes": (Plain(x=INNER, y=INNER), Plain(x=[1], y=[1])),
    "keys by their contents": ({Liar(a=1): 1}, {Liar(a=1): 1}),
    "what no state shows": (State(1), State(1)),
    "empty attributes": (touched(ValueError("a")), ValueError("a")),
}
UNLIKE = {
    "zeros": ([0.0], [-0.0]),
    "signs of nan": (math.nan, -math.nan),
    "numbers that are equal": (1.0, 1),
    "values of a dict": ({"a": 1, "b": 2}, {"a": 2, "b": 1}),
    "the order of a list": ([1, 2], [2, 1]),
    "the order of a deque": (collections.deque([1, 2]), collections.deque([2, 1])),
    "objects that say they are equal": ([Liar(a=1)], [Liar(a=2)]),
    "an unset slot": (Slots(1), with_right(Slots(1), None)),
}


@pytest.mark.parametrize("what", ALIKE)
def test_isolation_this_does_not_count(what):
    assert same(*ALIKE[what])


@pytest.mark.parametrize("what", UNLIKE)
def test_isolation_this_counts(what):
    assert not same(*UNLIKE[what])


def test_isolation_the_same_under_every_hash_seed():
    code = """
import sys; sys.path.insert(0, sys.argv[1])
from wallaroo.canonical import structure
class Bag(set): pass
words = [f"word {n}" for n in range(50)]
print(structure([set(words), frozenset(words), Bag(words), {w: {w} for w in words}]))
"""
    told = {
        subprocess.run(
            [sys.executable, "-c", code, str(Path(wallaroo.__file__).parents[1])],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            timeout=60,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(told) == 1


def test_isolation_cycles():
    def loop(length):
        first: Any = Plain(name="n")
        last: Any = first
        for _ in range(length - 1):
            last.next = last = Plain(name="n")
        last.next = first
        return first

    assert same(loop(1), loop(1))
    assert same(loop(3), pickle.loads(pickle.dumps(loop(3))))
    assert not same(loop(1), loop(2))
    inside = []
    inside.append(inside)
    assert same(inside, pickle.loads(pickle.dumps(inside)))
    assert not same(inside, [[]])
    table = {}
    table["me"] = [table]
    assert same(table, pickle.loads(pickle.dumps(table)))


def test_isolation_what_is_found_by_name_is_told_by_module_and_name():
    assert structure(math.sqrt) == ["global", "math.sqrt"]
    assert structure(computation) == ["global", f"{__name__}.computation"]


@pytest.mark.parametrize(
    "value", [threading.Lock(), (n for n in ()), sys.stdout, [iter, {}.keys()]]
)
def test_isolation_what_cannot_be_pickled_has_no_structure(value):
    with pytest.raises(TypeError):
        structure(value)


class Exits(Plain):
    def __reduce_ex__(self, protocol):
        raise SystemExit("not me")


def test_isolation_what_has_no_structure_is_told_by_its_type():
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert structure_or_kind(threading.Lock()) == ["unportable", "_thread.lock"]
    assert structure_or_kind(Exits()) == ["unportable", f"{__name__}.Exits"]
    assert structure_or_kind(deep) == ["too deep", "builtins.list"]


states = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary()),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.dictionaries(st.text("abc", min_size=1, max_size=3), inner, max_size=3).map(
            lambda attributes: Plain(**attributes)
        ),
        st.builds(Data, inner, inner),
        st.builds(Pair, inner, inner),
        st.sets(st.one_of(st.integers(), st.text(max_size=2), st.none()), max_size=4),
    ),
    max_leaves=12,
)


@given(states)
def test_isolation_copies_of_any_state_have_its_structure(state):
    form = structure(state)
    assert structure(pickle.loads(pickle.dumps(state, 5))) == form
    assert structure(pickle.loads(pickle.dumps(state, 2))) == form
    assert structure(copy.deepcopy(state)) == form
    assert json.loads(canonical_json(form)) == form
