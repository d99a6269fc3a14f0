"""Computations without state, one message out or several. The first of each kind is the plainest.

What goes wrong goes wrong on a mark in the message, so that most messages live on: ``x`` raises,
``y`` gives a wrong shape, ``z`` what cannot be pickled, ``quit`` ends the process. Results stay
small however the operators are combined: containers are not nested deeper, text is cut.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import wallaroo
from wallaroo_conformance.operators.table import Table, Trait

COMPUTATIONS = Table()
MULTI_COMPUTATIONS = Table()


class AwkwardError(Exception):
    """Cannot be unpickled, and has no text."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code)
        self.reason = reason

    def __str__(self) -> str:
        raise ValueError("no text")


@COMPUTATIONS.add()
@wallaroo.computation(name="identity")
def identity(message: Any) -> Any:
    """Give the message on."""
    return message


@COMPUTATIONS.add()
@wallaroo.computation(name="shout")
def shout(message: Any) -> Any:
    """Make upper-case text of anything."""
    return str(message).upper()[:20]


@COMPUTATIONS.add()
class Size:
    """The text's length: falsy for an empty one. Written as a class."""

    def name(self) -> str:
        """Return the computation's name."""
        return "size"

    def compute(self, message: Any) -> Any:
        """Count characters."""
        return len(str(message))


@COMPUTATIONS.add()
@wallaroo.computation(name="only short")
def only_short(message: Any) -> Any:
    """Filter what is longer than three characters."""
    return message if len(str(message)) <= 3 else None


@COMPUTATIONS.add()
@wallaroo.computation(name="falsy")
def falsy(message: Any) -> Any:
    """Give one of the messages that are false and still messages."""
    return (0, "", b"", [], False, (), {}, 0.0)[len(str(message)) % 8]


@COMPUTATIONS.add()
@wallaroo.computation(name="wrap")
def wrap(message: Any) -> Any:
    """Put the message into a list."""
    return message if isinstance(message, list) else [message]


@COMPUTATIONS.add()
@wallaroo.computation(name="record")
def record(message: Any) -> Any:
    """Make a dict of the message."""
    return {"text": str(message)[:8], "marks": []}


@COMPUTATIONS.add()
@wallaroo.computation(name="label")
def label(message: Any) -> Any:
    """Make a tuple of the message."""
    return (str(message)[:4], 1)


@COMPUTATIONS.add()
@wallaroo.computation(name="mark")
def mark(message: Any) -> Any:
    """Alter the message in place, if that can be, and give it on."""
    if isinstance(message, list):
        message.append("marked")
        del message[:-3]
    elif isinstance(message, dict):
        message["marks"] = ["marked"]
    return message


@COMPUTATIONS.add()
@wallaroo.computation(name="clear")
def clear(message: Any) -> Any:
    """Empty the message in place, if that can be."""
    if isinstance(message, (list, dict)):
        message.clear()
    return message


@COMPUTATIONS.add()
@wallaroo.computation(name="disguise")
def disguise(message: Any) -> Any:
    """Give one of five messages that look alike."""
    return ("1", b"1", 1, (1,), True)[len(str(message)) % 5]


@COMPUTATIONS.add()
@wallaroo.computation(name="refuse")
def refuse(message: Any) -> Any:
    """Raise on a message with an x."""
    if "x" in str(message):
        raise ValueError(f"refused: {message}")
    return message


@COMPUTATIONS.add()
@wallaroo.computation(name="mark, then refuse")
def mark_then_refuse(message: Any) -> Any:
    """Alter the message, then raise on one with an x."""
    if isinstance(message, list):
        message.append("late")
        del message[:-3]
    if "x" in str(message):
        raise KeyError("late")
    return message


@COMPUTATIONS.add()
@wallaroo.computation(name="awkward")
def awkward(message: Any) -> Any:
    """Raise exceptions that are hard to carry: without text, not picklable, `StopIteration`."""
    if "x" in str(message):
        if len(str(message)) % 2:
            raise StopIteration(message)
        raise AwkwardError(7, "seven")
    return message


@COMPUTATIONS.add(Trait.FINDING)
@wallaroo.computation(name="closure")
def closure(message: Any) -> Any:
    """Give a function made on the spot for a message with a z."""
    return (lambda: message) if "z" in str(message) else message


@COMPUTATIONS.add()
@wallaroo.computation(name="leave")
def leave(message: Any) -> Any:
    """End the process on the message quit."""
    if message in ("quit", b"quit"):
        sys.exit("asked to leave")
    return message


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="both")
def both(message: Any) -> Any:
    """Give the message and another."""
    return [message, "and"]


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="split")
def split(message: Any) -> Any:
    """Give the message's words: none, one or several."""
    return str(message).split()[:5]


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="characters")
def characters(message: Any) -> Iterator[Any]:
    """Give the first characters one by one, as a generator."""
    yield from str(message)[:4]


@MULTI_COMPUTATIONS.add(Trait.FINDING, Trait.SAME_OBJECT)
@wallaroo.computation_multi(name="twice")
def twice(message: Any) -> Any:
    """Give the same object twice."""
    return [message, message]


@MULTI_COMPUTATIONS.add()
class Gaps:
    """Leaves gaps between what it gives. Written as a class."""

    def name(self) -> str:
        """Return the computation's name."""
        return "gaps"

    def compute_multi(self, message: Any) -> Any:
        """Give two messages, and `None` around them."""
        return (None, str(message)[:6], None, 0)


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="nothing")
def nothing(message: Any) -> Any:
    """Give `None` or an empty list: none in both ways."""
    return None if len(str(message)) % 2 else []


@MULTI_COMPUTATIONS.add(Trait.FALSY_ITEMS)
@wallaroo.computation_multi(name="falsy items")
def falsy_items(message: Any) -> Any:
    """Give messages that are false and still messages."""
    return iter(["", 0, False, [], str(message)[:3]])


@MULTI_COMPUTATIONS.add(Trait.FINDING, Trait.SAME_OBJECT)
@wallaroo.computation_multi(name="one buffer")
def one_buffer(message: Any) -> Iterator[Any]:
    """Give one list again and again, altering it in between."""
    buffer: list[str] = []
    for character in str(message)[:3]:
        buffer.append(character)
        yield buffer


@MULTI_COMPUTATIONS.add(Trait.RAISES_CONSUMED)
@wallaroo.computation_multi(name="stumble")
def stumble(message: Any) -> Iterator[Any]:
    """Give a message, then raise on one with an x."""
    yield str(message)[:5]
    if "x" in str(message):
        raise ValueError("stumbled")
    yield "end"


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="wrong shape")
def wrong_shape(message: Any) -> Any:
    """Give what is no list of messages, on a message with a y."""
    written = str(message)[:6]
    if "y" not in written:
        return [message]
    shapes = (written, written.encode(), {written: 1}, {1, 2}, 7, bytearray(b"y"), frozenset({1}))
    return shapes[len(written) % 7]


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="burst")
def burst(message: Any) -> Any:
    """Give a dozen messages."""
    return [f"{str(message)[:3]}{number}" for number in range(12)]


@MULTI_COMPUTATIONS.add()
@wallaroo.computation_multi(name="thousands")
def thousands(message: Any) -> Any:
    """Give hundreds of messages for the message many."""
    return [f"m{number}" for number in range(700)] if message in ("many", b"many") else [message]
