"""An application each of whose components fails for one message, at the line that is marked so."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import wallaroo

FAILURES = {
    b"decoder": "read",
    b"computation": "Checks.compute",
    b"library": "check",
    b"multi": "each",
    b"generator": "generated",
    b"partition": "kind",
    b"state": "add",
    b"encoder": "write",
    b"cause": "check",
    b"context": "check",
    b"liar": "check",
    b"kept": "check",
}
"""The message, and the function that fails for it."""


class LyingError(Exception):
    __traceback__ = None
    __cause__: Any = ValueError("not I")

    def __str__(self) -> str:
        raise KeyError("no text")


KEPT = ValueError("kept")


class Odd:
    def __getstate__(self) -> Any:
        raise TypeError("odd")  # unpicklable


class Totals:
    def __init__(self) -> None:
        self.value = 0


class Broken(Totals):
    def __init__(self) -> None:
        raise RuntimeError("broken")  # builder


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload: bytes) -> str:
    return read(payload.decode())


def read(text: str) -> str:
    if text == "decoder":
        raise ValueError(text)  # decoder
    return text


class Checks:
    def name(self) -> str:
        return "check"

    def compute(self, text: str) -> Any:
        if text == "computation":
            raise KeyError(text)  # computation
        return check(text)


def check(text: str) -> Any:
    if text == "library":
        return json.loads("{")  # library
    if text == "cause":
        try:
            int(text)  # the cause's line
        except ValueError as error:
            raise KeyError(text) from error  # cause
    if text == "context":
        try:
            int(text)  # the context's line
        except ValueError:
            raise KeyError(text)  # context  # noqa: B904 - what is tested
    if text == "liar":
        raise LyingError  # liar
    if text == "kept":
        raise KEPT  # kept
    if text == "recursion":
        return check(text)
    if text == "unpicklable":
        return Odd()
    return text


@wallaroo.computation_multi(name="each")
def each(text: str) -> Iterator[str]:
    if text == "multi":
        raise ValueError(text)  # multi
    return generated(text)


def generated(text: str) -> Iterator[str]:
    yield text
    if text == "generator":
        raise ValueError(text)  # generator


@wallaroo.partition
def kind(text: str) -> str:
    if text == "partition":
        raise ValueError(text)  # partition
    return text


@wallaroo.state_computation(name="add")
def add(text: str, totals: Totals) -> tuple[str, bool]:
    if text == "state":
        raise ValueError(text)  # state
    totals.value += 1
    return text, True


@wallaroo.encoder
def encode(text: str) -> str:
    return write(text)


def write(text: str) -> str:
    if text == "encoder":
        raise ValueError(text)  # encoder
    return text


def application_setup(args: Sequence[str]) -> Any:
    return (
        wallaroo.ApplicationBuilder("failing")
        .new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        .to(Checks())
        .to(each)
        .to_state_partition(add, Totals, "totals", kind)
        .to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 7002, encode))
        .new_pipeline("builder", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode))
        .to_stateful(add, Broken, "broken")
        .done()
        .build()
    )


def line(mark: str) -> int:
    """The number of the line that is marked so."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    (number,) = [
        n for n, text in enumerate(lines, 1) if text.partition("  # noqa")[0].endswith(f"# {mark}")
    ]
    return number
