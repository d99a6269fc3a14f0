"""A copy is what a pickle round trip makes, also where the round trip is left out."""

from __future__ import annotations

import collections
import copyreg
import dataclasses
import enum
import pickle
import sqlite3
import typing
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wallaroo_reference.isolated import copies
from wallaroo_reference.isolated.copies import Frozen, UnportableError, freeze, thaw

from wallaroo.canonical import structure

T = typing.TypeVar("T")


class Empty:
    pass


class Defaults:
    level = 7
    names: typing.ClassVar[list] = []


class Child(Defaults, Empty):
    pass


class Grandchild(Defaults):
    level = 8


class Property:
    @property
    def half(self):
        return self.whole / 2

    @half.setter
    def half(self, value):
        self.whole = 2 * value


class DataDescriptor:
    """Its attribute `hidden` is in ``__dict__``, but reading goes by the descriptor."""

    @property
    def hidden(self):
        return "by the property"


class Slots:
    __slots__ = ("one", "two")


class SlotsAndDict(Slots):
    pass


class DictInSlots:
    __slots__ = ("__dict__",)


class GetAttr:
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return f"no {name}"


class GetAttribute:
    def __getattribute__(self, name):
        return object.__getattribute__(self, name)


class SetAttr:
    def __setattr__(self, name, value):
        object.__setattr__(self, name, f"set: {value}")


class GetState:
    def __getstate__(self):
        return {"seen": len(self.__dict__)}


class SetState:
    def __setstate__(self, state):
        self.__dict__.update(state)
        self.restored = True


class StateIsNothing:
    def __getstate__(self):
        return None


class Reduce:
    def __reduce__(self):
        return (Reduce, (), {"reduced": sorted(map(str, self.__dict__))})


class ReduceEx:
    def __reduce_ex__(self, protocol):
        return (ReduceEx, (), {"protocol": protocol})


class NewArgs:
    def __new__(cls, made="bare"):
        self: Any = super().__new__(cls)
        self.made = made
        return self

    def __getnewargs__(self):
        return ("by pickle",)


class ConstructorOnly:
    def __init__(self, must_have):
        self.must_have = must_have


class Meta(type):
    def __call__(cls, *args, **kwargs):
        made = super().__call__(*args, **kwargs)
        made.counted = True
        return made


class WithMeta(metaclass=Meta):
    pass


class LyingEq:
    __hash__ = None

    def __eq__(self, other):
        return True


class LyingClass:
    @property
    def __class__(self):
        return Empty


class Falsy:
    def __bool__(self):
        return False

    def __len__(self):
        return 0


class Registered:
    pass


copyreg.pickle(Registered, lambda value: (Registered, (), {"by": "copyreg"}))


@dataclasses.dataclass
class Data:
    count: int = 0
    text: str = ""


@dataclasses.dataclass(frozen=True)
class FrozenData:
    count: int = 0


@dataclasses.dataclass(slots=True)
class SlottedData:
    count: int = 0


class Generic(typing.Generic[T]):
    pass


class Text(str):
    pass


class Many(list):
    pass


class Table(dict):
    pass


class Number(int):
    pass


class Broken(Exception):
    pass


Pair = collections.namedtuple("Pair", "left right")


class Colour(enum.Enum):
    RED = 1


class Flags(enum.IntFlag):
    A = 1
    B = 2


def _slots(**attributes):
    value: Any = SlotsAndDict()
    value.one = 1
    value.__dict__.update(attributes)
    return value


BARE = [
    Empty,
    Defaults,
    Child,
    Grandchild,
    Property,
    DataDescriptor,
    _slots,
    DictInSlots,
    GetAttr,
    GetAttribute,
    SetAttr,
    GetState,
    SetState,
    StateIsNothing,
    Reduce,
    ReduceEx,
    NewArgs,
    lambda: ConstructorOnly(1),
    WithMeta,
    LyingEq,
    Falsy,
    Registered,
    Data,
    FrozenData,
    Generic,
    Generic[int],
    lambda: Text("text"),
    lambda: Many([1, [2]]),
    lambda: Table(a=[1]),
    lambda: Number(3),
    lambda: Broken("why", 1),
]
"""How to make an instance with a ``__dict__`` that anything may be put into."""

HOOKS = [
    "__reduce_ex__",
    "__reduce__",
    "__getstate__",
    "__setstate__",
    "__getattribute__",
    "__getattr__",
    "__getnewargs__",
    "__getnewargs_ex__",
    "__slots__",
    "__class__",
    "__dict__",
    "__new__",
    "__init__",
    "__copy__",
    "__deepcopy__",
]

atoms = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(), st.binary(), st.just(2**70)
)
names = st.one_of(
    st.sampled_from([*HOOKS, "level", "names", "half", "whole", "hidden", "one", "counted"]),
    st.text(max_size=3),
    st.integers(0, 2),
    st.builds(Text, st.text(max_size=2)),
    st.tuples(st.integers(0, 2)),
)
values = st.recursive(
    st.one_of(
        atoms,
        st.sampled_from(
            [Colour.RED, Flags.A | Flags.B, Pair(1, "two"), Fraction(1, 3), Empty, len, Text("t")]
        ),
        st.builds(Empty),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(max_size=2), inner, max_size=2),
    ),
    max_leaves=4,
)


flat = st.one_of(
    st.lists(atoms, max_size=3),
    st.dictionaries(atoms, atoms, max_size=3),
    st.sets(st.integers(), max_size=2),
)


@st.composite
def instances(draw):
    value = draw(st.sampled_from(BARE))()
    attributes = draw(st.dictionaries(names, st.one_of(atoms, values, flat), max_size=3))
    if attributes and draw(st.booleans()):  # two names for one object
        attributes["again"] = draw(st.sampled_from(list(attributes.values())))
    vars(value).update(attributes)
    return value


def round_trip(value):
    return pickle.loads(pickle.dumps(value, 5))


def behaviour(value):
    """Everything about a value that its user could ask it, attribute by attribute."""
    attributes = vars(value) if hasattr(value, "__dict__") else {}
    told = {name: _asked(value, name) for name in [*dir(type(value)), *map(str, attributes)]}
    # Read again: asking may have changed it.
    return type(value), structure(list(attributes.items())), told


def _asked(value, name):
    try:
        answer = getattr(value, name)
        return "cannot be reduced" if callable(answer) else structure(answer)
    except Exception as error:  # noqa: BLE001 - whatever it answers
        return type(error).__name__


def assert_like_a_round_trip(value):
    try:
        expected = round_trip(value)
    except Exception:  # noqa: BLE001 - whatever pickle raises
        with pytest.raises(UnportableError):
            freeze(value)
        return
    frozen = freeze(value)
    for _ in range(2):  # the first that a `Frozen` gives away is made beforehand
        copy = thaw(frozen)
        assert structure(copy) == structure(expected)
        if hasattr(value, "__dict__") and not isinstance(value, type):
            assert behaviour(copy) == behaviour(expected)
            assert list(map(type, vars(copy))) == list(map(type, vars(expected)))


@given(instances())
def test_isolation_a_copy_is_what_pickle_makes(value):
    assert_like_a_round_trip(value)


@pytest.mark.parametrize("make", BARE)
@pytest.mark.parametrize("name", [*HOOKS, "level", "half", "hidden", "one"])
@pytest.mark.parametrize("item", [None, 1, "text"])
def test_isolation_attributes_named_like_hooks(make, name, item):
    value = make()
    vars(value)[name] = item
    assert_like_a_round_trip(value)


@given(values)
def test_isolation_any_value_is_copied_as_pickle_copies_it(value):
    assert_like_a_round_trip(value)


@given(instances())
def test_isolation_no_copy_shares_anything_that_can_be_changed(value):
    try:
        frozen = freeze(value)
    except UnportableError:
        return
    one, other = thaw(frozen), thaw(frozen)
    shared = _reachable(one) & _reachable(other) | _reachable(value) & _reachable(other)
    assert not shared


def _reachable(value):
    """Ids of the instances that hang on a value by attributes (names too), items and keys."""
    found, todo = set(), [value]
    while todo:
        item = todo.pop()
        if id(item) in found or isinstance(item, (type, enum.Enum)) or callable(item):
            continue
        if hasattr(item, "__dict__"):
            found.add(id(item))
            todo += [*vars(item), *vars(item).values()]
        if isinstance(item, (list, dict)):
            found.add(id(item))
        if isinstance(item, dict):
            todo += item.values()
        if isinstance(item, (list, tuple)):
            todo += item
    return found


def test_isolation_what_is_changed_later_does_not_show():
    value: Any = Empty()
    value.number = 1
    frozen = freeze(value)
    value.number = 2
    first = thaw(frozen)
    first.number = 3
    assert thaw(frozen).number == 1


@pytest.mark.parametrize(
    "value",
    [1, True, "a", b"a", 1.5, None, (), (1, "a", None), float("nan")],
)
def test_isolation_what_nobody_can_change_is_its_own_copy(value):
    assert thaw(freeze(value)) is value


@pytest.mark.parametrize("value", [(1, (2,)), Number(1), Text("a"), Pair(1, 2), 1j, range(3)])
def test_isolation_all_else_is_copied_type_and_all(value):
    copy = thaw(freeze(value))
    assert type(copy) is type(value)
    assert copy == value


def test_isolation_sharing_inside_one_value_is_kept():
    inner = []
    one, other = thaw(freeze([inner, inner]))
    assert one is other


def test_isolation_a_value_that_contains_itself():
    value: Any = Empty()
    value.me = value
    copy = thaw(freeze(value))
    assert copy.me is copy
    assert copy is not value


def _local():
    class Local:
        pass

    return Local()


class Renamed:
    pass


Hidden = Renamed
Renamed = None


class Connection(sqlite3.Connection):
    """Its data are where no pickle reaches: the bare copy would be of no use."""


class Cursor(sqlite3.Cursor):
    pass


@pytest.mark.parametrize(
    "value",
    [
        lambda: 1,
        (n for n in []),
        _local(),
        Hidden(),
        memoryview(b"a"),
        Connection.__new__(Connection),
        Cursor.__new__(Cursor),
    ],
)
def test_isolation_what_pickle_refuses_is_unportable(value):
    with pytest.raises(Exception):  # noqa: B017, PT011 - whatever pickle raises
        round_trip(value)
    with pytest.raises(UnportableError, match="does not survive pickling"):
        freeze(value)


def test_isolation_a_class_that_cannot_be_had_by_name_is_refused_each_time():
    for _ in range(2):
        with pytest.raises(UnportableError):
            freeze(Hidden())


class Grumpy(Exception):
    def __str__(self):
        raise ValueError("not even this")


class Refuses:
    def __reduce__(self):
        raise Grumpy


def test_isolation_an_error_without_a_text_is_still_unportable():
    with pytest.raises(UnportableError, match="Grumpy"):
        freeze(Refuses())


class Once:
    """Survives one round trip, and no second one."""

    thawed = 0

    def __setstate__(self, state):
        type(self).thawed += 1
        if type(self).thawed > 1:
            raise ValueError("never again")


def test_isolation_what_fails_only_later_is_unportable_then():
    Once.thawed = 0
    value: Any = Once()
    value.something = 1
    frozen = freeze(value)
    thaw(frozen)
    with pytest.raises(UnportableError, match="never again"):
        thaw(frozen)


class DeepCopy:
    def __deepcopy__(self, memo):
        raise AssertionError("never __deepcopy__")

    __copy__ = __deepcopy__


def test_isolation_never_deepcopy():
    assert type(thaw(freeze(DeepCopy()))) is DeepCopy


@given(instances(), st.one_of(atoms, values))
def test_isolation_same_is_never_said_of_what_has_changed(value, item):
    try:
        frozen = freeze(value)
        before = structure(thaw(frozen))
        vars(value)["changed"] = item
        same = not isinstance(frozen, Frozen) or frozen.same(value)
    except Exception:  # noqa: BLE001 - not portable: another test's
        return
    if same:
        assert structure(value) == before


def test_isolation_same_sees_a_changed_class():
    value: Any = Empty()
    value.a = 1
    frozen = freeze(value)
    assert frozen.same(value)
    value.__class__ = Child
    assert not frozen.same(value)


def test_isolation_the_shortcut_is_taken():
    """Or all of the above would say nothing of it."""
    for make in (Empty, Grandchild, Property, Data, Falsy, LyingEq, SetAttr):
        value = make()
        assert type(freeze(value)) is copies._Plain
        vars(value).update(text="a", numbers=[1, 2], table={"a": 1, 2: None})
        assert type(freeze(value)) is copies._Plain


def test_isolation_a_class_that_lies_about_its_class():
    assert_like_a_round_trip(Empty())
    value = LyingClass()
    value.__dict__["a"] = 1
    with pytest.raises(Exception):  # noqa: B017, PT011 - pickle notices
        round_trip(value)
    with pytest.raises(UnportableError):
        freeze(value)
