"""Encoders: how messages leave. The first is the plainest."""

from __future__ import annotations

from typing import Any

import wallaroo
from wallaroo.frames import frame
from wallaroo_conformance.operators.table import Table, Trait

ENCODERS = Table()


class Loud(str):
    """Text of a type of its own."""

    __slots__ = ()


@ENCODERS.add(Trait.COMMON)
@wallaroo.encoder
def line(message: Any) -> Any:
    """Return a line of text; lone surrogates in it are refused by UTF-8."""
    return f"{message}\n"


@ENCODERS.add(Trait.COMMON)
@wallaroo.encoder
def described(message: Any) -> Any:
    """Return what tells messages of different types apart."""
    return ascii(message).encode() + b";"


@ENCODERS.add()
class Framed:
    """Returns a frame. Written as a class."""

    def encode(self, message: Any) -> Any:
        """Put a header before the text."""
        return frame(str(message).encode("utf-8", "replace"))


@ENCODERS.add()
@wallaroo.encoder
def silent(message: Any) -> Any:
    """Return nothing for some messages, and no bytes for others."""
    return (None, b"", ".")[len(str(message)) % 3]


@ENCODERS.add()
@wallaroo.encoder
def as_it_is(message: Any) -> Any:
    """Return the message itself, whatever it is."""
    return message


@ENCODERS.add()
@wallaroo.encoder
def picky(message: Any) -> Any:
    """Raise on a message with an x."""
    if "x" in str(message):
        raise OverflowError("too much")
    return Loud(f"{message}|")


@ENCODERS.add(Trait.FINDING, Trait.ALTERS_MESSAGE)
@wallaroo.encoder
def stamping(message: Any) -> Any:
    """Alter the message before it is written."""
    if isinstance(message, list):
        message.append("stamped")
    elif isinstance(message, dict):
        message["stamped"] = True
    return ascii(message).encode() + b"!"
