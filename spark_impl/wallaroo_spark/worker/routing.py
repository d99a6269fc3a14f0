"""A state partition's keys: checked, encoded, numbered, and remembered, since most come again."""

from __future__ import annotations

from typing import Any

from wallaroo.judging import judged_key, unknown_key
from wallaroo.keys import encode_key, encoded_partition_number
from wallaroo.topology import StatePartition

_REMEMBERED = 1 << 16  # keys remembered for each type and partition
_LONGEST = 256  # bytes of an encoded key that is remembered


class Keys:
    """The keys of a state partition, of a window step, or of a step that finds keys.

    Args:
        partition: the state partition; `None`: any key is allowed.
        partitions: number of partitions the keys are divided into.

    Attributes:
        known: results of `judge`, by exact type and then by key, since a dict takes 1 and True for
            the same key. It holds no tuples: a tuple's type does not say the types of its items.
    """

    def __init__(self, partition: StatePartition | None, partitions: int) -> None:
        self.known: dict[type, dict[Any, tuple[bytes, int]]] = {str: {}, bytes: {}, int: {}}
        self._partition = partition
        self._partitions = partitions
        self._numbers: dict[bytes, int] = {}
        self._listed: set[bytes] | None = None
        if partition is not None and partition.keys is not None:
            self._listed = {encode_key(key) for key in partition.keys}

    def judge(self, key: Any) -> tuple[bytes, int]:
        """Return a key's encoding and its partition number (route-2, -3, -4, -5).

        Raises:
            DeadLetterError: it is not a valid key, or not a listed one.
        """
        return self.numbered(key, self.encoded(key))

    def encoded(self, key: Any) -> bytes:
        """Return a key's encoding.

        Raises:
            DeadLetterError: `bad-key`: it is not a valid key.
        """
        identity = judged_key(key, u64=self._partition is not None and self._partition.u64)
        return (
            identity[0] if isinstance(identity, tuple) else encode_key(key)
        )  # it has its encoding

    def numbered(self, key: Any, encoded: bytes) -> tuple[bytes, int]:
        """Return a valid key's encoding, which is given, and its partition number.

        Raises:
            DeadLetterError: `unknown-key`: it is not a listed one.
        """
        if self._partition is not None and not self._lists(encoded):
            raise unknown_key(key, self._partition, lambda key: self._lists(encode_key(key)))
        memory = self.known.get(type(key))
        if memory is None:
            return encoded, self.number(encoded)
        judged = encoded, self._number(encoded)
        _remember(memory, key, judged, encoded)
        return judged

    def number(self, encoded: bytes) -> int:
        """Return the partition number of a valid key by its encoding, and remember it."""
        if self._partitions == 1:
            return 0
        number = self._numbers.get(encoded)
        if number is None:
            number = self._number(encoded)
            _remember(self._numbers, encoded, number, encoded)
        return number

    def _number(self, encoded: bytes) -> int:
        return 0 if self._partitions == 1 else encoded_partition_number(encoded, self._partitions)

    def _lists(self, encoded: bytes) -> bool:
        return self._listed is None or encoded in self._listed


def _remember(memory: dict[Any, Any], key: Any, result: Any, encoded: bytes) -> None:
    """Keep what was found out about a key, unless that would take much memory."""
    if len(encoded) <= _LONGEST:
        if len(memory) >= _REMEMBERED:
            memory.clear()
        memory[key] = result
