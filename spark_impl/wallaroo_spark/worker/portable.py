"""Messages and states as they travel: pickled, one by one.

The pickler is the standard library's `pickle.dumps` at protocol 5. A value of an exact immutable
type (`ATOMS`) is its own copy and travels unchanged. Any other value travels as a tuple of one
`bytes`; no atom is a tuple. Each value is pickled on its own, so no two values share an object.
"""

from __future__ import annotations

import pickle
from typing import Any

from wallaroo.failure import describe_error
from wallaroo.trace import Reason
from wallaroo_spark.worker.results import DeadLetterError, where_it_failed

ATOMS = frozenset({str, bytes, int, float, bool, type(None)})
PROTOCOL = 5


class UnportableError(DeadLetterError):
    """A value that does not survive a pickle round trip (`unportable`)."""

    reason = Reason.UNPORTABLE


def freeze(value: Any) -> Any:
    """Return `value` in the form in which it travels.

    Raises:
        UnportableError: it cannot be pickled.
    """
    if type(value) in ATOMS:
        return value
    try:
        return (pickle.dumps(value, PROTOCOL),)
    except Exception as error:
        raise _unportable(value, "pickled", error) from error


def thaw(frozen: Any) -> Any:
    """Return a copy of a frozen value that nothing else refers to."""
    if type(frozen) is tuple:
        return pickle.loads(frozen[0])  # noqa: S301 - bytes that `freeze` made on our side
    return frozen


def freeze_checked(value: Any) -> tuple[Any, Any]:
    """Return `value` frozen, and a copy of it, which proves that it can be read back.

    Raises:
        UnportableError: it cannot be pickled, or its pickle cannot be read.
    """
    frozen = freeze(value)
    try:
        return frozen, thaw(frozen)
    except Exception as error:
        raise _unportable(value, "read back from its pickle", error) from error


def _unportable(value: Any, what: str, error: Exception) -> UnportableError:
    kind = type(value)
    unportable = UnportableError(
        f"a {kind.__module__}.{kind.__qualname__} cannot be {what}: "
        f"{type(error).__name__}: {describe_error(error)}"
    )
    unportable.failure = where_it_failed(error)
    return unportable
