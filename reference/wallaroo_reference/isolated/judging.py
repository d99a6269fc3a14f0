"""What a result may be, as the interpreter decides it by itself (state-2, compute-2, sink-1).

The judged engines decide by `wallaroo.judging`. Only the words that say what is wrong with a result
come from there: a slip reads the same on every engine, and a wrong decision shows as a difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from wallaroo.judging import TooManyItemsError, bad_items, bad_output, bad_pair, held_by, not_utf8


def pair_of(result: Any) -> tuple[Any, bool]:
    """Return a state computation's ``(output, changed)``.

    Raises:
        BadResultError: it is no tuple of two, or `changed` is neither `True` nor `False` (state-2).
    """
    if isinstance(result, tuple) and tuple.__len__(result) == 2:
        output, changed = tuple.__iter__(result)  # a subclass may override __iter__
        if changed is True or changed is False:
            return output, changed
    raise bad_pair(result)


def items_of(result: Any, most: float) -> list[Any]:
    """Return the items of a multi computation's result, consumed completely (compute-2).

    Args:
        result: what the computation returned; `None` gives no items.
        most: bytes of items that an iterator may give; it need not have an end.

    Raises:
        BadResultError: it has no items, or they have no order.
        TooManyItemsError: its items take more than `most` bytes.
    """
    if result is None:
        return []
    if type(result) is list:  # it is in memory already, however long
        return result[:]
    if isinstance(result, (str, bytes, bytearray, Mapping, Set)):
        raise bad_items(result)
    try:
        iterator = iter(result)
    except TypeError:
        if isinstance(result, Iterable):
            raise  # it is iterable, and its __iter__ failed
        raise bad_items(result) from None
    items: list[Any] = []
    size = 0
    for item in iterator:
        items.append(item)
        size += held_by(item)
        if size > most:
            raise TooManyItemsError
    return items


def written_of(output: Any) -> bytes:
    """Return an encoder's result, which is not `None`, as bytes (sink-1).

    Raises:
        BadOutputError: it is neither bytes nor text, or text that UTF-8 refuses.
    """
    if isinstance(output, bytes):
        return b"".join((output,))  # the bytes it holds: a subclass may override __bytes__
    if not isinstance(output, str):
        raise bad_output(output)
    try:
        return str.encode(output)
    except UnicodeEncodeError as error:
        raise not_utf8(error) from None
