"""What the simulated engine runs: every output tells which message it is of, and what was before.

Two sources share the state: how often a key was seen, and how many messages there were in all. A
third collects what came together in a window. So what is lost, doubled, or out of order shows in
the outputs alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import wallaroo

HOST = "127.0.0.1"
SOURCES = ("first", "second", "windows")
SINKS = (("first", 0), ("first", 1), ("second", 0), ("windows", 0))
IN = {name: (HOST, 7001 + number) for number, name in enumerate(SOURCES)}
OUT = {sink: (HOST, 8001 + number) for number, sink in enumerate(SINKS)}

seen: list[str] = []
"""The messages that user code has met in this process, ``CONNECTION.FRAME``, in order."""
failed: list[str] = []
"""Those of them that became dead letters."""
made: dict[str, list[str]] = {}
"""The outputs that it made, by pipeline."""


pass_time: Callable[[float], None] = time.sleep
"""Lets so many seconds pass in user code; a run puts its own here."""


def forget() -> None:
    """Begin a process."""
    seen.clear()
    failed.clear()
    made.clear()


def _met(message: str, *, fails: bool = False) -> None:
    seen.append(message.split(maxsplit=1)[0])
    if "slow" in message:
        pass_time(0.03)
    if fails:
        failed.append(seen[-1])
        raise ValueError("it says so")


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> str:
    """Return the message: ``CONNECTION.FRAME KEY PIPELINE KIND PADDING``."""
    text = payload.decode()
    if "undecodable" in text:
        _met(text, fails=True)
    return text


class Decode:
    """Does what `decode` does, and reads a frame's length itself."""

    def header_length(self) -> int:
        """Return that of all published senders."""
        return 4

    def payload_length(self, header: bytes) -> int:
        """Return how long the payload is."""
        return int.from_bytes(header, "big")

    def decode(self, payload: bytes) -> str:
        """Return the message."""
        return decode(payload)


@wallaroo.encoder
def encode(message: str) -> str:
    """Return a line."""
    return message + "\n"


@wallaroo.partition
def key_of(message: str) -> str:
    """Return the message's key."""
    return message.split()[1]


class Count:
    """Of a key."""

    def __init__(self) -> None:
        self.count = 0


@wallaroo.state_computation(name="count")
def count(message: str, state: Count) -> tuple[str, bool]:
    """Add how often the key was seen."""
    if "raising" in message:
        _met(message, fails=True)
    state.count += 1
    return f"{message} {state.count}", True


class Number:
    """Of all messages."""

    def __init__(self) -> None:
        self.number = 0


@wallaroo.state_computation(name="number")
def number(message: str, state: Number) -> tuple[str, bool]:
    """Put the message's number in front."""
    _met(message)
    state.number += 1
    line = f"{state.number} {message}"
    made.setdefault(message.split()[2], []).append(line)
    return line, True


class Together:
    """Which messages came in a window."""

    def initial_accumulator(self) -> list[str]:
        """Return none."""
        return []

    def update(self, message: str, accumulator: list[str]) -> None:
        """Add one."""
        if "raising" in message:
            _met(message, fails=True)
        _met(message)
        accumulator.append(message.split(maxsplit=1)[0])

    def combine(self, earlier: list[str], later: list[str]) -> list[str]:
        """Return both."""
        return earlier + later

    def output(self, key: str, accumulator: list[str], window: Any) -> str:
        """Return a line."""
        line = f"{window.start} {key} {' '.join(accumulator)}"
        made.setdefault("windows", []).append(line)
        return line


def source(name: str) -> wallaroo.TCPSourceConfig:
    """Return a source's configuration."""
    decoder = Decode() if name == "second" else decode
    return wallaroo.TCPSourceConfig(*IN[name], decoder, max_size=1000)


def sink(pipeline: str, index: int) -> wallaroo.TCPSinkConfig:
    """Return a sink's configuration."""
    return wallaroo.TCPSinkConfig(*OUT[pipeline, index], encode)


WINDOWS = (
    wallaroo.range_windows(wallaroo.milliseconds(5)),
    wallaroo.range_windows(wallaroo.milliseconds(10)).with_slide(wallaroo.milliseconds(5)),
    wallaroo.session_windows(wallaroo.milliseconds(5)),
    wallaroo.count_windows(3).with_timeout(wallaroo.milliseconds(5)),
)
"""They fire though nothing comes any more."""


def build(windows: Any) -> wallaroo.Application:
    """Return the application, with one kind of windows."""
    builder = wallaroo.ApplicationBuilder("simulated")
    for name in ("first", "second"):
        builder.new_pipeline(name, source(name))
        builder.to_state_partition(count, Count, "counts", key_of)
        builder.to_stateful(number, Number, "numbers")
        builder.to_sinks([sink(*one) for one in SINKS if one[0] == name])
    builder.new_pipeline("windows", source("windows"))
    builder.to_window(windows.over(Together), key_of, "together")
    return builder.to_sink(sink("windows", 0)).build()
