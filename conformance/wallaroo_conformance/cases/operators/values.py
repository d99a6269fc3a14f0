"""Values that are valid messages, flags or items, although they look like nothing.

An engine gets them wrong if it compares or tests a value where it should look at its type or
identity.
"""

from __future__ import annotations

from typing import Any

from wallaroo_conformance.cases.operators.common import chosen


class Agreeable:
    """Is equal to everything, `None` among it, and false."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "agreeable"


class Undecided:
    """Can be neither compared nor tested for truth, as an array of several numbers."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        raise ValueError("equal to what?")

    def __bool__(self) -> bool:
        raise ValueError("true of what?")

    def __len__(self) -> int:
        raise TypeError("how long?")

    def __repr__(self) -> str:
        return "undecided"


class Disguised:
    """Says that it is of the class of `None`, and is false."""

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(None)

    def __reduce__(self) -> Any:
        return (Disguised, ())

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "disguised"


class Regret(Exception):  # noqa: N818 - it is no error but a message
    """An exception that nobody raises, and that is false."""

    def __bool__(self) -> bool:
        return False


def uncommon(message: Any) -> Any:
    """Return one of the values that are easily taken for less than a message."""
    values = (
        *(Agreeable(), Undecided(), Disguised(), Regret("never raised"), StopIteration()),
        *(..., float("nan"), Exception, NotImplemented, ("pair", True), (None, False), 1 << 70),
    )
    return chosen(message, values)
