"""For workloads that repeat a cycle of messages: which output belongs to which message."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wallaroo.frames import frames
from wallaroo_loadgen.common.schedule import Int64s
from wallaroo_loadgen.workloads.protocol import UNMATCHED, Block, Matched, WorkloadError


class Cycle:
    """The arithmetic of a stream that repeats: message numbers from output numbers and back.

    Args:
        outputs: how many outputs each message of the cycle causes.
    """

    def __init__(self, outputs: Int64s) -> None:
        self.length = len(outputs)
        self.outputs_of = outputs
        self.outputs = int(outputs.sum())
        self._expected = np.concatenate([[0], np.cumsum(outputs)])
        self._cause = np.repeat(np.arange(self.length), outputs)

    def expected(self, messages: int) -> int:
        """Return how many outputs the first `messages` messages cause."""
        rounds, rest = divmod(messages, self.length)
        return rounds * self.outputs + int(self._expected[rest])

    def cause(self, outputs: Int64s) -> Int64s:
        """Return the messages that cause these outputs."""
        rounds, rest = np.divmod(outputs, self.outputs)
        messages: Int64s = rounds * self.length + self._cause[rest]
        return messages

    def first_output(self, messages: Int64s) -> Int64s:
        """Return the numbers of the first outputs that these messages cause."""
        rounds, rest = np.divmod(messages, self.length)
        outputs: Int64s = rounds * self.outputs + self._expected[rest]
        return outputs


class CycleStream:
    """A stream that sends the same list of payloads again and again.

    Args:
        payloads: one cycle, at least one, unframed.
        outputs: how many outputs each of them causes.
        source: which of the workload's sources it sends to.
        share: its part of the rate.
    """

    def __init__(
        self, payloads: Sequence[bytes], outputs: Sequence[int], source: int, share: float
    ) -> None:
        if not payloads:
            raise WorkloadError("a stream needs at least one message to send")
        self.source = source
        self.share = share
        self.cycle = Cycle(np.array(outputs, dtype=np.int64))
        self._data = frames(payloads)
        sizes = np.array([len(payload) + 4 for payload in payloads], dtype=np.int64)
        self._ends = np.cumsum(sizes)

    def block(self, first: int, count: int) -> Block:
        """Return messages up to the cycle's end at most, so that only one slice is copied."""
        start = first % self.cycle.length
        stop = min(start + count, self.cycle.length)
        origin = int(self._ends[start - 1]) if start else 0
        data = self._data[origin : int(self._ends[stop - 1])]
        return Block(data, self._ends[start:stop] - origin)

    def expected(self, messages: int) -> int:
        """Return how many outputs the first `messages` messages cause."""
        return self.cycle.expected(messages)

    def cause(self, outputs: Int64s) -> Int64s:
        """Return the messages that cause these outputs."""
        return self.cycle.cause(outputs)


def matched(count: int) -> Matched:
    """Return a `Matched` for `count` outputs in which nothing matches yet."""
    return Matched(np.full(count, UNMATCHED, dtype=np.int64), np.zeros(count, dtype=np.int64))
