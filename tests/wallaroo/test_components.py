"""Class-based components become the records decorated ones do; these pickle as components."""

from __future__ import annotations

import pickle

import pytest
from builder_parts import Counting, Decoding, Doubling, Encoding, First

from wallaroo import kinds
from wallaroo.components import (
    computation_of,
    decoder_of,
    encoder_of,
    partition_function_of,
    state_builder_of,
    state_computation_of,
)


class Multi:
    def name(self):
        return "multi"

    def compute_multi(self, data):
        return [data]


class YieldsMany(Multi):
    def compute_multi(self, data):
        yield data


class StateMulti:
    def name(self):
        return "state multi"

    def compute_multi(self, data, state):
        return [data], True


class Named(Counting):
    def __init__(self, name):
        self.called = name

    def name(self):
        return self.called


class Builder:
    def __init__(self, start):
        self.start = start

    def build(self):
        return [self.start]


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


class Inherits(kinds.Computation[str, str]):
    """A class may name its kind."""

    def name(self) -> str:
        return "inherits"

    def compute(self, text: str) -> str:
        return text.upper()


class State:
    pass


@pytest.mark.parametrize(
    ("of", "component", "argument", "result", "name", "multi"),
    [
        (decoder_of, Decoding(), (b"a",), b"a", "Decoding", None),
        (encoder_of, Encoding(), ("a",), "a", "Encoding", None),
        (partition_function_of, First(), ("abc",), "a", "First", None),
        (computation_of, Doubling(), ("a",), "aa", "doubling", False),
        (computation_of, Multi(), ("a",), ["a"], "multi", True),
        (computation_of, Defaults(), ("a",), "aa", "defaults", False),
        (computation_of, Inherits(), ("a",), "A", "inherits", False),
        (computation_of, StaticAndClass(), (1,), (StaticAndClass, 1), "static", False),
        (state_computation_of, Named("mine"), ("a", None), ("a", True), "mine", False),
        (state_computation_of, StateMulti(), ("a", None), (["a"], True), "state multi", True),
        (state_builder_of, Builder(7), (), [7], "Builder", None),
        (state_builder_of, dict, (), {}, "dict", None),
    ],
)
def test_components_are_called_and_pickle_as_what_the_user_wrote(
    of, component, argument, result, name, multi
):
    without_state = of not in (state_computation_of, state_builder_of)
    for given in (component, type(component)) if without_state else (component,):
        for record in (of(given), pickle.loads(pickle.dumps(of(given)))):
            assert record.call(*argument) == result
            assert type(record.component) is type(given)
            assert (record.name, getattr(record, "multi", None)) == (name, multi)
    assert type(state_builder_of(State).call()) is State


def test_compute_2_a_multi_computation_may_yield():
    assert computation_of(YieldsMany()).multi
