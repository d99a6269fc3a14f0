"""What a function's own code proves of its results, and that nothing is proven that may fail."""

from __future__ import annotations

import contextlib
import functools
import types

import pytest
from wallaroo_reference.compiled import Compiled, compiled_source
from wallaroo_reference.interpreter import Interpreter
from wallaroo_reference.proofs import always_pairs

import wallaroo


class Visits:
    def __init__(self):
        self.number = 0


def counts(message, state):
    state.number += 1
    return (message, state.number), True


def only_looks(message, state):
    return None, False


def ends_in_many_places(message, state):
    if not message:
        return None, False
    with contextlib.suppress(ValueError):
        state.number += int(message)
    if state.number > 7:
        raise OverflowError(message)
    return (message if state.number else "none"), True


class Component:
    def compute(self, message, state):
        return message, True


def sometimes_none(message, state):
    return (message, True) if message else None


def sometimes_a_list(message, state):
    if message:
        return message, True
    return [message, False]


def says_a_variable(message, state):
    changed = bool(message)
    return message, changed


def says_a_number(message, state):
    return message, 1


def says_nothing_certain(message, state):
    return (message, True) if message else message


def wrong_way_round(message, state):
    return True, message


def three(message, state):
    return message, message, True


def passes_on(message, state):
    return counts(message, state)


def yields(message, state):
    yield message
    return message, True


async def awaits(message, state):
    return message, True


@functools.wraps(counts)
def wraps(message, state):
    return [*counts(message, state)]


class Called:
    def __call__(self, message, state):
        return message, True


class Proxy:
    """Poses as the function it stands for, as the proxies of well-known libraries do."""

    def __init__(self, function):
        self.__func__ = function
        self.__code__ = function.__code__

    @property
    def __class__(self):
        return types.FunctionType

    def __call__(self, message, state):
        return [*self.__func__(message, state)]


def poses(message, state):
    return [message, True]


poses.__func__ = counts


def with_odd_constants(message, state):
    "a constant"
    return message, True


with_odd_constants.__code__ = with_odd_constants.__code__.replace(
    co_consts=(*with_odd_constants.__code__.co_consts, [])
)


def finally_returns(message, state):
    try:
        return message, True
    finally:
        if not message:
            return message  # noqa: B012 - that is the point


def returns_within(message, state):
    for item in message:
        return item, True
    return [message, True]


@pytest.mark.parametrize(
    "call",
    [
        *(counts, only_looks, ends_in_many_places, Component().compute),
        *(lambda message, state: (message, True), lambda message, state: (None, False)),
    ],
)
def test_state_2_what_can_only_be_a_pair_is_proven(call):
    assert always_pairs(call)


@pytest.mark.parametrize(
    "call",
    [
        *(sometimes_none, sometimes_a_list, says_a_variable, says_a_number),
        *(says_nothing_certain, wrong_way_round, three, passes_on, yields, awaits, wraps),
        *(Called(), functools.partial(counts), divmod, lambda message, state: message),
        *(Proxy(counts), poses, with_odd_constants),
        *(finally_returns, returns_within),
    ],
)
def test_state_2_what_may_be_something_else_is_not_proven(call):
    assert not always_pairs(call)


@pytest.mark.parametrize(
    "call",
    [
        *(counts, only_looks, ends_in_many_places, sometimes_none, sometimes_a_list),
        *(says_a_variable, says_a_number, says_nothing_certain, wrong_way_round, three, passes_on),
        *(poses, with_odd_constants, finally_returns, returns_within),
    ],
)
def test_state_2_whether_proven_or_checked_the_results_are_the_interpreters(app, call):
    computation = wallaroo.state_computation(name="step")(call)
    application = app(("to_stateful", computation, Visits, "visits"))
    assert ("pair_of" in compiled_source(application)) is not always_pairs(call)
    machines = Interpreter(application), Compiled(application)
    for machine in machines:
        machine.feed("p", [b"a", b"", b"b"])
    one, other = machines
    assert other.outputs == one.outputs
    assert [letter.order for letter in other.dead_letters] == [
        letter.order for letter in one.dead_letters
    ]
    assert [letter.reason for letter in other.dead_letters] == [
        letter.reason for letter in one.dead_letters
    ]
