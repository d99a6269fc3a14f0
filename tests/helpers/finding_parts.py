"""Messages, states and components, for tests of findings."""

from small_steps import stateful

import wallaroo


class Message:
    def __init__(self, text):
        self.text = text
        self.notes = []


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return Message(payload.decode())


@wallaroo.encoder
def encode(message):
    return getattr(message, "text", str(message))


@wallaroo.partition
def first(message):
    return message.text[:1]


@stateful
def count(message, state):
    state.items.append(message.text)
    return message, True


class CountsCalls:
    def __init__(self):
        self.calls = 0

    def name(self):
        return "counts calls"

    def compute(self, data):
        self.calls += 1
        return data
