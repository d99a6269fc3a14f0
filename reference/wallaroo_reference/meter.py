"""How much memory outputs take, looked at while a machine makes them.

A computation that gives many messages multiplies its input, so a few frames, or one, can make more
outputs than there is memory. Looking at each output would cost on the path that all messages take.
So only long results are gone through in portions, with a look after each: up to `PORTION` items
pass unseen, and so does what the application itself makes in one call.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

PORTION = 64  # items of a multi result between two looks
_OUTPUT_COST = 48  # bytes to keep an output, besides its own


class TooMuchOutputError(Exception):
    """One message has made more outputs than the engine holds; they are dropped."""


class Meter:
    """Weighs the outputs of a machine.

    Args:
        outputs: the machine's, of each sink.

    Attributes:
        enough: bytes of outputs after which no other message of a feed is begun; unlimited at
            first, and `most` too.
        most: bytes of outputs that one message may make.
    """

    def __init__(self, outputs: Iterable[list[bytes]]) -> None:
        self.enough = self.most = math.inf
        self._outputs = list(outputs)
        self._payloads: Any = ()
        self._start = 0
        self._message = -1
        self._before = 0.0  # bytes that the feed had made when this message was first looked at
        self._marks: list[int] = []  # and numbers of outputs
        self._seen = [0] * len(self._outputs)
        self._size = 0

    def begin(self, payloads: Any, start: int) -> None:
        """Weigh from here on: a feed begins, with that sequence number."""
        self._payloads = payloads
        self._start = start
        self._message = -1
        self._size = 0
        self._seen = [len(outputs) for outputs in self._outputs]

    def size(self) -> int:
        """Return how many bytes the outputs of this feed take by now."""
        for index, outputs in enumerate(self._outputs):
            if len(outputs) > (seen := self._seen[index]):
                new = outputs[seen:] if seen else outputs
                self._size += sum(map(len, new)) + _OUTPUT_COST * len(new)
                self._seen[index] = len(outputs)
        return self._size

    def portions(self, rest: Iterator[Any], message: int) -> Iterator[Any]:
        """Return what a list's iterator has left, to be gone through with looks at the outputs.

        Args:
            rest: the iterator; it stands where whoever goes through the result stands.
            message: the sequence number.

        Raises:
            TooMuchOutputError: the message has made more than `most` bytes of outputs.
        """
        if self.most == math.inf or operator.length_hint(rest) <= PORTION:
            return rest
        return chain.from_iterable(self._portions(rest, message))

    def _portions(self, rest: Any, message: int) -> Iterator[Iterator[Any]]:
        if message != self._message:
            self._message, self._before = message, self.size()
            self._marks = [len(outputs) for outputs in self._outputs]
        while operator.length_hint(rest):
            yield islice(rest, PORTION)
            self._look()

    def _look(self) -> None:
        size = self.size()
        if size - self._before > self.most:
            for outputs, mark in zip(self._outputs, self._marks, strict=True):
                del outputs[mark:]
            self._seen = self._marks[:]
            raise TooMuchOutputError
        if size > self.enough:
            del self._payloads[self._message - self._start + 1 :]
