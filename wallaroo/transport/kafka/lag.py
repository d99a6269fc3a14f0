"""How far a Kafka source is behind the ends of its partitions, for figures."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any

from wallaroo.metrics.figures import TopicPlace
from wallaroo.transport.kafka.cluster import client

_EVERY = 5.0  # seconds between questions for the ends


class Lag:
    """Asks brokers for the ends of partitions now and then, and waits for no answer.

    Args:
        ask: asks for the ends of these partitions, and returns the answers, which have an `offset`.
        ends: those that are known; nobody is asked then.

    Attributes:
        places: where the source stands in each partition; in any thread.
    """

    def __init__(
        self,
        ask: Callable[[Collection[int]], Mapping[int, Future[Any]]],
        ends: Mapping[int, int] | None = None,
    ) -> None:
        self.places: Mapping[int, TopicPlace] = {}
        self._ask = ask
        self._ends = dict(ends or {})
        self._asked: dict[int, Future[Any]] = {}
        self._due = float("inf") if ends is not None else 0.0

    def look(self, positions: Mapping[int, int]) -> None:
        """Note the next offset of each partition; ask for the ends if it is time."""
        for partition in [one for one, answer in self._asked.items() if answer.done()]:
            with contextlib.suppress(client().KafkaException):  # then the last answer stands
                self._ends[partition] = self._asked[partition].result().offset
            del self._asked[partition]
        now = time.monotonic()
        if now >= self._due and positions and not self._asked:
            self._due = now + _EVERY
            self._asked = dict(self._ask(positions))
        self.places = {
            partition: TopicPlace(position, self._ends.get(partition))
            for partition, position in positions.items()
        }
