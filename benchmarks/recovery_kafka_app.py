"""Counts and windows from a topic to two topics: what `recovery.py --kafka` runs and kills.

A record is ``KEY NUMBER``. All records of a key stand in one partition, in order of their
timestamps, and the outputs of a partition go to the partition of that number. So each partition of
a sink's topic has one right content, however the engine goes from partition to partition.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import wallaroo
from wallaroo.kinds import Bounds

PARTITIONS = 3
WINDOW = 200  # milliseconds

Message = tuple[int, int]
"""A key, and a number."""


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application."""
    parser = argparse.ArgumentParser()
    for name in ("brokers", "source", "counts", "windows"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--bounded", action="store_true", help="end at the end of the topic")
    options, _ = parser.parse_known_args(args)
    brokers = options.brokers
    numbers = wallaroo.source(
        "numbers",
        wallaroo.KafkaSourceConfig(
            options.source,
            brokers,
            decode,
            event_time=wallaroo.kafka_timestamp,
            until="end" if options.bounded else None,
        ),
    ).key_by(key)
    windows = wallaroo.range_windows(wallaroo.milliseconds(WINDOW)).over(Sums)
    return wallaroo.build_application(
        "recovery",
        numbers.to(count).to_sink(wallaroo.KafkaSinkConfig(options.counts, brokers, encode)),
        numbers.to(windows).to_sink(wallaroo.KafkaSinkConfig(options.windows, brokers, encode)),
    )


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> Message:
    """Return key and number."""
    key, number = payload.split()
    return int(key), int(number)


@wallaroo.key_extractor
def key(message: Message) -> int:
    """Return the key."""
    return message[0]


class Count:
    """How often a key came."""

    def __init__(self) -> None:
        self.count = 0


@wallaroo.state_computation(name="count", state=Count)
def count(message: Message, state: Count) -> tuple[int, str]:
    """Count."""
    state.count += 1
    return message[0], f"{message[1]} {state.count}"


class Sums:
    """How many numbers a window has, and their sum."""

    def initial_accumulator(self) -> tuple[int, int]:
        """Return those of no number."""
        return 0, 0

    def update(self, message: Message, sums: tuple[int, int]) -> tuple[int, int]:
        """Add a number."""
        return sums[0] + 1, sums[1] + message[1]

    def output(self, key: int, sums: tuple[int, int], window: Bounds) -> tuple[int, str]:
        """Return what the window holds."""
        return key, f"{window.start // 10**6} {sums[0]} {sums[1]}"


@wallaroo.encoder
def encode(output: tuple[int, str]) -> tuple[str, str, int]:
    """Return value, key and partition."""
    key, text = output
    return text, str(key), key % PARTITIONS
