"""Messages of one size that carry their own number: rows of bytes patched a column at a time."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from wallaroo_loadgen.common.schedule import Int64s
from wallaroo_loadgen.workloads.cycle import Cycle
from wallaroo_loadgen.workloads.protocol import Block

Rows = NDArray[np.uint8]

_DIGITS = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-", dtype=np.uint8
)
_VALUES = np.full(256, -1, dtype=np.int64)
_VALUES[_DIGITS] = np.arange(64)


def to_digits(numbers: Int64s, width: int) -> Rows:
    """Return each number as `width` printable digits to the base 64."""
    shifts = np.arange(width - 1, -1, -1) * 6
    digits: Rows = _DIGITS[(numbers[:, None] >> shifts) & 63]
    return digits


def from_digits(digits: Rows) -> Int64s:
    """Return the numbers that `to_digits` wrote, or -1 where there is something else."""
    values = _VALUES[digits]
    shifts = np.arange(digits.shape[1] - 1, -1, -1) * 6
    numbers: Int64s = (np.maximum(values, 0) << shifts).sum(axis=1)
    return np.where((values >= 0).all(axis=1), numbers, -1)


def rows_of(outputs: list[bytes], size: int) -> tuple[Rows, Int64s]:
    """Return the outputs of exactly `size` bytes as rows, and which of the list they are."""
    data = b"".join(outputs)
    lengths = np.fromiter(map(len, outputs), dtype=np.int64, count=len(outputs))
    fits = lengths == size
    which = np.flatnonzero(fits)
    if len(which) < len(outputs):
        data = b"".join([outputs[index] for index in which])
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, size), which


class NumberedStream:
    """A stream whose messages repeat a cycle of equally long payloads, each with its own number.

    Args:
        payloads: one cycle, all of one length.
        outputs: how many outputs each causes.
        at: where in the payload the number goes.
        width: of the number, in base-64 digits.
        source: which of the workload's sources it sends to.
        share: its part of the rate.
    """

    def __init__(
        self,
        payloads: list[bytes],
        outputs: Int64s,
        *,
        at: int,
        width: int,
        source: int,
        share: float,
    ) -> None:
        size = len(payloads[0])
        header = struct.pack(">I", size)
        self.source = source
        self.share = share
        self.cycle = Cycle(outputs)
        self.payloads: Rows = np.frombuffer(b"".join(payloads), dtype=np.uint8).reshape(-1, size)
        framed = b"".join([header + payload for payload in payloads])
        self._rows: Rows = np.frombuffer(framed, dtype=np.uint8).reshape(-1, size + 4)
        self._columns = slice(at + 4, at + 4 + width)
        self._width = width

    def block(self, first: int, count: int) -> Block:
        """Return the cycle's next rows with their numbers written into them."""
        start = first % self.cycle.length
        rows = self._rows[start : start + count].copy()
        numbers = np.arange(first, first + len(rows))
        rows[:, self._columns] = to_digits(numbers, self._width)
        return Block(rows.tobytes(), np.arange(1, len(rows) + 1) * rows.shape[1])

    def expected(self, messages: int) -> int:
        """Return how many outputs the first `messages` messages cause."""
        return self.cycle.expected(messages)

    def cause(self, outputs: Int64s) -> Int64s:
        """Return the messages that cause these outputs."""
        return self.cycle.cause(outputs)
