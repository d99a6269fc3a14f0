"""A cluster of brokers as a model: topics, transactions, and the positions that are committed.

It has what exactly once rests on: a transactional id has an epoch, which a new producer raises, and
who has an earlier one is shut out; readers of committed records come as far as the first
transaction that is open; a mark stands behind each transaction, at an offset of its own.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class ShutOut(Exception):
    """A later producer has the transactional id."""


class Position(NamedTuple):
    """What a group has of a partition: an offset, and a text."""

    offset: int
    text: str = ""


@dataclass
class Transaction:
    """A transaction. `committed`: how it has ended; `None`: it is open."""

    committed: bool | None = None
    partitions: set[tuple[str, int]] = field(default_factory=set)
    positions: dict[tuple[str, str, int], Position] = field(default_factory=dict)


@dataclass(frozen=True)
class Stored:
    """What stands at an offset: a record, or the mark of a transaction.

    Args:
        record: value, key, headers and timestamp; `None`: it is a mark.
        transaction: whose; `None`: it is of none, and committed.
    """

    record: tuple[Any, ...] | None
    transaction: Transaction | None


_NO_POSITION = Position(-1001)


class Brokers:
    """The brokers. They live on when the engine's process dies.

    Args:
        topics: how many partitions each has.

    Attributes:
        away: nobody reaches them.
        taken: how far readers have come, in each partition.
    """

    def __init__(self, topics: dict[str, int]) -> None:
        self.away = False
        self.topics = topics
        self.taken: dict[tuple[str, int], int] = {}
        self._logs: defaultdict[tuple[str, int], list[Stored]] = defaultdict(list)
        self._epochs: dict[str, int] = {}
        self._open: dict[str, Transaction] = {}
        self._positions: dict[tuple[str, str, int], Position] = {}

    def grow(self, topic: str) -> None:
        """Add a partition to a topic."""
        self.topics[topic] += 1

    # -- reading -----------------------------------------------------------------------------------

    def end(self, topic: str, partition: int, *, committed_only: bool) -> int:
        """Return the offset behind the last one, or behind the last that is certain."""
        log = self._logs[topic, partition]
        if committed_only:
            for offset, stored in enumerate(log):
                if stored.transaction is not None and stored.transaction.committed is None:
                    return offset
        return len(log)

    def next(self, topic: str, partition: int, offset: int) -> tuple[int, tuple[Any, ...]] | None:
        """Return the first committed record from an offset on, with its own offset."""
        log = self._logs[topic, partition]
        for at in range(offset, self.end(topic, partition, committed_only=True)):
            stored = log[at]
            aborted = stored.transaction is not None and not stored.transaction.committed
            if stored.record is not None and not aborted:
                return at, stored.record
        return None

    def records(self, topic: str, partition: int) -> list[tuple[Any, ...]]:
        """Return all committed records of a partition."""
        found, offset = [], 0
        while (there := self.next(topic, partition, offset)) is not None:
            offset = there[0] + 1
            found.append(there[1])
        return found

    def position(self, group: str, topic: str, partition: int) -> Position | None:
        """Return a position, -1001 without one; `None`: a transaction has it and is open."""
        place = group, topic, partition
        if any(place in one.positions for one in self._open.values()):
            return None
        return self._positions.get(place, _NO_POSITION)

    # -- writing -----------------------------------------------------------------------------------

    def begin(self, id_: str) -> int:
        """Give a transactional id to a new producer, and return its epoch."""
        if id_ in self._open:
            self._finish(id_, committed=False)
        self._epochs[id_] = self._epochs.get(id_, -1) + 1
        return self._epochs[id_]

    def append(self, owner: tuple[str, int], place: tuple[str, int], *record: Any) -> None:
        """Append a record of a transaction, which begins with its first.

        Raises:
            ShutOut: the transactional id has a later epoch.
        """
        transaction = self._transaction(owner)
        transaction.partitions.add(place)
        self._logs[place].append(Stored(record, transaction))

    def append_committed(self, place: tuple[str, int], *record: Any) -> None:
        """Append a record without a transaction."""
        self._logs[place].append(Stored(record, None))

    def add_position(
        self, owner: tuple[str, int], place: tuple[str, str, int], position: Position
    ) -> None:
        """Have a transaction commit a position too.

        Raises:
            ShutOut: the transactional id has a later epoch.
        """
        self._transaction(owner).positions[place] = position

    def finish(self, owner: tuple[str, int], *, committed: bool) -> None:
        """End a transaction; one that has ended stays as it is.

        Raises:
            ShutOut: the transactional id has a later epoch.
        """
        if self._epochs[owner[0]] != owner[1]:
            raise ShutOut
        if owner[0] in self._open:
            self._finish(owner[0], committed=committed)

    def give_up(self, owner: tuple[str, int]) -> None:
        """Abort a transaction that is open for too long, and shut its producer out."""
        if owner[0] in self._open and self._epochs[owner[0]] == owner[1]:
            self.begin(owner[0])

    def _transaction(self, owner: tuple[str, int]) -> Transaction:
        if self._epochs[owner[0]] != owner[1]:
            raise ShutOut
        return self._open.setdefault(owner[0], Transaction())

    def _finish(self, id_: str, *, committed: bool) -> None:
        transaction = self._open.pop(id_)
        transaction.committed = committed
        if committed:
            self._positions |= transaction.positions
        for place in sorted(transaction.partitions):
            self._logs[place].append(Stored(None, transaction))
