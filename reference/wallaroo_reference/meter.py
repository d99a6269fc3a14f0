"""How much memory outputs take, measured while a machine makes them.

A multi computation multiplies its input, so one frame can make more outputs than memory holds.
Measuring after each output would slow down every message. So only long results are measured: they
are processed in portions, with a measurement after each. Results of up to `PORTION` items, and
memory that the application itself takes in one call, are not measured. The items that an iterator
gives are measured while it is consumed (`wallaroo.judging.items_of`).
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from wallaroo.kafka import KafkaSinkConfig
from wallaroo.kafka_records import size_of
from wallaroo.topology import Application, SinkId

PORTION = 64  # items of a multi result between two measurements
_OUTPUT_COST = 48  # bytes to keep an output, besides its own


def partitions_said(application: Application) -> dict[SinkId, int]:
    """Return how many partitions the topics of Kafka sinks have, where the sinks say it."""
    configs = {id_: sink.config for id_, sink in application.sinks.items()}
    return {
        id_: config.partitions
        for id_, config in configs.items()
        if isinstance(config, KafkaSinkConfig) and config.partitions is not None
    }


class TooMuchOutputError(Exception):
    """One message has made more outputs than the engine can hold; they are dropped."""


class Meter:
    """Measures the outputs of a machine.

    Args:
        outputs: the machine's list of outputs, for each sink.

    Attributes:
        enough: bytes of outputs after which a feed begins no other message; at first unlimited.
        most: bytes of outputs that one message may make, and of items that an iterator may give;
            at first unlimited.
    """

    def __init__(self, outputs: Iterable[list[Any]]) -> None:
        self.enough = self.most = math.inf
        self._outputs = list(outputs)
        self._payloads: Any = ()
        self._start = 0
        self._message = -1
        self._before = 0.0  # bytes the feed had made when this message was first measured
        self._marks: list[int] = []  # the number of outputs of each sink at that time
        self._seen = [0] * len(self._outputs)
        self._size = 0

    def begin(self, payloads: Any, start: int) -> None:
        """Measure from here on: a feed begins, and `start` is its first sequence number."""
        self._payloads = payloads
        self._start = start
        self._message = -1
        self._size = 0
        self._seen = [len(outputs) for outputs in self._outputs]

    def size(self) -> int:
        """Return how many bytes the outputs of this feed take so far."""
        for index, outputs in enumerate(self._outputs):
            if len(outputs) > (seen := self._seen[index]):
                new = outputs[seen:] if seen else outputs
                self._size += size_of(new) + _OUTPUT_COST * len(new)
                self._seen[index] = len(outputs)
        return self._size

    def portions(self, rest: Iterator[Any], message: int) -> Iterator[Any]:
        """Return an iterator over the rest of a result, which measures the outputs on the way.

        Args:
            rest: the list iterator of the result, at the caller's position.
            message: the sequence number of the message.

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
