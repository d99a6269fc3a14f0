"""Reads fields of JSON that somebody else wrote, and checks each of them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, TypeVar

Value = TypeVar("Value")


def a_text(value: Any) -> str:
    """Return a text.

    Raises:
        TypeError: it is something else.
    """
    if type(value) is not str:
        raise TypeError(f"a text is expected, not {value!r:.80}")
    return value


def a_number(value: Any) -> int:
    """Return a whole number.

    Raises:
        TypeError: it is something else.
    """
    if type(value) is not int:
        raise TypeError(f"a whole number is expected, not {value!r:.80}")
    return value


def some_bytes(value: Any) -> bytes:
    """Return the bytes that a text has in base64.

    Raises:
        TypeError: it is not a text.
        ValueError: it is not base64.
    """
    return base64.b64decode(a_text(value), validate=True)


def by_sink(read: Callable[..., Value], form: Any) -> dict[tuple[str, int], Value]:
    """Return what `read` makes of the rest of each list, by the sink that begins it.

    Raises:
        TypeError, ValueError: it is no list of such lists; and as `read`.
    """
    return {(a_text(name), a_number(index)): read(*rest) for name, index, *rest in form}


def or_none(read: Callable[[Any], Value], value: Any) -> Value | None:
    """Return what `read` makes of a value that is not `None`; raises as that."""
    return None if value is None else read(value)
