"""Which outputs of a stream have come: exact on loss, repetition and order, in bounded memory."""

from __future__ import annotations

import numpy as np

from wallaroo_loadgen.common.schedule import Int64s

_SMALLEST = 4096


class ReceivedNumbers:
    """A window of flags that follows the outputs; all before its start have come.

    Args:
        limit: the most outputs between the earliest missing and the latest that came; when there
            are more, the earliest count as lost for good (and as repeated, should they come).
    """

    def __init__(self, limit: int = 1 << 22) -> None:
        self.distinct = 0
        self.repeated = 0
        self.reordered = 0
        self._limit = limit
        self._base = 0
        self._highest = -1
        self._flags = np.zeros(min(_SMALLEST, limit), dtype=np.bool_)

    def add(self, numbers: Int64s) -> Int64s:
        """Take the next outputs' numbers; return the places in `numbers` of those new."""
        if not len(numbers):
            return numbers
        before = np.maximum.accumulate(np.concatenate([[self._highest], numbers]))
        self.reordered += int(np.count_nonzero(numbers < before[:-1]))
        self._highest = int(before[-1])
        self._reach(self._highest)
        _, places = np.unique(numbers, return_index=True)
        places = np.sort(places)
        places = places[numbers[places] >= self._base]
        fresh: Int64s = places[~self._flags[numbers[places] - self._base]]
        self._flags[numbers[fresh] - self._base] = True
        self.distinct += len(fresh)
        self.repeated += len(numbers) - len(fresh)
        return fresh

    def _reach(self, number: int) -> None:
        """Make the window hold `number`."""
        if number - self._base < len(self._flags):
            return
        full = np.flatnonzero(~self._flags)
        self._move(int(full[0]) if len(full) else len(self._flags))
        needed = number - self._base + 1
        if needed > self._limit:
            self._move(needed - self._limit)
            needed = self._limit
        if needed > len(self._flags):
            size = min(self._limit, 1 << (needed - 1).bit_length())
            flags = np.zeros(size, dtype=np.bool_)
            flags[: len(self._flags)] = self._flags
            self._flags = flags

    def _move(self, by: int) -> None:
        """Let the window start `by` later."""
        kept = self._flags[by:].copy()
        self._flags[:] = False
        self._flags[: len(kept)] = kept
        self._base += by
