"""The results of user code: their shapes, and the errors for other shapes (`bad-result`)."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from wallaroo.records import End
from wallaroo.trace import Reason
from wallaroo.user_code.failure import Failure, failure_of

_PAIR_LENGTH = 2


class DeadLetterError(Exception):
    """A message becomes a dead letter, although user code did not raise.

    Attributes:
        reason: the dead letter's reason.
        key: the encoded key, if only the code that raises this knows it.
        failure: where user code raised, if it did so while its result was looked at.
        error_type: the class name of what user code raised, if it did so on the driver.
        ends_run: that was `SystemExit` or `KeyboardInterrupt` (dead-3).
    """

    reason: Reason
    key: bytes | None = None
    failure: Failure = Failure()
    error_type: str | None = None
    ends_run: bool = False


class BadResultError(DeadLetterError):
    """A computation's result has a wrong shape."""

    reason = Reason.BAD_RESULT


class BadOutputError(DeadLetterError):
    """An encoder's result is neither bytes nor text, or is text that UTF-8 refuses (sink-1)."""

    reason = Reason.ENCODE


class RefusedTimeError(DeadLetterError):
    """An event time function returned something that is not an event time (time-2)."""

    reason = Reason.BAD_TIME


class GeneratorError(DeadLetterError):
    """A generator has raised (graph-4); the end of its source holds the error."""

    reason = Reason.RAISED

    def __init__(self, end: End) -> None:
        super().__init__(end.error)
        self.error_type = end.error_type
        self.ends_run = end.ends_run


def where_it_failed(error: BaseException) -> Failure:
    """Return where user code raised `error`, and remove its traceback."""
    return failure_of(error, "wallaroo_spark")


def split_pair(result: Any) -> tuple[Any, bool]:
    """Return the output and the flag of a state computation's result (state-2).

    Raises:
        BadResultError: it is not a tuple of two with a `bool` in second place.
    """
    # By tuple's own methods: a subclass may override them.
    if not isinstance(result, tuple) or tuple.__len__(result) != _PAIR_LENGTH:
        slip = ""
        if result is None:
            slip = "; does it return on every path?"
        elif isinstance(result, list):
            slip = "; write (output, changed), with parentheses"
        raise BadResultError(
            f"expected (output, changed) of a state computation, not {_article(result)}{slip}"
        )
    output, changed = tuple.__iter__(result)
    if type(changed) is not bool:
        slip = "; output and changed are in the wrong order" if type(output) is bool else ""
        raise BadResultError(f"expected changed to be a bool, not {_article(changed)}{slip}")
    return output, changed


def iterator_of(result: Any) -> Any:
    """Return an iterator over the items of a multi computation's result (compute-2).

    An exception of the result's own ``__iter__`` is not caught.

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


def encoded(output: Any) -> bytes:
    """Return an encoder's result, which is not `None`, as bytes (sink-1).

    Raises:
        BadOutputError: it is neither bytes nor text, or is text that UTF-8 refuses.
    """
    if isinstance(output, str):
        try:
            return str.encode(output)  # a subclass may override it
        except UnicodeEncodeError as error:
            raise BadOutputError(f"it cannot be written as UTF-8: {error}") from None
    if isinstance(output, bytes):
        return b"".join((output,))  # a subclass may override __bytes__
    raise BadOutputError(
        f"expected bytes, str or None of an encoder, not a {type(output).__name__}"
    )


def _article(value: Any) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
