"""What operators of several kinds do alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def chosen(message: Any, what: Sequence[Any]) -> Any:
    """Return one of `what`, by the length of the message's text."""
    return what[len(str(message)) % len(what)]


def complain(message: Any) -> None:
    """Raise on a message with an x: one of the exceptions that engines themselves catch."""
    written = str(message)
    if "x" not in written:
        return
    errors: tuple[Exception, ...] = (
        *(ValueError("no"), KeyError("no"), TypeError("no"), StopIteration("no")),
        *(IndexError("no"), AttributeError("no"), UnicodeEncodeError("utf-8", "x", 0, 1, "no")),
        *(OverflowError("no"), RuntimeError("no"), StopAsyncIteration("no"), EOFError("no")),
        NotImplementedError("no"),
    )
    raise errors[ord(written[0]) % len(errors)]


def alter(value: Any, mark: str) -> None:
    """Leave a mark in a value, if it can be altered: in a tuple, in what it holds."""
    if isinstance(value, list):
        value.append(mark)
        del value[:-3]
    elif isinstance(value, dict):
        value["marks"] = [mark]
    elif isinstance(value, bytearray):
        value[:] = mark.encode()
    elif isinstance(value, tuple):
        for item in value:
            alter(item, mark)
