"""Partition functions and lists of keys. The first of each is the plainest."""

from __future__ import annotations

import enum
import string
from typing import Any, NamedTuple

import wallaroo
from wallaroo_conformance.cases.operators.common import alter, chosen, complain
from wallaroo_conformance.cases.operators.table import Table, Trait
from wallaroo_conformance.cases.operators.values import Agreeable, Disguised, Undecided

PARTITION_FUNCTIONS = Table()


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


@PARTITION_FUNCTIONS.add(Trait.COMMON)
@wallaroo.partition
def by_text(message: Any) -> Any:
    """Return the message's text."""
    return str(message)[:6]


@PARTITION_FUNCTIONS.add(Trait.COMMON)
@wallaroo.partition
def hot(message: Any) -> Any:
    """Return one key for all."""
    return "hot"


@PARTITION_FUNCTIONS.add(Trait.COMMON)
@wallaroo.partition
def by_first(message: Any) -> Any:
    """Return the first letter, a to z, else an exclamation mark."""
    first = str(message)[:1].lower()
    return first if first in string.ascii_lowercase and first else "!"


@PARTITION_FUNCTIONS.add(Trait.COMMON, Trait.NUMBERS)
@wallaroo.partition
def by_value(message: Any) -> Any:
    """Return the message itself, whatever it is."""
    return message


@PARTITION_FUNCTIONS.add(Trait.NUMBERS)
class BySize:
    """Returns a small number. Written as a class."""

    def partition(self, message: Any) -> Any:
        """Return the text's length, of 4."""
        return len(str(message)) % 4


@PARTITION_FUNCTIONS.add(Trait.NUMBERS)
@wallaroo.partition
def alike(message: Any) -> Any:
    """Return one of several values that look alike; two of them are not keys."""
    return chosen(message, ("1", b"1", 1, (1,), True, "\uff11", ("1",), 1.0))


@PARTITION_FUNCTIONS.add()
@wallaroo.partition
def unusual(message: Any) -> Any:
    """Return text that is easily taken for other text."""
    keys = (
        *("\u00e9", "e\u0301", "\u00df", "ss", "", "\0", "\0\0", "\ud800", "\udc00", "\ufeffe"),
        *("a", "A", " a", "a ", "a\0", "a\n", "\U0001f600", "\ud83d\ude00", b"\xc3\xa9", b"\xe9"),
        *(b"a", b""),
    )
    return chosen(message, keys)


@PARTITION_FUNCTIONS.add(Trait.NUMBERS, made=(2, "x"), name="failing")
@PARTITION_FUNCTIONS.add(made=(1, "\0\0"), name="first_of_any")
class Beginning:
    """Returns the first characters, ASCII or not; raises on a mark: instances of one class."""

    def __init__(self, length: int, mark: str) -> None:
        self.length = length
        self.mark = mark

    def partition(self, message: Any) -> Any:
        """Return a key of at most so many characters."""
        if self.mark in str(message):
            raise LookupError("no key")
        return str(message)[: self.length]


@PARTITION_FUNCTIONS.add()
@wallaroo.partition
def nested(message: Any) -> Any:
    """Return tuples in tuples, many of which look alike when they are flattened."""
    deep: Any = ()
    for _ in range(60):
        deep = (deep,)
    keys = (
        *((), ((),), ((), ()), ("a",), (("a",),), ("a", "a"), ("aa",), (b"a",), ("", "a")),
        *((("a",), "b"), ("a", ("b",)), ("a", "b"), ("a", b"b"), (1, 2), (12,), (-1,), (-2,)),
        *(deep, ("\u00e9",), ("e\u0301",), ("\ud800",), ("a", "")),
    )
    return chosen(message, keys)


@PARTITION_FUNCTIONS.add(Trait.NUMBERS)
@wallaroo.partition
def no_key(message: Any) -> Any:
    """Return a key for some messages, and what is no key for others."""
    others: tuple[Any, ...] = (
        *(Suit.HEARTS, Name("1"), None, ["1"], ("1", None), 1.5, bytearray(b"1"), {1}, True, False),
        *(frozenset(), {}, float("nan"), 0.0, ..., range(1), memoryview(b"1"), str, ("1", ["1"])),
        *(Agreeable(), Undecided(), Disguised(), (Agreeable(),), Name(""), Point(0, 0)),
        (Point(0, 0), 0),
    )
    return chosen(message, ("even", 1, *others, "1", 0, (0, 0)))


@PARTITION_FUNCTIONS.add()
@wallaroo.partition
def nearly_tuples(message: Any) -> Any:
    """Return tuples that are keys, and values equal to them that are not keys."""
    tuples = (
        *((1,), (True,), (1.0,), ((1,),), ((True,),), (Suit.HEARTS,), (0, "a"), (False, "a")),
        *(("a", Name("a")), (0.0, "a"), ("a", "a"), Point(1, 1), (1, 1), ([1],), "a"),
    )
    return chosen(message, tuples)


@PARTITION_FUNCTIONS.add(Trait.NUMBERS)
@wallaroo.partition
def complaining_key(message: Any) -> Any:
    """Raise what engines themselves catch, or end the process."""
    complain(message)
    return len(str(message)) % 2


@PARTITION_FUNCTIONS.add(Trait.COMMON, Trait.FINDING, Trait.NUMBERS, Trait.ALTERS_MESSAGE)
@wallaroo.partition
def taking(message: Any) -> Any:
    """Find the key by taking the message apart."""
    if isinstance(message, list):
        message.append("routed")
        return len(message)
    if isinstance(message, (tuple, set)):
        alter(message, "routed")
    if isinstance(message, dict):
        message.clear()
    return str(type(message).__name__)


@PARTITION_FUNCTIONS.add()
@wallaroo.partition
def long(message: Any) -> Any:
    """Return a key just short enough, or just too long, on a message with an x."""
    if "x" not in str(message):
        return "short"
    bits = 8 * 65531
    keys = (
        *("k" * 65531, "k" * 65532, b"k" * 65531, b"k" * 65532, "\u00e9" * 32765, "\u00e9" * 32766),
        *(1 << bits - 2, 1 << bits, -1 << bits - 1, -1 << bits, ("k" * 32760, "l" * 32761)),
        *(("k" * 32760, "l" * 32762), ("k" * 65527,), ("",) * 13106, ("",) * 13107),
    )
    return chosen(message, keys)


@PARTITION_FUNCTIONS.add(Trait.NUMBERS)
@wallaroo.partition
def number(message: Any) -> Any:
    """Return a number of any size, from 0 to the largest 64-bit one and beyond."""
    numbers = (
        *(0, 1, 2**64 - 1, 2**64, -1, 2**63, 10**40, 255, 256, -2, 127, 128, -128, -129, -32768),
        *(2**31, -(2**31), 2**32, 2**53, 2**53 + 1, -(2**63), 2**63 - 1, 2**64 + 1, 10**5000),
    )
    return message if type(message) is int else chosen(message, numbers)


class KeyList(NamedTuple):
    """Keys that a partition lists, and a partition function that finds some of them.

    Args:
        keys: the keys.
        route: the function's name.
        u64: all are 64-bit keys; of other partitions, none is.
    """

    keys: list[Any]
    route: str
    u64: bool = False


KEY_LISTS: dict[str, KeyList] = {
    "letters": KeyList([*string.ascii_lowercase, "!"], "by_first"),
    "few": KeyList(["hot", "a", "even", "1", b"1", 1, (1,)], "alike"),
    "strange": KeyList(["\u00e9", "\ud800", "", "\0", (), ("a",), 2, -1], "unusual"),
    "tuples": KeyList([(), ("a",), ((),), ("a", "b"), (-1,), "a"], "nested"),
    "mixed": KeyList(["even", 0, "1"], "no_key"),
    "tuples alone": KeyList([(1,), (0, "a"), ("a", "a")], "nearly_tuples"),
    "small": KeyList([0, 1, 2, 3], "BySize", u64=True),
    "extreme": KeyList([0, 2**63, 2**64 - 1], "number", u64=True),
}


def key_lists(shape: str) -> tuple[str, ...]:
    """Return the names of the lists that a state partition of that shape can have."""
    return tuple([name for name, listed in KEY_LISTS.items() if listed.u64 is (shape == "u64")])
