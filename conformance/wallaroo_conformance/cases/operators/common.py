"""What operators of several kinds share, and the payloads that they are tried on."""

from __future__ import annotations

import pickle
import string
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from wallaroo.errors import FrameError
from wallaroo.keys import BadKeyError


class Shop:
    """Holds a class whose qualified name differs from its name."""

    class ClosedError(Exception):
        """Nested, so that its ``__qualname__`` is not its ``__name__``."""


class SpeechlessError(KeyError):
    """Of a class derived from one that engines catch, and without text."""

    def __str__(self) -> str:
        raise ValueError("no text")


class AwkwardError(Exception):
    """Can be pickled, but not unpickled, as many an exception; and has no text."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code)
        self.reason = reason

    def __str__(self) -> str:
        raise ValueError("no text")


@cache
def again() -> Exception:
    """Return one and the same exception each time."""
    return ValueError("again")


def chosen(message: Any, what: Sequence[Any]) -> Any:
    """Return one of `what`, chosen by the characters of the message's text."""
    return what[sum(map(ord, str(message))) % len(what)]


def unportable(message: Any) -> Any:
    """Return what cannot be pickled, or what cannot be unpickled."""
    return chosen(message, (AwkwardError(7, "seven"), lambda: message))


def complain(message: Any, code: Any = "asked to leave") -> None:
    """Raise on a message with an x: exceptions that engines themselves catch or raise.

    On the message quit it ends the process, with that code, and on the message halt as Ctrl-C does.
    """
    written = str(message)
    if written in ("quit", "b'quit'"):
        sys.exit(code)
    if written in ("halt", "b'halt'"):
        raise KeyboardInterrupt("asked to halt")  # Ctrl-C itself has nothing to say
    if "x" not in written:
        return
    errors: tuple[Exception, ...] = (
        *(ValueError("no"), KeyError("no"), TypeError("no"), StopIteration("no")),
        *(IndexError("no"), AttributeError("no"), UnicodeEncodeError("utf-8", "x", 0, 1, "no")),
        *(OverflowError("no"), RuntimeError("no"), StopAsyncIteration("no"), EOFError("no")),
        *(NotImplementedError("no"), AssertionError("no"), Shop.ClosedError("no")),
        *(
            SpeechlessError("no"),
            AwkwardError(7, "seven"),
            BadKeyError("no"),
            FrameError("no"),
            LookupError("no"),
        ),
        *(pickle.PicklingError("no"), TimeoutError("no"), MemoryError("no"), RecursionError("no")),
        *(AwkwardError(7, "seven"), again(), again()),  # so that a case may well meet it twice
        *(ExceptionGroup("no", [KeyError("no")]), UserWarning("no"), BrokenPipeError("no")),
    )
    raise chosen(message, errors) from OSError("why")


def alter(value: Any, mark: str) -> bool:
    """Leave a mark in the first thing inside a value that can be altered, else in the value.

    A dict gets one in any case, unless one of its keys has it.

    Returns:
        Whether there is one now.
    """
    notes = getattr(value, "notes", None)
    if type(notes) in (list, tuple, dict, frozenset) or hasattr(notes, "notes"):
        return alter(notes, mark)
    if isinstance(value, (list, tuple, frozenset)):
        inside = any(alter(item, mark) for item in value if item is not value)
        if isinstance(value, list) and not inside:
            value.append(mark)
            del value[:-3]
        return inside or isinstance(value, list)
    if isinstance(value, dict):
        if not any(alter(key, mark) for key in value):
            for item in value.values():
                alter(item, mark)
            value["mark"] = mark
    elif isinstance(value, bytearray):
        value[:] = mark.encode()
    elif isinstance(value, set):
        value.add(len(mark))  # not the text: the order of texts in a set is another in each process
    else:
        return False
    return True


_TEXTS = (
    *("a", "b", "ab", "c", "a b", "aaa", "b a c", "A", "abc d", "dd"),
    *("", "0", "1", "'1'", "b'1'", "(1,)", "True", "False", "None", "[]", "[1, 'a']", "''"),
    *("b''", "()", "{}", "{'a': 1}", "-1", "2", "3", "1.5", "{1, 2}", "['b']", "'a'", "'x y'"),
    *("x", "ax", "a x b", "['x']", "y", "ya", "yab", "y a b", "z", "az", "['z', 1]"),
    # Each letter leads to another exception, or another wrong shape: see `complain` and `chosen`.
    *[letter + mark for mark in "xy" for letter in string.ascii_lowercase if letter + mark != "ax"],
    *("(['a'], 1)", "{'a': ['b']}", "1.0", "-0.0", "(1, True)", "(True,)", "[[]]", "0.0"),
    *("\u00e9", "e\u0301", "\u00c9t\u00e9", "\u00df", "\u0130", "\ufb01", "\0", "a\0b"),
    *("\u03a9", "\u65e5\u672c", "\U0001f600", "\ufeffa", "\u200b", "\ud800", "'\\ud800'"),
    *("18446744073709551615", "18446744073709551616", "9223372036854775808"),
    *(" ", "\n", "a\nb", "quit", "'quit'", "halt", "many", "k" * 300),
)

PAYLOADS: tuple[bytes, ...] = (
    *[text.encode("utf-8", "surrogatepass") for text in _TEXTS],
    *(b"\xff\xfe", b"a\xffb", b"\x80"),
)
"""Payloads of random cases, the plainest first; `computing` describes the marks in them."""
