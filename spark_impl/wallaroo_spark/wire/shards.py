"""Which shard holds which entities, and shard numbers that Spark spreads evenly."""

from __future__ import annotations

import functools
from typing import NamedTuple

_SEED = 42  # Spark's, for hash partitioning
_WORD = 0xFFFFFFFF


class Address(NamedTuple):
    """A set of entities: those of one case, one component of its plan, and one partition number."""

    case: int
    component: int
    number: int


def shard_of(address: Address, shards: int) -> int:
    """Return the id of the shard that holds an address.

    The partitions of one component go to different shards, as long as there are enough; different
    cases begin at different shards.
    """
    number = address.number + 31 * address.component + 7919 * address.case
    return shard_ids(shards)[number % shards]


@functools.lru_cache(maxsize=64)
def shard_ids(shards: int) -> tuple[int, ...]:
    """Return a number for each shard such that Spark puts each into a task of its own.

    Spark partitions by ``murmur3(number) mod shards``; consecutive numbers would leave tasks empty
    and others with twice the work.
    """
    ids: dict[int, int] = {}
    number = 0
    while len(ids) < shards:
        ids.setdefault(_murmur3(number) % shards, number)
        number += 1
    return tuple([ids[shard] for shard in range(shards)])


def _murmur3(number: int) -> int:
    """Return Spark's signed 32-bit hash of an int column's value."""
    k = number * 0xCC9E2D51 & _WORD
    k = ((k << 15 | k >> 17) & _WORD) * 0x1B873593 & _WORD
    h = _SEED ^ k
    h = ((h << 13 | h >> 19) & _WORD) * 5 + 0xE6546B64 & _WORD
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _WORD
    h = (h ^ h >> 13) * 0xC2B2AE35 & _WORD
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
