"""A copy is what a pickle round trip makes, also where the round trip is left out."""

from __future__ import annotations

import copyreg
import enum
import pickle
import sqlite3
from typing import Any

import pytest
from copied_values import (
    BARE,
    HOOKS,
    Child,
    Data,
    Empty,
    Falsy,
    Grandchild,
    LyingClass,
    LyingEq,
    Property,
    Registered,
    SetAttr,
    atoms,
    instances,
    values,
)
from hypothesis import given
from hypothesis import strategies as st
from wallaroo_reference.isolated import copies
from wallaroo_reference.isolated.copies import Frozen, UnportableError, freeze, thaw

from wallaroo.canonical import structure

copyreg.pickle(Registered, lambda value: (Registered, (), {"by": "copyreg"}))


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


@pytest.mark.parametrize("name", [*HOOKS, "level", "half", "hidden", "one"])
def test_isolation_attributes_named_like_hooks(name):
    for make in BARE:
        for item in (None, "text"):
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


@pytest.mark.parametrize(
    "value",
    [1, True, "a", b"a", 1.5, None, (), (1, "a", None), float("nan")],
)
def test_isolation_what_nobody_can_change_is_its_own_copy(value):
    assert thaw(freeze(value)) is value


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


def test_isolation_same_sees_what_lists_and_dicts_hold():
    value: Any = Empty()
    vars(value).update(items=["a", "b"], table={"a": 1, "b": 2})
    frozen = freeze(value)
    vars(value).update(items=["a", "b"], table={"b": 2, "a": 1})
    assert frozen.same(value)
    for items in (["a"], ["b", "a"], {"a": 1, "b": 2}):
        value.items = items
        assert not frozen.same(value)


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
