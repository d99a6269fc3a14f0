"""Encoders: how messages leave. The first is the plainest."""

from __future__ import annotations

from array import array
from typing import Any

import wallaroo
from wallaroo.frames import frame
from wallaroo_conformance.cases.operators.common import alter, chosen, complain
from wallaroo_conformance.cases.operators.table import Table, Trait

ENCODERS = Table()


class Plain(bytes):
    """Bytes of a type of its own, which lies about them."""

    __slots__ = ()

    def __bytes__(self) -> bytes:
        return b"?"

    def __len__(self) -> int:
        return 0


class Loud(str):
    """Text of a type of its own, which lies when it is asked for its bytes."""

    __slots__ = ()

    def encode(self, *arguments: Any) -> bytes:
        """Return other bytes than the text's."""
        return b"?"

    def __str__(self) -> str:
        return "?"


class Encodable:
    """Is neither bytes nor text, and looks like both."""

    def encode(self, *arguments: Any) -> bytes:
        """Return bytes, as text does."""
        return b"?"

    def __bytes__(self) -> bytes:
        return b"?"

    def __len__(self) -> int:
        return 0


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
    return chosen(message, (None, b"", "."))


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


@ENCODERS.add(Trait.COMMON, Trait.FINDING, Trait.ALTERS_MESSAGE)
@wallaroo.encoder
def stamping(message: Any) -> Any:
    """Alter the message before it is written."""
    alter(message, "stamped")
    return ascii(message).encode() + b"!"


@ENCODERS.add()
@wallaroo.encoder
def odd_output(message: Any) -> Any:
    """Return what is, or is not quite, bytes or text."""
    outputs: tuple[Any, ...] = (
        *(bytearray(b"a"), Plain(b"plain"), 1, [], memoryview(b"a"), True, Loud("loud")),
        *(0, 0.0, ("a",), False, object, Encodable(), array("B", b"a"), "", b"", Loud("\ud800")),
        *(Plain(), [b"a"], iter([b"a"]), b"plain", "plain", None, {}),
    )
    return chosen(message, outputs)


@ENCODERS.add(made=("!",), name="Exclaiming")
@ENCODERS.add(made=("?",), name="Asking")
class Ended:
    """Puts a character behind the text: instances of one class that are not alike."""

    def __init__(self, end: str) -> None:
        self.end = end

    def encode(self, message: Any) -> Any:
        """Return the text and its end."""
        return f"{message!a}{self.end}"


@ENCODERS.add()
@wallaroo.encoder
def annotated(message: Any) -> str:
    """Return text as announced, and for some marks what was not announced."""
    written = str(message)
    if "y" in written:
        return written.encode()  # type: ignore[return-value]
    if "z" in written:
        return None  # type: ignore[return-value]
    if "x" in written:
        return len(written)  # type: ignore[return-value]
    return written


@ENCODERS.add()
@wallaroo.encoder
def complaining_line(message: Any) -> Any:
    """Raise what engines themselves catch, or end the process."""
    complain(message)
    return f"{message}\n"
