"""Streams that repeat a cycle of messages: which output belongs to which message.

Messages of one size may carry their own number: rows of bytes patched a column at a time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wallaroo.frames import frames
from wallaroo.overriding import override
from wallaroo_loadgen.common.schedule import Int64s
from wallaroo_loadgen.workloads.protocol import UNMATCHED, Block, Matched, Stream, WorkloadError

Rows = NDArray[np.uint8]

_DIGITS = np.frombuffer(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+-", dtype=np.uint8
)
_VALUES = np.full(256, -1, dtype=np.int64)
_VALUES[_DIGITS] = np.arange(64)


class CycleStream(Stream):
    """A stream that sends the same list of payloads again and again.

    Args:
        payloads: one cycle, at least one, unframed.
        outputs: how many outputs each of them causes.
        source: which of the workload's sources it sends to.
        share: its part of the rate.

    Attributes:
        outputs: likewise, as an array.
    """

    def __init__(
        self, payloads: Sequence[bytes], outputs: Sequence[int], source: int, share: float
    ) -> None:
        if not payloads:
            raise WorkloadError("a stream needs at least one message to send")
        self.source = source
        self.share = share
        self.outputs: Int64s = np.array(outputs, dtype=np.int64)
        self._expected = np.concatenate([[0], np.cumsum(self.outputs)])
        self._cause = np.repeat(np.arange(len(payloads)), self.outputs)
        self._data = frames(payloads)
        self._ends = np.cumsum([len(payload) + 4 for payload in payloads], dtype=np.int64)

    @override
    def block(self, first: int, count: int) -> Block:  # up to the cycle's end: one slice is copied
        start = first % len(self.outputs)
        stop = min(start + count, len(self.outputs))
        origin = int(self._ends[start - 1]) if start else 0
        data = self._data[origin : int(self._ends[stop - 1])]
        return Block(data, self._ends[start:stop] - origin)

    @override
    def expected(self, messages: int) -> int:
        return int(self.first_output(np.array([messages]))[0])

    @override
    def cause(self, outputs: Int64s) -> Int64s:
        rounds, rest = np.divmod(outputs, len(self._cause))
        messages: Int64s = rounds * len(self.outputs) + self._cause[rest]
        return messages

    def first_output(self, messages: Int64s) -> Int64s:
        """Return the numbers of the first outputs that these messages cause."""
        rounds, rest = np.divmod(messages, len(self.outputs))
        outputs: Int64s = rounds * len(self._cause) + self._expected[rest]
        return outputs


class NumberedStream(CycleStream):
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
        payloads: Sequence[bytes],
        outputs: Sequence[int],
        *,
        at: int,
        width: int,
        source: int,
        share: float,
    ) -> None:
        super().__init__(payloads, outputs, source, share)
        self._rows: Rows = np.frombuffer(self._data, dtype=np.uint8).reshape(len(payloads), -1)
        self.payloads: Rows = self._rows[:, 4:]
        self._columns = slice(at + 4, at + 4 + width)
        self._width = width

    @override
    def block(self, first: int, count: int) -> Block:
        start = first % len(self.outputs)
        rows = self._rows[start : start + count].copy()
        rows[:, self._columns] = to_digits(np.arange(first, first + len(rows)), self._width)
        return Block(rows.tobytes(), np.arange(1, len(rows) + 1) * rows.shape[1])


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
    fitting = np.flatnonzero(fits)
    if len(fitting) < len(outputs):
        data = b"".join([outputs[index] for index in fitting])
    return np.frombuffer(data, dtype=np.uint8).reshape(-1, size), fitting


def matched(count: int) -> Matched:
    """Return a `Matched` for `count` outputs in which nothing matches yet."""
    return Matched(np.full(count, UNMATCHED, dtype=np.int64), np.zeros(count, dtype=np.int64))
