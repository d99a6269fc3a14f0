"""Class-based components become the records decorated ones do; these pickle as components."""

from __future__ import annotations

import pickle

import pytest

from wallaroo import kinds
from wallaroo.components import (
    computation_of,
    decoder_of,
    encoder_of,
    partition_function_of,
    state_builder_of,
    state_computation_of,
)


class Decoder:
    def header_length(self):
        return 4

    def payload_length(self, header):
        return int.from_bytes(header, "big")

    def decode(self, payload):
        return payload


class Encoder:
    def encode(self, message):
        return b"encoded"


class Multi:
    def name(self):
        return "multi"

    def compute_multi(self, data):
        return [data]


class StateMulti:
    def name(self):
        return "state multi"

    def compute_multi(self, data, state):
        return [data], True


class StateSingle:
    def __init__(self, name="single"):
        self.called = name

    def name(self):
        return self.called

    def compute(self, data, state):
        return data, True


class Builder:
    def __init__(self, start):
        self.start = start

    def build(self):
        return [self.start]


class Partition:
    def partition(self, data):
        return data[0]


class StaticAndClass:
    """Static and class methods are methods."""

    @staticmethod
    def name():
        return "static"

    @classmethod
    def compute(cls, data):
        return cls, data


class Defaults:
    def name(self, language="en"):
        return "defaults"

    def compute(self, data, factor=2, *rest, key=None):
        return data * factor


class State:
    pass


@pytest.mark.parametrize(
    ("of", "component", "argument", "result"),
    [
        (decoder_of, Decoder(), (b"a",), b"a"),
        (encoder_of, Encoder(), ("a",), b"encoded"),
        (computation_of, Multi(), ("a",), ["a"]),
        (computation_of, Defaults(), ("a",), "aa"),
        (state_computation_of, StateSingle(), ("a", None), ("a", True)),
        (state_computation_of, StateMulti(), ("a", None), (["a"], True)),
        (state_builder_of, Builder(7), (), [7]),
        (partition_function_of, Partition(), ("abc",), "a"),
    ],
)
def test_components_are_called_and_pickle_as_what_the_user_wrote(of, component, argument, result):
    for record in (of(component), pickle.loads(pickle.dumps(of(component)))):
        assert record.call(*argument) == result
        assert type(record.component) is type(component)
        assert record.name


@pytest.mark.parametrize(
    ("of", "component"),
    [(decoder_of, Decoder), (encoder_of, Encoder), (computation_of, Multi)],
)
def test_components_without_state_may_be_classes_and_pickle_as_such(of, component):
    record = of(component)
    assert record.component is component
    assert pickle.loads(pickle.dumps(record)).component is component


def test_components_by_value_keep_their_attributes():
    record = pickle.loads(pickle.dumps(state_computation_of(StateSingle("mine"))))
    assert record.name == "mine"


def test_components_static_and_class_methods_are_methods():
    assert computation_of(StaticAndClass).call(1) == (StaticAndClass, 1)
    assert computation_of(StaticAndClass()).name == "static"


def test_components_tell_whether_they_are_multi():
    assert computation_of(Multi).multi
    assert state_computation_of(StateMulti()).multi
    assert not computation_of(Defaults).multi
    assert not state_computation_of(StateSingle()).multi


def test_components_a_state_is_built_by_its_class_or_its_builder():
    assert state_builder_of(State).call is State
    assert type(state_builder_of(State).call()) is State
    assert state_builder_of(dict).call() == {}
    assert state_builder_of(Builder(3)).call() == [3]


class YieldsMany:
    def name(self):
        return "yields many"

    def compute_multi(self, data):
        yield data


def test_compute_2_a_multi_computation_may_yield():
    assert computation_of(YieldsMany()).multi


class Inherits(kinds.Computation[str, str]):
    def name(self) -> str:
        return "inherits"

    def compute(self, text: str) -> str:
        return text.upper()


@pytest.mark.parametrize("component", [Inherits, Inherits()])
def test_a_class_may_name_its_kind(component):
    restored = pickle.loads(pickle.dumps(computation_of(component)))
    assert (restored.name, restored.multi, restored.call("a")) == ("inherits", False, "A")
