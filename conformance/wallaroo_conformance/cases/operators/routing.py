"""Partition functions and lists of keys. The first of each is the plainest."""

from __future__ import annotations

import enum
import string
import sys
from typing import Any, NamedTuple

import wallaroo
from wallaroo_conformance.cases.operators.common import alter, chosen, complain
from wallaroo_conformance.cases.operators.table import Table, Trait

ROUTES = Table()


class Suit(enum.IntEnum):
    """Looks like an int, and is no key (route-2)."""

    HEARTS = 1


class Point(NamedTuple):
    """Looks like a tuple, and is no key (route-2)."""

    x: int
    y: int


class Name(str):
    """Looks like a str, and is no key (route-2)."""

    __slots__ = ()


@ROUTES.add(Trait.COMMON)
@wallaroo.partition
def by_text(message: Any) -> Any:
    """Return the message's text."""
    return str(message)[:6]


@ROUTES.add(Trait.COMMON)
@wallaroo.partition
def hot(message: Any) -> Any:
    """Return one key for all."""
    return "hot"


@ROUTES.add(Trait.COMMON)
@wallaroo.partition
def by_letter(message: Any) -> Any:
    """Return the first letter, a to z, else an exclamation mark."""
    first = str(message)[:1].lower()
    return first if first in string.ascii_lowercase and first else "!"


@ROUTES.add(Trait.COMMON, Trait.NUMBERS)
@wallaroo.partition
def by_value(message: Any) -> Any:
    """Return the message itself, whatever it is."""
    return message


@ROUTES.add(Trait.NUMBERS)
class BySize:
    """Returns a small number. Written as a class."""

    def partition(self, message: Any) -> Any:
        """Return the text's length, of 4."""
        return len(str(message)) % 4


@ROUTES.add(Trait.NUMBERS)
@wallaroo.partition
def alike(message: Any) -> Any:
    """Return one of the keys that look alike, two of which are none."""
    return chosen(message, ("1", b"1", 1, (1,), True, "\uff11", ("1",), 1.0))


@ROUTES.add()
@wallaroo.partition
def unusual(message: Any) -> Any:
    """Return text that is easily taken for other text."""
    keys = ("\u00e9", "e\u0301", "\u00df", "ss", "", "\0", "\0\0", "\ud800", "\udc00", "\ufeffe")
    return chosen(message, keys)


@ROUTES.add()
@wallaroo.partition
def first_of_any(message: Any) -> Any:
    """Return the first character, ASCII or not, upper or lower case."""
    return str(message)[:1]


@ROUTES.add()
@wallaroo.partition
def nested(message: Any) -> Any:
    """Return tuples in tuples."""
    written = str(message)[:2]
    return ((), (written,), ((written,),), (written, written), (written * 2,))[len(written) % 5]


@ROUTES.add(Trait.NUMBERS)
@wallaroo.partition
def no_key(message: Any) -> Any:
    """Return a key for some messages, and what is no key for others."""
    if len(str(message)) % 2:
        others = (Suit.HEARTS, Name("1"), None, ["1"], ("1", None), 1.5, bytearray(b"1"), {1})
        return chosen(message, others)
    return "even"


@ROUTES.add()
@wallaroo.partition
def nearly_tuples(message: Any) -> Any:
    """Return tuples that are keys, and such as are equal to them and are none."""
    tuples = (
        *((1,), (True,), (1.0,), ((1,),), ((True,),), (Suit.HEARTS,), (0, "a"), (False, "a")),
        *(("a", Name("a")), (0.0, "a"), ("a", "a"), Point(1, 1), (1, 1)),
    )
    return chosen(message, tuples)


@ROUTES.add(Trait.NUMBERS)
@wallaroo.partition
def failing(message: Any) -> Any:
    """Raise on a message with an x."""
    if "x" in str(message):
        raise LookupError("no key")
    return str(message)[:2]


@ROUTES.add(Trait.NUMBERS)
@wallaroo.partition
def complaining_key(message: Any) -> Any:
    """Raise what engines themselves catch."""
    complain(message)
    return len(str(message)) % 2


@ROUTES.add()
@wallaroo.partition
def leaving_key(message: Any) -> Any:
    """End the process on the message quit."""
    if message in ("quit", b"quit"):
        sys.exit("asked to leave")
    return str(message)[:2]


@ROUTES.add(Trait.FINDING, Trait.NUMBERS, Trait.ALTERS_MESSAGE)
@wallaroo.partition
def taking(message: Any) -> Any:
    """Find the key by taking the message apart."""
    if isinstance(message, list):
        message.append("routed")
        return len(message)
    if isinstance(message, tuple):
        alter(message, "routed")
    if isinstance(message, dict):
        message.clear()
    return str(type(message).__name__)


@ROUTES.add()
@wallaroo.partition
def long(message: Any) -> Any:
    """Return a key just short enough, or just too long, on a message with an x."""
    return "k" * (65531 + len(str(message)) % 2) if "x" in str(message) else "short"


@ROUTES.add(Trait.NUMBERS)
@wallaroo.partition
def number(message: Any) -> Any:
    """Return a number of any size, from 0 to the largest 64-bit one and beyond."""
    numbers = (0, 1, 2**64 - 1, 2**64, -1, 2**63, 10**40, 255, 256)
    return message if type(message) is int else numbers[len(str(message)) % 9]


class KeyList(NamedTuple):
    """Keys that a partition lists, and a partition function that finds some of them."""

    keys: list[Any]
    route: str


KEY_LISTS: dict[str, KeyList] = {
    "letters": KeyList([*string.ascii_lowercase, "!"], "by_letter"),
    "few": KeyList(["hot", "a", "even", "1", b"1", 1, (1,)], "hot"),
    "strange": KeyList(["\u00e9", "\ud800", "", "\0", (), ("a",), 2, -1], "unusual"),
}

U64_KEY_LISTS: dict[str, KeyList] = {
    "small": KeyList([0, 1, 2, 3], "BySize"),
    "extreme": KeyList([0, 2**63, 2**64 - 1], "number"),
}
