"""A clock that stands still until the test moves it."""

from __future__ import annotations

SECOND = 10**9
NOON = 1_772_452_800 * SECOND


class Clock:
    """It shows noon, until a test sets `now`, nanoseconds since 1970."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> int:
        return self.now


def time_of(message: str) -> int:
    """The event time of a message such as ``a 5``: so many seconds past noon."""
    return NOON + int(message.split()[1]) * SECOND
