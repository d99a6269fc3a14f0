"""Reads fields of JSON that somebody else wrote, and checks each of them."""

from __future__ import annotations

import base64
from typing import Any


def a_text(value: Any) -> str:
    """Return a text.

    Raises:
        TypeError: it is something else.
    """
    if type(value) is not str:
        raise TypeError(f"a text is expected, not {value!r:.80}")
    return value


def a_text_or_none(value: Any) -> str | None:
    """Return a text or `None`; raises as `a_text`."""
    return None if value is None else a_text(value)


def a_number(value: Any) -> int:
    """Return a whole number.

    Raises:
        TypeError: it is something else.
    """
    if type(value) is not int:
        raise TypeError(f"a whole number is expected, not {value!r:.80}")
    return value


def a_number_or_none(value: Any) -> int | None:
    """Return a whole number or `None`; raises as `a_number`."""
    return None if value is None else a_number(value)


def some_bytes(value: Any) -> bytes:
    """Return the bytes that a text has in base64.

    Raises:
        TypeError: it is not a text.
        ValueError: it is not base64.
    """
    return base64.b64decode(a_text(value), validate=True)


def some_bytes_or_none(value: Any) -> bytes | None:
    """Return bytes or `None`; raises as `some_bytes`."""
    return None if value is None else some_bytes(value)
