"""Counts by key, from a topic to a topic: what `benchmarks/kafka.py` runs."""

from __future__ import annotations

import wallaroo


class Count:
    """How often a key came."""

    def __init__(self) -> None:
        self.count = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> str:
    """Return the text."""
    return payload.decode()


@wallaroo.partition
def key(message: str) -> str:
    """Return its first word."""
    return message.partition(" ")[0]


@wallaroo.state_computation(name="count")
def count(message: str, state: Count) -> tuple[tuple[str, int], bool]:
    """Count."""
    state.count += 1
    return (message, state.count), True


@wallaroo.encoder
def encode(output: tuple[str, int]) -> tuple[str, str]:
    """Return value and key."""
    message, number = output
    return f"{message} {number}", message.partition(" ")[0]


def application_setup(args: list[str]) -> object:
    """Build it."""
    source_topic, brokers, level = wallaroo.kafka_parse_source_options(args)
    sink_topic, sink_brokers, *_ = wallaroo.kafka_parse_sink_options(args)
    source = wallaroo.KafkaSourceConfig(source_topic, brokers, level, decode, until="end")
    return (
        wallaroo.ApplicationBuilder("counting")
        .new_pipeline("count", source)
        .to_state_partition(count, Count, "counts", key)
        .to_sink(wallaroo.KafkaSinkConfig(sink_topic, sink_brokers, encode))
        .build()
    )
