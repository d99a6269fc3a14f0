"""Letters in a message's text that make a component of a timed case fail, each at one place."""

from __future__ import annotations

import re
from typing import Final, NoReturn

MARKS = {
    "e": "its event time raises",
    "k": "key extractors raise",
    "f": "key extractors give what is no key",
    "d": "a computation drops it",
    "b": "a state computation raises before it has altered anything",
    "s": "a state computation raises",
    "u": "update raises",
    "c": "combine raises",
    "o": "output raises",
    "n": "output gives nothing",
    "w": "the encoder raises",
    "p": "the case's own codec refuses it",
}

_ERRORS: Final = (ValueError, TypeError, StopIteration, KeyError)
"""What marks raise, by the number before them; engines catch some of these themselves."""


def fail(text: str) -> NoReturn:
    """Raise what a mark in `text` is for."""
    number = re.match(r"\d*", text)
    assert number is not None  # no digits are found too
    raise _ERRORS[int(number[0] or 0) % len(_ERRORS)](text)
