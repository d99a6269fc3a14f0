"""Reads a topic, and lets one message in some thousands through, over TCP."""

from __future__ import annotations

import wallaroo

EVERY = 10_000


class Decode:
    """Messages are numbers as text, in front of what fills them up."""

    def decode(self, value: bytes) -> int | None:
        """Return one number of many."""
        number = int(value[:10])
        return None if number % EVERY else number


@wallaroo.encoder
def encode(number: int) -> str:
    """Return the number on a line."""
    return f"{number}\n"


def application_setup(args: list[str]) -> object:
    """Build it; arguments: TOPIC BROKERS PORT."""
    topic, brokers, port = args
    source = wallaroo.KafkaSourceConfig(topic, brokers, Decode)
    sink = wallaroo.TCPSinkConfig("127.0.0.1", int(port), encode)
    return wallaroo.build_application("reading", wallaroo.source("s", source).to_sink(sink))
