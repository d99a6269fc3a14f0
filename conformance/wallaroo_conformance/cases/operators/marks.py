"""Letters in a message's text that make a component fail, each at one place.

Some make nothing fail: with one the state stays as it is, with others the message is of another
type.
"""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn

MARKS = {
    "e": "its event time raises",
    "k": "key extractors raise",
    "f": "key extractors give what is no key",
    "d": "a computation drops it",
    "b": "a state computation raises before it has altered anything",
    "s": "a state computation raises",
    "v": "a state computation only reads the state, and says so",
    "u": "update raises",
    "c": "combine raises",
    "o": "output raises",
    "n": "output gives nothing",
    "i": "output gives what is unportable",
    "w": "the encoder raises",
    "p": "the case's own codec refuses it",
    "r": "the case's own codec refuses a state or an accumulator that holds it",
    "g": "the message is unportable: it can be pickled, but not read back",
    "z": "the message is false, and a message all the same",
    "t": "the message is a tuple, which can be looked up; the case's own codec makes it a list",
}

CODED: Final = "t"
"""The mark of messages that are tuples: a case's own codec changes these."""

ENDS_THE_RUN: Final = "Q"
"""With this in the text, what a mark raises is `SystemExit` (dead-3)."""

_ERRORS: Final = (ValueError, TypeError, StopIteration, KeyError)
"""What marks raise, by the number before them; engines catch some of these themselves."""


class _Name(str):
    """Looks like a str."""

    __slots__ = ()


_NO_KEYS: Final = (_Name("a"), None, ("a", 1.5), True, 1.5, ("a", _Name("a")))
"""What is no key, by the number before the mark; some of it looks like one."""


def fail(text: str) -> NoReturn:
    """Raise what a mark in `text` is for."""
    if ENDS_THE_RUN in text:
        raise SystemExit(text)
    raise _ERRORS[_number(text) % len(_ERRORS)](text)


def no_key(text: str) -> Any:
    """Return what a mark in `text` is for: a value that is no key."""
    return _NO_KEYS[_number(text) % len(_NO_KEYS)]


def _number(text: str) -> int:
    """Return the number at a text's beginning, 0 if there is none."""
    number = re.match(r"\d*", text)
    assert number is not None  # no digits are found too
    return int(number[0] or 0)
