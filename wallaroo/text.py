"""Text from outside, made safe for a terminal, a log or a picture."""

from __future__ import annotations

import os


def escaped(text: str) -> str:
    r"""Return `text` on one line: newlines, control and other unprintable characters escaped.

    >>> print(escaped("a\nb\x1b[31m é"))
    a\nb\x1b[31m é
    """
    if text.isprintable():
        return text
    return "".join(
        [c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text]
    )


def reason(error: OSError) -> str:
    """Return the system's text for an error: Python's own text repeats the operation."""
    if error.errno is not None and error.errno > 0:  # errors of getaddrinfo are negative
        return os.strerror(error.errno)
    return error.strerror or str(error) or "no answer"
