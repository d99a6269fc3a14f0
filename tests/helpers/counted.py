"""An application that numbers its messages by key, and a sender, for tests of served runs."""

import os

from receiving import hand_over

import wallaroo
from wallaroo.frames import frames


@wallaroo.decoder(header_length=4, length_fmt=">I")
def text(payload):
    return payload.decode()


class Count:
    def __init__(self):
        self.count = 0


@wallaroo.state_computation(name="number")
def number(message, state):
    if message == "bad":
        raise ValueError(message)
    if message == "die":
        os._exit(9)
    state.count += 1
    return f"{message} {state.count}", True


@wallaroo.partition
def whole(message):
    return message


@wallaroo.key_extractor
def first_word(message):
    return message.split()[0]


@wallaroo.encoder
def line(message):
    return f"{message}\n"


def source(name="p", **options):
    """A source of text, of a pipeline that is built without a builder."""
    return wallaroo.source(name, wallaroo.TCPSourceConfig("127.0.0.1", 0, text, **options))


def sink(port):
    return wallaroo.TCPSinkConfig("127.0.0.1", port, line)


def counting(port, state=Count, sinks=1):
    """Number the messages of each key; write them to so many sinks."""
    builder = wallaroo.ApplicationBuilder("counting")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text))
    builder.to_state_partition(number, state, "counts", whole)
    return builder.to_sinks([sink(port)] * sinks).build()


def send(handle, *messages, to="p"):
    """Send messages, and wait until the source has taken all."""
    payloads = [one if isinstance(one, bytes) else one.encode() for one in messages]
    hand_over(handle.addresses[to], frames(payloads))
