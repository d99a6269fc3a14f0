"""Computations without state, one message out. The first is the plainest.

An operator fails only on a mark in the message, so that most messages go on: ``x`` raises, ``y``
gives a wrong shape, ``z`` gives a value that cannot be pickled, ``quit`` ends the process. Results
stay small however the operators are combined: containers are not nested deeper, text is shortened.
"""

from __future__ import annotations

from typing import Any

import wallaroo
from wallaroo_conformance.cases.operators.common import (
    alter,
    chosen,
    complain,
    unportable,
)
from wallaroo_conformance.cases.operators.table import Table, Trait
from wallaroo_conformance.cases.operators.values import uncommon

COMPUTATIONS = Table()


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
@wallaroo.computation(name="look-alike")
def look_alike(message: Any) -> Any:
    """Give one of the messages that are false and still messages, or that look alike."""
    return chosen(message, (0, "", b"", [], False, (), {}, 0.0, "1", b"1", 1, (1,), True, 1.0))


@COMPUTATIONS.add()
@wallaroo.computation(name="contain")
def contain(message: Any) -> Any:
    """Put the message into a list, or its text into a dict."""
    listed = message if isinstance(message, list) else [message]
    return chosen(message, (listed, {"text": str(message)[:8], "marks": []}))


@COMPUTATIONS.add()
@wallaroo.computation(name='m\u00b2 to \u00bd, "quoted"\n{and} \\ broken')
def label(message: Any) -> Any:
    """Make a tuple of the message."""
    return (str(message)[:4], 1)


@COMPUTATIONS.add()
@wallaroo.computation(name="mark")
def mark(message: Any) -> Any:
    """Alter the message in place, if that can be, and give it on."""
    alter(message, "marked")
    return message


@COMPUTATIONS.add()
@wallaroo.computation(name="clear")
def clear(message: Any) -> Any:
    """Empty the message in place, if that can be."""
    if isinstance(message, (list, dict)):
        message.clear()
    return message


@COMPUTATIONS.add()
@wallaroo.computation(name="refuse")
def refuse(message: Any) -> Any:
    """Raise what engines themselves catch, or end the process."""
    complain(message, 0)
    return message


@COMPUTATIONS.add()
@wallaroo.computation(name="mark, then refuse")
def mark_then_refuse(message: Any) -> Any:
    """Alter the message, then raise on one with an x."""
    alter(message, "late")
    if "x" in str(message):
        raise KeyError("late")
    return message


@COMPUTATIONS.add()
@wallaroo.computation(name="odd value")
def odd_value(message: Any) -> Any:
    """Give a message that is easily taken for none."""
    return uncommon(message)


@COMPUTATIONS.add(made=("<",), name="Opened")
@COMPUTATIONS.add(made=(">",), name="Closed")
class Bracketed:
    """Puts a bracket before the text: instances of one class, and of one name, not alike."""

    def __init__(self, bracket: str) -> None:
        self.bracket = bracket

    def name(self) -> str:
        """Return a name that both instances have."""
        return "bracketed"

    def compute(self, message: Any) -> Any:
        """Return the bracket and the text."""
        return f"{self.bracket}{str(message)[:8]}"


@COMPUTATIONS.add(Trait.FINDING)
@wallaroo.computation(name="closure")
def closure(message: Any) -> Any:
    """Give what does not survive pickling for a message with a z."""
    return unportable(message) if "z" in str(message) else message
