"""Many values in bounded memory: how they are distributed, the busiest keys, the last minutes."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

_EXACT = 128  # values below this have a bucket of their own
_BITS = 6  # of a value's bits after the leading one, how many choose the bucket
_LARGEST = (1 << 63) - 1
_SPARE = 4  # times as many keys as are kept before any is forgotten: to sort takes time
LENGTH = 900  # values of each line, one a second


def bucket_of(value: int) -> int:
    """Return the bucket of a value; values below 0 count as 0."""
    if value < _EXACT:
        return max(value, 0)
    if value > _LARGEST:
        value = _LARGEST
    shift = value.bit_length() - _BITS - 1
    return (shift << _BITS) + (value >> shift)


def bounds_of(bucket: int) -> tuple[int, int]:
    """Return the least and the greatest value of a bucket."""
    if bucket < _EXACT:
        return bucket, bucket
    shift = (bucket >> _BITS) - 1
    least = (bucket - (shift << _BITS)) << shift
    return least, least + (1 << shift) - 1


class Histogram:
    """Values, for example nanoseconds, and how often each came, with an error of less than 1 %.

    A value's bucket follows from its leading bits: below 128 each value has its own, above that
    every power of two is divided into 64 buckets of equal width. So two histograms are added bucket
    by bucket, wherever they were made. There are 3,700 buckets at most.

    Attributes:
        count: number of values.
        total: their sum, exact.
        greatest: the greatest, exact; 0 before the first.
        buckets: the number of values by bucket.
    """

    __slots__ = ("buckets", "count", "greatest", "total")

    def __init__(self) -> None:
        self.count: float = 0
        self.total: float = 0
        self.greatest = 0
        self.buckets: dict[int, float] = {}

    def add(self, values: Iterable[int], times: float = 1) -> None:
        """Add values, each of which came `times` times: it may stand for others too."""
        added = list(values)
        buckets = self.buckets
        for bucket, number in Counter(map(bucket_of, added)).items():
            buckets[bucket] = buckets.get(bucket, 0) + number * times
        self.greatest = max(self.greatest, max(added, default=0))
        self.count += len(added) * times
        self.total += sum(added) * times

    def merge(self, other: Histogram) -> None:
        """Add another histogram's values."""
        for bucket, count in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + count
        self.count += other.count
        self.total += other.total
        self.greatest = max(self.greatest, other.greatest)

    def subtract(self, other: Histogram) -> None:
        """Take away values that were added before, each a whole number of times.

        `greatest` stays as it is.
        """
        for bucket, count in other.buckets.items():
            left = self.buckets[bucket] - count
            if left:
                self.buckets[bucket] = left
            else:
                del self.buckets[bucket]
        self.count -= other.count
        self.total -= other.total

    def copy(self) -> Histogram:
        """Return a histogram with the same values."""
        made = Histogram()
        made.buckets = self.buckets.copy()
        made.count, made.total, made.greatest = self.count, self.total, self.greatest
        return made

    def quantiles(self, shares: Sequence[float]) -> list[float | None]:
        """Return the values below which these shares of all values are, from 0 to 1, ascending.

        `None` for each if there are no values. The error is below 1 %.
        """
        if not self.count:
            return [None] * len(shares)
        found: list[float | None] = []
        before = 0.0
        rest = iter(sorted(self.buckets.items()))
        bucket = 0
        for share in shares:
            while before < share * self.count and (following := next(rest, None)) is not None:
                bucket = following[0]
                before += following[1]
            found.append(min(sum(bounds_of(bucket)) / 2, self.greatest))
        return found

    def at_most(self, limits: Sequence[int]) -> list[float]:
        """Return for each limit, ascending, how many values are not above it."""
        found: list[float] = []
        before = 0.0
        rest = sorted(self.buckets.items(), reverse=True)
        for limit in limits:
            while rest and sum(bounds_of(rest[-1][0])) <= 2 * limit:
                before += rest.pop()[1]
            found.append(before)
        return found


class Busiest:
    """Counts keys, and keeps those that came most often.

    Keys are counted until there are too many. Then they are sorted by their counts, the count of
    the first key beyond the limit is subtracted from all, and keys with nothing left are forgotten.
    This is the mergeable form of the space-saving sketch (Agarwal and others, "Mergeable
    Summaries", 2012). A count is too low by at most what was subtracted, which is at most one
    `places`-th of all visits. So a key that came more often than that is surely kept.

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

    def merge(self, other: Busiest) -> None:
        """Add another's visits; what it has forgotten counts, and its keys may be too low."""
        before = self.visits
        self.add(other._counts)
        self.visits = before + other.visits
        self.error += other.error

    def top(self, number: int) -> list[tuple[Hashable, float]]:
        """Return the keys that came most often with their counts, the busiest first."""
        order = sorted(self._counts.items(), key=lambda item: item[1], reverse=True)
        return order[:number]

    def _forget(self) -> None:
        less = sorted(self._counts.values(), reverse=True)[self._places]
        self._counts = {key: count - less for key, count in self._counts.items() if count > less}
        self.error += less


class Timelines:
    """Lines of values, all with the same times; the last `LENGTH` values are kept.

    Args:
        most: number of lines; further names are not kept.
    """

    def __init__(self, most: int = 64) -> None:
        self._times: deque[float] = deque(maxlen=LENGTH)
        self._lines: dict[str, deque[float | None]] = {}
        self._most = most

    def add(self, time: float, values: Mapping[str, float | None]) -> None:
        """Add a value to each line; `None`: there is none at this time."""
        for name in values:
            if name not in self._lines and len(self._lines) < self._most:
                none = [None] * len(self._times)
                self._lines[name] = deque(none, maxlen=LENGTH)
        self._times.append(time)
        for name, line in self._lines.items():
            line.append(values.get(name))

    def last(self) -> dict[str, Any]:
        """Return each line's last value: ``{"time": seconds since 1970, "values": {name: value}}``.

        `time` is `None` before the first.
        """
        values = {name: line[-1] for name, line in self._lines.items() if line}
        return {"time": self._times[-1] if self._times else None, "values": values}

    def to_json(self) -> dict[str, Any]:
        """Return the lines: ``{"times": [seconds since 1970], "values": {name: [values]}}``."""
        return {
            "times": list(self._times),
            "values": {name: list(line) for name, line in self._lines.items()},
        }
