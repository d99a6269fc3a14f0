"""Text from outside, made fit for a terminal, a log or a picture."""

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
    """Return why, in the system's words: Python's own texts repeat what was attempted."""
    if error.errno is not None and error.errno > 0:  # getaddrinfo's are below 0
        return os.strerror(error.errno)
    return error.strerror or str(error) or "no answer"
