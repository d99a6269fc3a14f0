"""Reading back an entity that a former run has pickled, and what is said where that fails."""

from __future__ import annotations

import pickle
import sys
from types import ModuleType
from typing import Any

import pytest
from wallaroo_spark.worker.stored import StateError, restored


class Count:
    def __init__(self, count=0):
        self.count = count

    def __eq__(self, other):
        return type(self) is type(other) and self.count == other.count

    __hash__ = None


class Picky(Count):
    def __setstate__(self, state):
        raise ValueError("no\nthanks")


@pytest.fixture
def module(monkeypatch):
    """A function that pickles a `Count` as one of a module's own."""

    def pickled(name, kind=Count):
        made: Any = ModuleType(name)
        made.Count = type("Count", (kind,), {"__module__": name, "__qualname__": "Count"})
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, made)
            blob = pickle.dumps(made.Count(7), 5)
        return made, blob

    return pickled


def test_what_was_pickled_is_read_back():
    assert restored(pickle.dumps({"a": Count(3)}, 5)) == {"a": Count(3)}


@pytest.mark.parametrize(
    ("name", "place"),
    [("wallaroo_app_gone", "the file gone.py"), ("gone_by", "the module gone_by")],
)
def test_a_module_that_is_not_there_is_named(module, name, place):
    _, blob = module(name)
    with pytest.raises(StateError) as caught:
        restored(blob)
    assert f"its class Count of {place} is not there" in str(caught.value)
    assert f"ModuleNotFoundError: No module named '{name}'" in str(caught.value)
    assert f"Run the application from {place} with the class Count that wrote it" in str(
        caught.value
    )


def test_a_class_that_is_not_there_any_more_is_named(module, monkeypatch):
    made, blob = module("wallaroo_app_changed")
    del made.Count
    monkeypatch.setitem(sys.modules, "wallaroo_app_changed", made)
    with pytest.raises(StateError, match=r"class Count of the file changed\.py is not there or is"):
        restored(blob)


def test_a_class_that_does_not_take_what_is_there_is_named_in_a_line():
    blob = pickle.dumps(Picky(1), 5)
    with pytest.raises(StateError, match=r"class Picky of the module .*ValueError: no") as caught:
        restored(blob)
    assert len(str(caught.value).splitlines()) == 1


def test_bytes_that_are_no_pickle_are_damage():
    with pytest.raises(StateError, match="it is damaged"):
        restored(b"\x80\x05garbage")
