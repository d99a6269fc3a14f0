"""The keys that came most often, in memory that does not grow with the number of keys.

Keys are counted until there are too many. Then they are sorted by their counts, the count of the
first key beyond the limit is subtracted from all, and keys with nothing left are forgotten. This is
the mergeable form of the space-saving sketch (Agarwal and others, "Mergeable Summaries", 2012). A
count is too low by at most what was subtracted, which is at most one `places`-th of all visits. So
a key that came more often than that is surely kept.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping

_SPARE = 4  # times as many keys as are kept before any is forgotten: to sort takes time


class Busiest:
    """Counts keys.

    Args:
        places: number of keys that are kept.

    Attributes:
        visits: number of all visits.
        error: the most by which a key's count can be too low.
    """

    def __init__(self, places: int = 256) -> None:
        self.visits: float = 0
        self.error: float = 0
        self._places = places
        self._counts: dict[Hashable, float] = {}

    def add(self, visits: Mapping[Hashable, float], times: float = 1) -> None:
        """Count visits by key; each stands for `times` visits."""
        counts = self._counts
        for key, number in visits.items():
            counts[key] = counts.get(key, 0) + number * times
            self.visits += number * times
        if len(counts) > _SPARE * self._places:
            self._forget()

    def top(self, number: int) -> list[tuple[Hashable, float]]:
        """Return the keys that came most often with their counts, the busiest first."""
        order = sorted(self._counts.items(), key=lambda item: item[1], reverse=True)
        return order[:number]

    def _forget(self) -> None:
        less = sorted(self._counts.values(), reverse=True)[self._places]
        self._counts = {key: count - less for key, count in self._counts.items() if count > less}
        self.error += less
