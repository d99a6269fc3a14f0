"""Decoders: how a case's payloads become messages. The first is the plainest."""

from __future__ import annotations

import ast
from typing import Any

import wallaroo
from wallaroo_conformance.cases.operators.common import complain, unportable
from wallaroo_conformance.cases.operators.states import Sheet
from wallaroo_conformance.cases.operators.table import Table, Trait
from wallaroo_conformance.cases.operators.values import uncommon

DECODERS = Table()


@DECODERS.add(Trait.COMMON, Trait.OF_VALUES)
@wallaroo.decoder(header_length=4, length_fmt=">I")
def text(payload: bytes) -> Any:
    """UTF-8 text; what is not UTF-8 raises."""
    return payload.decode()


@DECODERS.add()
@wallaroo.decoder(header_length=4, length_fmt=">I")
def literal(payload: bytes) -> Any:
    """A Python literal: any type of message, falsy ones and `None` among them."""
    return ast.literal_eval(payload.decode())


@DECODERS.add(Trait.COMMON, Trait.OF_VALUES)
@wallaroo.decoder(header_length=4, length_fmt=">I")
def anything(payload: bytes) -> Any:
    """A Python literal where the payload is one, else text."""
    written = payload.decode(errors="surrogateescape")
    try:
        return ast.literal_eval(written)
    except (SyntaxError, ValueError):
        return written


@DECODERS.add(Trait.COMMON, Trait.OF_VALUES)
@wallaroo.decoder(header_length=2, length_fmt=">H")
def words(payload: bytes) -> Any:
    """A list of words, which can be altered."""
    return payload.decode(errors="replace").split()


@DECODERS.add()
@wallaroo.decoder(header_length=8, length_fmt="<Q")
def raw(payload: bytes) -> Any:
    """The payload itself, behind an unusually wide header."""
    return payload


class FourBytes:
    """Has a header of four bytes."""

    def header_length(self) -> int:
        """Four bytes."""
        return 4

    def payload_length(self, header: bytes) -> int:
        """Return the payload's length."""
        return int.from_bytes(header, "big")


@DECODERS.add(made=("utf-8",), name="escaped")
@DECODERS.add(made=("latin-1",), name="latin")
class Decoded(FourBytes):
    """Text of any bytes, those that are none as lone surrogates: instances of one class."""

    def __init__(self, encoding: str) -> None:
        self.encoding = encoding

    def decode(self, payload: bytes) -> Any:
        """Return the text; never raises."""
        return payload.decode(self.encoding, "surrogateescape")


@DECODERS.add()
@wallaroo.decoder(header_length=4, length_fmt=">I")
def folders(payload: bytes) -> Any:
    """A tuple with a list in it."""
    return (payload.decode(errors="replace")[:6], ["inside"])


@DECODERS.add(Trait.COMMON, Trait.OF_VALUES)
@wallaroo.decoder(header_length=4, length_fmt=">I")
def sheets(payload: bytes) -> Any:
    """An object with a dict whose key can be altered."""
    return Sheet(payload.decode(errors="replace")[:6])


@DECODERS.add()
@wallaroo.decoder(header_length=2, length_fmt="<H")
def complaining_text(payload: bytes) -> Any:
    """Text; raises what engines themselves catch, or ends the process."""
    decoded = payload.decode(errors="replace")
    complain(decoded, 3)
    return decoded


@DECODERS.add(Trait.OF_VALUES)
@wallaroo.decoder(header_length=4, length_fmt=">I")
def odd_message(payload: bytes) -> Any:
    """A message that is easily taken for none."""
    return uncommon(payload)


@DECODERS.add(Trait.COMMON, Trait.OF_VALUES)
class Record:
    """A dict, which can be altered; written as a class."""

    def header_length(self) -> int:
        """Three bytes, which no `struct` format has."""
        return 3

    def payload_length(self, header: bytes) -> int:
        """Return the payload's length."""
        return int.from_bytes(header, "big")

    def decode(self, payload: bytes) -> Any:
        """Return the text and a list that others may append to."""
        return {"text": payload.decode(errors="replace"), "marks": []}


@DECODERS.add(Trait.FINDING, Trait.REMEMBERS, made=())
class Reused(FourBytes):
    """Hands out the same list again and again, as decoders with a buffer do."""

    def __init__(self) -> None:
        self.buffer: list[str] = []

    def decode(self, payload: bytes) -> Any:
        """Return the buffer, filled anew."""
        self.buffer[:] = payload.decode(errors="replace").split(" ")
        return self.buffer


@DECODERS.add(Trait.FINDING)
class Unpicklable(FourBytes):
    """Makes a message that cannot be pickled of a payload that holds ``z``."""

    def decode(self, payload: bytes) -> Any:
        """Return text, or what does not survive pickling."""
        decoded = payload.decode(errors="replace")
        return unportable(decoded) if "z" in decoded else decoded
