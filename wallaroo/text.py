"""Text from outside, made safe for a terminal, a log or a picture."""

from __future__ import annotations

import os
import re
import signal

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


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


def counted(number: int, what: str) -> str:
    """Return a number of things as people write it.

    >>> counted(1, "message"), counted(2000, "message")
    ('1 message', '2,000 messages')
    """
    return f"{number:,} {what}{'s' * (number != 1)}"


def survives_json(text: str) -> bool:
    """Whether a text is the same after it was written as JSON and read back.

    In JSON, two lone surrogates that could be a pair become the one character that the pair stands
    for.
    """
    return text.isascii() or _PAIR.search(text) is None


def reason(error: OSError) -> str:
    """Return the system's text for an error: Python's own text repeats the operation."""
    if error.errno is not None and error.errno > 0:  # errors of getaddrinfo are negative
        return os.strerror(error.errno)
    return error.strerror or str(error) or "no answer"


def encodable(text: str) -> str:
    r"""Return text that UTF-8 takes: lone surrogates are escaped.

    >>> encodable("a\ud800")
    'a\\ud800'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def process_end(code: int) -> str:
    """Return how a process ended, as text to follow the word "ended".

    Args:
        code: `subprocess.Popen.returncode`; a negative one is the number of a signal.

    >>> process_end(7), process_end(-9), process_end(-35)
    ('with exit 7', 'by SIGKILL', 'by signal 35')
    """
    if code >= 0:
        return f"with exit {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:  # the real-time signals between the first and the last have no name
        return f"by signal {-code}"
