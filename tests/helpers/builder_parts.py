"""Components right and wrong, and the words of a refusal, for tests of the builder."""

from functools import partial

import pytest
from small_steps import decode, encode

import wallaroo
from wallaroo import ApplicationBuilder, TCPSinkConfig, TCPSourceConfig, WallarooParameterError


@wallaroo.computation(name="double it")
def double(message):
    return 2 * message


@wallaroo.computation_multi(name="split it")
def split(message):
    return message.split()


@wallaroo.state_computation(name="count it")
def count(message, state):
    return message, True


@wallaroo.state_computation_multi(name="count each")
def count_each(message, state):
    return [message], True


def plain(message):
    return message


def plain_with_state(message, state):
    return message, True


@wallaroo.state_computation(name="own", state=list)
def own(message, state):
    return message


class Numbers:
    def initial_value(self):
        return 0

    def apply(self, last):
        return None


class Counts:
    pass


class WantsArguments:
    def __init__(self, size):
        self.size = size


class CountsBuilder:
    def __init__(self, start=0):
        self.start = start

    def build(self):
        return Counts()


class Begun:
    __slots__ = ("start",)


class SlottedBuilder(Begun):
    __slots__ = ()

    def __init__(self, start):
        self.start = start

    def build(self):
        return Counts()


class Doubling:
    def name(self):
        return "doubling"

    def compute(self, data):
        return 2 * data


class Counting:
    def name(self):
        return "counting"

    def compute(self, data, state):
        return data, True


class First:
    def partition(self, data):
        return data[0]


class Decoding:
    def header_length(self):
        return 4

    def payload_length(self, header):
        return int.from_bytes(header, "big")

    def decode(self, payload):
        return payload


class Encoding:
    def encode(self, message):
        return message


def source(port=0, decoder=decode):
    return TCPSourceConfig("127.0.0.1", port, decoder)


def sink(port=7002):
    return TCPSinkConfig("127.0.0.1", port, encode)


def begun(pipeline="p"):
    return ApplicationBuilder("app").new_pipeline(pipeline, source())


def words():
    return wallaroo.source("words", source())


NO_DURATIONS = (0, -1, 1.5, True, "1")


def refused(call, *parts):
    with pytest.raises(WallarooParameterError) as caught:
        call()
    text = str(caught.value)
    for part in parts:
        assert part in text, text
    assert "\n" not in text
    return text


def with_attributes(base, **attributes):
    """Return a class ``Odd`` that differs from `base` in these attributes."""
    return type("Odd", (base,), attributes)


def each(values, call, *said):
    """Return a mistake for each value: what makes it, and the words of its error."""
    return [(partial(call, value), *said) for value in values]


def table(rows, call, *said):
    """Return a mistake for each row: a value, and further words of its error."""
    return [(partial(call, value), *said, *more) for value, *more in rows]


def mistakes(rules, *parts):
    """Return parameters of a test, ``call`` and ``said``, for all mistakes of these parts."""
    return [
        pytest.param(call, said, id=f"{rules} {part.__name__} {number}")
        for part in parts
        for number, (call, *said) in enumerate(part())
    ]
