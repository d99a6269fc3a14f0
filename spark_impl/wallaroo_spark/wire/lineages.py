"""Lineages on workers, and the order of calls.

Behind a window, the window stands where its number will be.

What the windows of a step give in a turn is numbered in order of the windows' ends and keys
(time-4). The keys of a step are spread over shards, and no shard knows what the others fire. So on
workers a lineage has the window's end and key in the place of its number, which sorts in the same
order. All windows that fired are reported to the driver, which puts the numbers there.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, overload

import wallaroo.trace
from wallaroo.overriding import override
from wallaroo.trace import lineage_order

Turn: TypeAlias = tuple[int, int]
"""A window step's turn: the record's sequence, and the step's negative number."""

Fired: TypeAlias = tuple[int, bytes]
"""A window that fired in a turn: its end, its encoded key."""

Lineage: TypeAlias = tuple[Any, ...]
"""Numbers; the third may be a `Fired`, then the first two are the turn."""


class Lineages(Sequence[Lineage]):
    """Lineages of equally many numbers, none of which is made before it is asked for.

    Args:
        width: how many numbers each has.
        numbers: one lineage after the other.

    Attributes:
        width: as given.
        numbers: as given.
    """

    __slots__ = ("numbers", "width")

    def __init__(self, width: int, numbers: array[int]) -> None:
        self.width = width
        self.numbers = numbers

    @override
    def __len__(self) -> int:
        return len(self.numbers) // self.width

    @override
    def __iter__(self) -> Iterator[Lineage]:
        return zip(*[iter(self.numbers)] * self.width, strict=True)

    @overload
    def __getitem__(self, at: int) -> Lineage: ...
    @overload
    def __getitem__(self, at: slice) -> Lineages: ...
    @override
    def __getitem__(self, at: int | slice) -> Lineage | Lineages:
        if isinstance(at, slice):
            start, stop, _ = at.indices(len(self))
            return Lineages(self.width, self.numbers[self.width * start : self.width * stop])
        start = self.width * range(len(self))[at]
        return tuple(self.numbers[start : start + self.width])


_IN_TURN = 2  # where a lineage has the window that fired


def numbering(
    fired: Mapping[Turn, Iterable[Fired]],
) -> Callable[[Lineage], wallaroo.trace.Lineage]:
    """Return a function that puts the numbers of windows into lineages.

    The number of a window is how many fired before it in its turn. A window may be missing from
    `fired` and still get its number: the one whose call killed the workers was not reported.

    Args:
        fired: the windows that fired in each turn, in all shards, in any order.
    """
    ordered: dict[Turn, list[Fired]] = {}

    def numbered(lineage: Lineage) -> wallaroo.trace.Lineage:
        if len(lineage) <= _IN_TURN or type(lineage[_IN_TURN]) is int:
            return lineage
        turn = lineage[:_IN_TURN]
        if turn not in ordered:
            ordered[turn] = sorted(fired.get(turn, ()))
        number = bisect_left(ordered[turn], lineage[_IN_TURN])
        return (*turn, number, *lineage[_IN_TURN + 1 :])

    return numbered


Order = tuple[Lineage, int, int]
"""The order of calls: what a lineage is sorted by, the node, the sink's index or -1.

Nodes stand in topological order, so a message of one lineage meets them in order of their indices;
positions in pipelines are not such an order, since a merge leads from one pipeline into another.
"""

NO_SINK = -1


def order_of(lineage: Lineage, node: int, sink: int = NO_SINK) -> Order:
    """Return the place of a call in that order: a message of that lineage at a node."""
    return lineage_order(lineage), node, sink


def just_before(order: Order) -> Order:
    """Return a limit that allows all calls before `order`, but not `order` itself."""
    lineage, node, sink = order
    return lineage, node, sink - 1
