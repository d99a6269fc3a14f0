"""The end of a check's time, which everything that runs cases looks at."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Deadline:
    """The end of a check's time, which begins now.

    Args:
        seconds: how long it is; `None`: without an end.
        clock: gives seconds, and never goes back.
    """

    def __init__(
        self, seconds: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._begun = clock()
        self._seconds = math.inf if seconds is None else seconds
        self._kept_back = 0.0

    @property
    def spent(self) -> float:
        """Seconds since the time began."""
        return self._clock() - self._begun

    @property
    def left(self) -> float:
        """Seconds until the end: 0 if it has come, infinite if there is none."""
        return max(self._seconds - self._kept_back - self.spent, 0.0)

    @property
    def over(self) -> bool:
        """Whether the end has come."""
        return self.left <= 0

    @contextmanager
    def keeping_back(self, share: float) -> Iterator[None]:
        """Let the end come earlier inside, by a share of the time, for what is done afterwards."""
        self._kept_back = 0.0 if math.isinf(self._seconds) else share * self._seconds
        try:
            yield
        finally:
            self._kept_back = 0.0
