"""Copies of messages, states and accumulators: pickled, one by one (state-6, key-5).

The pickler is the standard library's `pickle.dumps` at protocol 5. A value of an exact immutable
type (`ATOMS`) is its own copy and travels unchanged. Any other value is *frozen* as a tuple of one
`bytes`; no atom is a tuple. Each value is pickled on its own, so no two values share an object.

If the application has a codec, its functions stand for pickle, and for every value (key-5).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from wallaroo.judging import DeadLetterError
from wallaroo.topology import Codec
from wallaroo.trace import Reason
from wallaroo.user_code.failure import describe_error, failure_of

ATOMS: frozenset[type] = frozenset({str, bytes, int, float, bool, type(None)})
PROTOCOL = 5


@dataclass(frozen=True)
class Copies:
    """How an application's values are copied.

    Args:
        atoms: exact types of values that are their own copies.
        dumps: returns a value as bytes.
        loads: returns the value that bytes hold.
        by: what does it, for people.
    """

    atoms: frozenset[type]
    dumps: Callable[[Any], bytes]
    loads: Callable[[bytes], Any]
    by: str = "pickling"

    def freeze(self, value: Any) -> Any:
        """Return `value` in the form in which it travels.

        Raises:
            DeadLetterError: `unportable`: it cannot be written.
        """
        if type(value) in self.atoms:
            return value
        try:
            return (self.dumps(value),)
        except Exception as error:
            raise self._unportable(value, error) from error

    def thaw(self, frozen: Any) -> Any:
        """Return a copy of a frozen value that nothing else refers to."""
        return self.loads(frozen[0]) if type(frozen) is tuple else frozen

    def freeze_checked(self, value: Any) -> tuple[Any, Any]:
        """Return `value` frozen, and a copy of it, which proves that it can be read back.

        Raises:
            DeadLetterError: `unportable`: it cannot be written, or what was written cannot be read.
        """
        frozen = self.freeze(value)
        try:
            return frozen, self.thaw(frozen)
        except Exception as error:
            raise self._unportable(value, error) from error

    def copied(self, value: Any) -> Any:
        """Return a copy of `value`, itself if it is an atom; raises as `freeze_checked`."""
        return value if type(value) in self.atoms else self.freeze_checked(value)[1]

    def _unportable(self, value: Any, error: Exception) -> DeadLetterError:
        text = why_unportable(value, error, self.by)
        return DeadLetterError(Reason.UNPORTABLE, text, None, failure_of(error, __package__))


def why_unportable(value: Any, error: Exception, by: str = "pickling") -> str:
    """Return what a dead letter says of a value of which there is no copy."""
    kind, cause = type(value), f"{type(error).__name__}: {describe_error(error)}"
    return f"a {kind.__module__}.{kind.__qualname__} does not survive {by}: {cause}"


PICKLED = Copies(ATOMS, partial(pickle.dumps, protocol=PROTOCOL), pickle.loads)
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

    by = "the application's serialize and deserialize"
    return Copies(frozenset(), dumps, codec.deserialize, by)
