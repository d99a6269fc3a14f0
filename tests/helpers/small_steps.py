"""Components as small as tests of single rules want them, all of them importable."""

import wallaroo


class Seen:
    """A state: what it has seen."""

    def __init__(self):
        self.items = []


def computation(function):
    return wallaroo.computation(name=function.__name__)(function)


def multi(function):
    return wallaroo.computation_multi(name=function.__name__)(function)


def stateful(function):
    return wallaroo.state_computation(name=function.__name__)(function)


def gives(value):
    """A computation that gives `value` for every message."""
    return wallaroo.computation(name="gives")(lambda message: value)


def gives_items(result):
    return wallaroo.computation_multi(name="gives")(lambda message: result)


def returns(result):
    """A state computation that returns `result` after it has counted."""

    def compute(message, state):
        state.items.append(message)
        return result

    return wallaroo.state_computation(name="returns")(compute)


def keyed_by(function):
    return wallaroo.partition(function)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload


@wallaroo.kafka_decoder
def record(record):
    return record


class Values:
    """A decoder of records that is a class."""

    def decode(self, value):
        return value


@wallaroo.encoder
def encode(message):
    return message


@wallaroo.encoder
def shown(message):
    return repr(message)


@computation
def identity(message):
    return message


@multi
def words(text):
    return text.split()


@multi
def characters(text):
    return list(text)


@stateful
def see(message, state):
    state.items.append(message)
    return "".join(state.items), True


@wallaroo.partition
def whole(message):
    return message


@wallaroo.partition
def first(message):
    return message[0]


@wallaroo.decoder(header_length=4, length_fmt=">I")
def literal(payload):
    """A message written as a Python literal, or anything else that can be evaluated."""
    return eval(payload)
