"""How often each value came, with an error of less than 1 % and bounded memory.

A value's bucket follows from its leading bits: below 128 each value has its own, above that every
power of two is divided into 64 buckets of equal width. So two histograms are added bucket by
bucket, wherever they were made. There are 3,700 buckets at most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

_EXACT = 128  # values below this have a bucket of their own
_BITS = 6  # of a value's bits after the leading one, how many choose the bucket
_LARGEST = (1 << 63) - 1


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
    """Values, for example nanoseconds, and how often each came.

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
