"""Logging that stays readable when the same error happens a million times."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable


class RateLimited:
    """Logs each kind of event a few times, then one per interval, with how many it left out.

    Args:
        logger: the logger to write to.
        burst: number of events of a kind that are all logged at first.
        interval: seconds between two log lines of a kind after that.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        logger: logging.Logger,
        *,
        burst: int = 5,
        interval: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logger = logger
        self._burst = burst
        self._interval = interval
        self._clock = clock
        self._kinds: dict[Hashable, _Kind] = {}

    def log(self, level: int, kind: Hashable, message: str, *args: object) -> bool:
        """Log `message % args`, or count it as left out; return whether it was logged.

        Args:
            level: a level of `logging`.
            kind: events of one kind share a limit; there should be few kinds.
            message: a ``%`` format.
            *args: its arguments.
        """
        state = self._kinds.setdefault(kind, _Kind())
        now = self._clock()
        if state.logged >= self._burst and now - state.last < self._interval:
            state.left_out += 1
            state.example = (level, message, args)
            return False
        state.last = now
        state.logged += 1
        self._emit(state, level, message, args)
        return True

    def forget(self, kind: Hashable) -> None:
        """Start again with a kind of event, because its cause is over."""
        self._kinds.pop(kind, None)

    def flush(self) -> None:
        """For each kind with events left out, log the last one."""
        for state in self._kinds.values():
            if state.example is not None:
                state.left_out -= 1
                self._emit(state, *state.example)

    def _emit(self, state: _Kind, level: int, message: str, args: tuple[object, ...]) -> None:
        if state.left_out:
            message += " (and %d more like it)"
            args = (*args, state.left_out)
        state.left_out = 0
        state.example = None
        self._logger.log(level, message, *args)


class _Kind:
    __slots__ = ("example", "last", "left_out", "logged")

    def __init__(self) -> None:
        self.logged = 0
        self.left_out = 0
        self.last = 0.0
        self.example: tuple[int, str, tuple[object, ...]] | None = None
