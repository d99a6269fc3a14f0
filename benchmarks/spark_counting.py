"""The application of Spark's benchmarks and of `moving.py`: counts messages ``key number`` by key.

``--in HOST:PORT --out HOST:PORT [--steps N]``: N state partitions in a row, each of which adds its
count to the message.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import wallaroo


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--steps", type=int, default=1)
    options, _ = parser.parse_known_args(args)
    (source,), (sink,) = wallaroo.tcp_parse_input_addrs(args), wallaroo.tcp_parse_output_addrs(args)
    builder = wallaroo.ApplicationBuilder("counting")
    builder.new_pipeline("messages", wallaroo.TCPSourceConfig(*source, decode))
    for number in range(options.steps):
        builder.to_state_partition(count, Count, f"counts {number}", key)
    return builder.to_sink(wallaroo.TCPSinkConfig(*sink, encode)).build()


class Count:
    """The state of a key."""

    def __init__(self) -> None:
        self.count = 0


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> str:
    """Turn a payload into text."""
    return payload.decode()


@wallaroo.partition
def key(message: str) -> str:
    """Return what stands before the first space."""
    return message.partition(" ")[0]


@wallaroo.state_computation(name="count")
def count(message: str, state: Count) -> tuple[str, bool]:
    """Count."""
    state.count += 1
    return f"{message} {state.count}", True


@wallaroo.encoder
def encode(message: str) -> str:
    """Write a line."""
    return message + "\n"
