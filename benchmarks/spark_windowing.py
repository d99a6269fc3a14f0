"""The application of `spark_windows.py`: counts messages ``key time`` per key and window.

`windows.py` has its decoder and keys from here.

``--in HOST:PORT --out HOST:PORT``: windows of ten seconds of event time, which wait one second.
"""

from __future__ import annotations

from collections.abc import Sequence

import wallaroo
from wallaroo.kinds import Bounds

RANGE = wallaroo.seconds(10)
DELAY = wallaroo.seconds(1)

Message = tuple[str, int]


def application_setup(args: Sequence[str]) -> wallaroo.Application:
    """Describe the application."""
    (source,), (sink,) = wallaroo.tcp_parse_input_addrs(args), wallaroo.tcp_parse_output_addrs(args)
    counts = (
        wallaroo.source("messages", wallaroo.TCPSourceConfig(*source, decode, event_time=time_of))
        .key_by(key_of)
        .to(wallaroo.range_windows(RANGE).with_delay(DELAY).over(Count))
        .to_sink(wallaroo.TCPSinkConfig(*sink, encode))
    )
    return wallaroo.build_application("windowing", counts)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> Message:
    """Return a key and a time in nanoseconds."""
    key, time = payload.split()
    return key.decode(), int(time)


def time_of(message: Message) -> int:
    """Return the event time."""
    return message[1]


@wallaroo.key_extractor
def key_of(message: Message) -> str:
    """Return the key."""
    return message[0]


class Count:
    """Counts."""

    def initial_accumulator(self) -> int:
        """Return the count of no message."""
        return 0

    def update(self, message: Message, count: int) -> int:
        """Count a message."""
        return count + 1

    def output(self, key: str, count: int, window: Bounds) -> str:
        """Return a line."""
        return line(key, window.start // 10**6, count)


@wallaroo.encoder
def encode(text: str) -> str:
    """Write a line."""
    return text


def line(key: str, start: int, count: int) -> str:
    """Return an output; `start` in milliseconds."""
    return f"{key} {start} {count}\n"
