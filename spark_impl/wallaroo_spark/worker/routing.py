"""A state partition's keys: checked, encoded, numbered, and remembered, since most come again."""

from __future__ import annotations

from typing import Any

from wallaroo.keys import (
    BadKeyError,
    Key,
    encode_key,
    encoded_partition_number,
    is_u64,
    respelling_hint,
    show_key,
)
from wallaroo.topology import StatePartition
from wallaroo.trace import Reason
from wallaroo_spark.worker.results import DeadLetterError

_REMEMBERED = 1 << 16  # keys remembered for each type and partition
_LONGEST = 256  # bytes of an encoded key that is remembered


class RefusedKeyError(DeadLetterError):
    """A key is invalid (`bad-key`) or not listed (`unknown-key`; `key` is its encoding)."""

    def __init__(self, reason: Reason, error: str, key: bytes | None = None) -> None:
        super().__init__(error)
        self.reason = reason
        self.key = key


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
        self._name = None if partition is None else partition.name
        self._u64 = partition is not None and partition.u64
        self._partitions = partitions
        self._numbers: dict[bytes, int] = {}
        self._listed: set[bytes] | None = None
        if partition is not None and partition.keys is not None:
            self._listed = {encode_key(key) for key in partition.keys}

    def judge(self, key: Any) -> tuple[bytes, int]:
        """Return a key's encoding and its partition number (route-2, -3, -4, -5).

        Raises:
            RefusedKeyError: it is not a valid key, or not a listed one.
        """
        try:
            encoded = encode_key(key)
        except BadKeyError as error:
            raise RefusedKeyError(Reason.BAD_KEY, str(error)) from None
        if self._u64 and not is_u64(key):
            raise RefusedKeyError(Reason.BAD_KEY, f"expected 0 <= key < 2**64, not {show_key(key)}")
        if self._listed is not None and encoded not in self._listed:
            raise RefusedKeyError(
                Reason.UNKNOWN_KEY,
                f"{show_key(key)} is not one of the keys listed for state partition {self._name!r}"
                f"{respelling_hint(key, self._lists)}",
                encoded,
            )
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
        found = self._numbers.get(encoded)
        if found is None:
            found = self._number(encoded)
            _remember(self._numbers, encoded, found, encoded)
        return found

    def _number(self, encoded: bytes) -> int:
        return 0 if self._partitions == 1 else encoded_partition_number(encoded, self._partitions)

    def _lists(self, key: Key) -> bool:
        return self._listed is None or encode_key(key) in self._listed


def _remember(memory: dict[Any, Any], key: Any, found: Any, encoded: bytes) -> None:
    """Keep what was found out about a key, unless that would take much memory."""
    if len(encoded) <= _LONGEST:
        if len(memory) >= _REMEMBERED:
            memory.clear()
        memory[key] = found
