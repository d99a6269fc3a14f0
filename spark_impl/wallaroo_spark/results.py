"""What user code hands back: its shape, and what to say when it is another (`bad-result`)."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

_PAIR_LENGTH = 2


class BadResultError(Exception):
    """A result that is none of the shapes a computation may return."""


def split_pair(result: Any) -> tuple[Any, bool]:
    """Return the output and the flag of a state computation's result (state-2).

    Raises:
        BadResultError: it is not a tuple of two with a `bool` in second place.
    """
    if not isinstance(result, tuple) or len(result) != _PAIR_LENGTH:
        slip = ""
        if result is None:
            slip = "; does it return on every path?"
        elif isinstance(result, list):
            slip = "; write (output, changed), with parentheses"
        raise BadResultError(
            f"expected (output, changed) of a state computation, not {_article(result)}{slip}"
        )
    output, changed = result
    if type(changed) is not bool:
        slip = "; output and changed are in each other's place" if type(output) is bool else ""
        raise BadResultError(f"expected changed to be a bool, not {_article(changed)}{slip}")
    return output, changed


def iterator_of(result: Any) -> Any:
    """Return an iterator over the items of a multi computation's result (compute-2).

    What the result's own ``__iter__`` raises passes through.

    Raises:
        BadResultError: it is text, bytes, a mapping or a set, or cannot be iterated at all.
    """
    if result is None:
        return iter(())
    if isinstance(result, (str, bytes, bytearray)):
        raise BadResultError(
            f"expected an iterable of messages, not {_article(result)}; for one message: [message]"
        )
    if isinstance(result, (Mapping, Set)):
        raise BadResultError(
            f"expected messages in an order; {_article(result)} has none. For example: sorted(…)"
        )
    kind = type(result)
    if getattr(kind, "__iter__", None) is None and not hasattr(kind, "__getitem__"):
        raise BadResultError(
            f"expected an iterable of messages, not {_article(result)}; for one message: [message]"
        )
    return iter(result)


def _article(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
