"""Where entities live between batches: write-through segments in a map of bytes to bytes.

The entities of one *address* (case, group, partition number) are spread by hash over segments,
each one value of the map: a pickled dict of entity id to pickled state, compressed. A segment is
read when one of its entities is first asked for in a batch, and written back at the batch's end if
one changed.
Nothing is kept from batch to batch, so nothing can be out of date after a task is repeated.

Segments are added one at a time as the entities grow, as in linear hashing. With ``n`` segments and
``2**k <= n``, an id belongs to segment ``hash mod 2**(k+1)`` if that exists, else to segment
``hash mod 2**k``; a new segment ``n`` takes entities only from segment ``n - 2**k``. So a batch
that visits few of a million entities reads few segments of a few KB, and an address with ten
entities has one segment. The number of segments is stored in segment 0, before its entities.

When entities are removed, as those of closed windows are, segments are given up in the same way:
the last one gives its entities back. So the stored bytes shrink with the entities, and an address
without entities stores nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol
from zlib import crc32

from wallaroo_spark.wire.job import SEGMENT_BYTES, Address, pack, unpack

_ENTRY_BYTES = 16  # what a dict entry costs beside id and state
_KEY = struct.Struct(">IHII")
_COUNTS = struct.Struct(">IQQ")  # segments, weight, entities
_NOTHING = _COUNTS.pack(1, 0, 0)
_SPARSE = 4  # a segment is given up when on average no more than 1/4 of each is used

Segment = dict[bytes, bytes]


class Map(Protocol):
    """Where entities are stored: a state store's map, or a dict."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of `key`, or `None`."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of `key`."""

    def remove(self, key: bytes) -> None:
        """Remove `key`, if it is there."""

    def items(self) -> Iterable[tuple[bytes, bytes]]:
        """Return all keys and values."""


class MemoryMap(dict[bytes, bytes]):
    """A map for a run without a state store: a batch job, where state ends with the job."""

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of `key`."""
        self[key] = value

    def remove(self, key: bytes) -> None:
        """Remove `key`, if it is there."""
        self.pop(key, None)


class Entities:
    """The entities of one address during one batch.

    Args:
        store: the map that holds the segments.
        address: which entities.
        segment_bytes: see `SEGMENT_BYTES`; with a small value few entities fill many segments.
    """

    def __init__(self, store: Map, address: Address, segment_bytes: int = SEGMENT_BYTES) -> None:
        self._store = store
        self._address = address
        self._segment_bytes = segment_bytes
        self._segments: dict[int, Segment] = {}
        self._dirty: set[int] = set()
        self._given_up: set[int] = set()
        first = store.get(self._key(0))
        self._counts = first[: _COUNTS.size] if first else b""
        self._number, self._weight, self.count = _COUNTS.unpack(self._counts or _NOTHING)
        self._segments[0] = unpack(first[_COUNTS.size :]) if first else {}

    def get(self, entity: bytes) -> bytes | None:
        """Return the pickled state of the entity with that id, or `None` if there is none."""
        number = self._place(entity)
        return (self._segments.get(number) or self._segment(number)).get(entity)

    def put(self, entity: bytes, state: bytes) -> None:
        """Set an entity's pickled state; `flush` writes it."""
        number = self._place(entity)
        segment = self._segments.get(number) or self._segment(number)
        before = segment.get(entity)
        if before is None:
            self.count += 1
            self._weight += self._weighed(entity, state)
        elif len(before) != len(state):
            self._weight += self._weighed(entity, state) - self._weighed(entity, before)
        segment[entity] = state
        self._dirty.add(number)

    def fill(self, entities: Sequence[tuple[bytes, bytes]]) -> None:
        """Set the states of many different entities where there is none so far.

        No segment is split, and nothing is looked for.
        """
        self._weight = sum([self._weighed(*entity) for entity in entities])
        self._number = max(1, -(-self._weight // self._segment_bytes))
        self._segments = {number: {} for number in range(self._number)}
        self._dirty.update(self._segments)
        self.count = len(entities)
        for entity, state in entities:
            self._segments[self._place(entity)][entity] = state

    def remove(self, entity: bytes) -> None:
        """Remove the entity with that id, if there is one; `flush` writes it."""
        number = self._place(entity)
        state = self._segment(number).pop(entity, None)
        if state is not None:
            self.count -= 1
            self._weight -= self._weighed(entity, state)
            self._dirty.add(number)

    def flush(self) -> None:
        """Make the number of segments fit the entities, and write the changed segments."""
        while self._weight > self._number * self._segment_bytes:
            self._split()
        while self._number > 1 and self._weight * _SPARSE < self._number * self._segment_bytes:
            self._give_up_last()
        counts = _COUNTS.pack(self._number, self._weight, self.count)
        if self._dirty and counts != self._counts:
            self._counts = counts
            self._dirty.add(0)
        if self._dirty and not self.count:
            self._dirty.discard(0)
            self._given_up.add(0)
            self._counts = b""
        for number in sorted(self._dirty):
            blob = pack(self._segments[number])
            self._store.put(self._key(number), blob if number else counts + blob)
        for number in sorted(self._given_up):
            self._store.remove(self._key(number))
        self._dirty.clear()
        self._given_up.clear()

    def _split(self) -> None:
        """Add a segment, and move entities into it from the segment that is split."""
        fresh = self._number
        half = 1 << (fresh.bit_length() - 1)
        self._number += 1
        old = self._segment(fresh - half)
        moved = [entity for entity in old if self._place(entity) == fresh]
        self._segments[fresh] = {entity: old.pop(entity) for entity in moved}
        self._dirty.add(fresh)
        if moved:
            self._dirty.add(fresh - half)

    def _give_up_last(self) -> None:
        """Give the last segment's entities back to the segment that was split for it."""
        last = self._number - 1
        half = 1 << (last.bit_length() - 1)
        entities = self._segment(last)
        if entities:
            self._segment(last - half).update(entities)
            self._dirty.add(last - half)
        del self._segments[last]
        self._number = last
        self._dirty.discard(last)
        self._given_up.add(last)

    def _place(self, entity: bytes) -> int:
        """Return the segment of an entity.

        The hash is the same in every process, and independent of partition numbers.
        """
        hashed = crc32(entity)
        number = self._number
        half = 1 << (number.bit_length() - 1)
        place: int = hashed & (2 * half - 1)
        return place if place < number else place & (half - 1)

    def _segment(self, number: int) -> Segment:
        segment = self._segments.get(number)
        if segment is None:
            blob = self._store.get(self._key(number))
            assert blob is not None
            segment = self._segments[number] = unpack(blob)
        return segment

    def _key(self, segment: int) -> bytes:
        return _KEY.pack(*self._address, segment)

    def _weighed(self, entity: bytes, state: bytes) -> int:
        # One huge entity must not cause many splits: it counts as one full segment at most.
        return min(len(entity) + len(state) + _ENTRY_BYTES, self._segment_bytes)


def all_entities_in(store: Map) -> Iterator[tuple[Address, bytes, bytes]]:
    """Yield (address, entity id, pickled state) of everything in a map."""
    for key, blob in store.items():
        case, group, number, segment = _KEY.unpack(key)
        for entity, state in unpack(blob if segment else blob[_COUNTS.size :]).items():
            yield Address(case, group, number), entity, state
