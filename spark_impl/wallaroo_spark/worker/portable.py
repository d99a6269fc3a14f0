"""Messages and states as they travel: pickled, one by one.

The pickler is the standard library's `pickle.dumps` at protocol 5. A value of an exact immutable
type (`ATOMS`) is its own copy and travels unchanged. Any other value travels as a tuple of one
`bytes`; no atom is a tuple. Each value is pickled on its own, so no two values share an object.

If the application has a codec, its functions stand for pickle, and for every value (key-5).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from wallaroo.topology import Codec
from wallaroo.trace import Reason
from wallaroo.user_code.failure import describe_error
from wallaroo_spark.worker.results import DeadLetterError, where_it_failed

ATOMS: frozenset[type] = frozenset({str, bytes, int, float, bool, type(None)})
PROTOCOL = 5


class UnportableError(DeadLetterError):
    """A value that does not survive a round trip (`unportable`)."""

    reason = Reason.UNPORTABLE


@dataclass(frozen=True)
class Copies:
    """How an application's values are copied.

    Args:
        atoms: exact types of values that are their own copies.
        dumps: returns a value as bytes.
        loads: returns the value that bytes hold.
    """

    atoms: frozenset[type]
    dumps: Callable[[Any], bytes]
    loads: Callable[[bytes], Any]

    def freeze(self, value: Any) -> Any:
        """Return `value` in the form in which it travels.

        Raises:
            UnportableError: it cannot be written.
        """
        if type(value) in self.atoms:
            return value
        try:
            return (self.dumps(value),)
        except Exception as error:
            raise _unportable(value, "pickled", error) from error

    def thaw(self, frozen: Any) -> Any:
        """Return a copy of a frozen value that nothing else refers to."""
        return self.loads(frozen[0]) if type(frozen) is tuple else frozen

    def freeze_checked(self, value: Any) -> tuple[Any, Any]:
        """Return `value` frozen, and a copy of it, which proves that it can be read back.

        Raises:
            UnportableError: it cannot be written, or what was written cannot be read.
        """
        frozen = self.freeze(value)
        try:
            return frozen, self.thaw(frozen)
        except Exception as error:
            raise _unportable(value, "read back from its pickle", error) from error


def _pickled(value: Any) -> bytes:
    return pickle.dumps(value, PROTOCOL)


PICKLED = Copies(ATOMS, _pickled, pickle.loads)
"""Copies by pickle."""


def copies_by(codec: Codec | None) -> Copies:
    """Return how the values of an application with that codec are copied."""
    if codec is None:
        return PICKLED

    def dumps(value: Any) -> bytes:
        blob = codec.serialize(value)
        if type(blob) is not bytes:
            raise TypeError(f"serialize returned a {type(blob).__name__}, not bytes")
        return blob

    return Copies(frozenset(), dumps, codec.deserialize)


def _unportable(value: Any, what: str, error: Exception) -> UnportableError:
    kind = type(value)
    unportable = UnportableError(
        f"a {kind.__module__}.{kind.__qualname__} cannot be {what}: "
        f"{type(error).__name__}: {describe_error(error)}"
    )
    unportable.failure = where_it_failed(error)
    return unportable
