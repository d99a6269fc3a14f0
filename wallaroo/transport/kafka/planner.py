"""Plans the runs of a topic from its end offsets; what is in them is read elsewhere.

For an engine whose workers fetch their input themselves: no payload comes here.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any

from wallaroo.kafka_records import KafkaRun
from wallaroo.text import escaped
from wallaroo.transport.kafka.cluster import BrokersAwayError, Cluster, client
from wallaroo.transport.kafka.reader import in_turn
from wallaroo.transport.rate_limit import RateLimited

if TYPE_CHECKING:
    from confluent_kafka import Consumer, TopicPartition

# Seconds between questions how far the partitions reach; longer ones while nothing comes; while
# there is more to plan than there is room for, nobody waits for what comes now.
_PAUSE, _LONGEST, _BEHIND = 0.05, 0.2, 1.0
# Seconds that all brokers have for an answer, before each partition is asked alone; twice as many
# each time that this did not help, since a new connection may take longer.
_ANSWER, _LONGEST_ANSWER = 1.0, 8.0

_log = logging.getLogger("wallaroo.kafka")


class RunPlanner:
    """Plans runs of a topic's partitions, from given offsets on. It belongs to one thread.

    Args:
        cluster: the brokers.
        topic: the topic's name.
        group: gets the positions when `commit` is called, for tools that show lag.
        committed_only: runs end with what is committed (kafka-11).
        going_on: whether to wait further for room; it is asked often.
        room: waits a moment for room, and returns how many offsets may be planned now.

    Attributes:
        positions: for each partition the offset behind the last one that is planned.
        ends_before: whether a partition ends before that now, as one of a topic made again does.
    """

    def __init__(
        self,
        cluster: Cluster,
        topic: str,
        group: str,
        *,
        committed_only: bool,
        going_on: Callable[[], bool],
        room: Callable[[], int],
    ) -> None:
        self._cluster = cluster
        self._topic = topic
        self._committed_only = committed_only
        self._going_on = going_on
        self._room = room
        self._looked = 0.0  # when the brokers were asked last
        self._apart = False  # ask for each partition alone, since not all of them answered
        self._patience = _ANSWER
        self._asked: dict[int, Future[Any]] = {}  # by partition, and not answered yet
        self._pause = _PAUSE
        self._ends: Mapping[int, int] = {}  # as they were then, of those that answered
        self._troubles = RateLimited(_log, burst=1, interval=30.0)
        self._group = group
        self._consumer = self._made_consumer()
        self._commits: Consumer | None = None  # its own: a close waits for commits
        self.positions: dict[int, int] = {}
        self.ends_before = False

    @property
    def standing(self) -> Mapping[int, int]:
        """For each partition the offset behind the last one that is planned; a copy."""
        return dict(self.positions)

    def add(self, positions: Mapping[int, int]) -> None:
        """Plan these partitions too, each from an offset on."""
        self.positions.update(positions)

    def some(self) -> list[KafkaRun]:
        """Return runs up to the ends that there are now, without their messages.

        None if nothing has come for a moment, if there is no room, or if the brokers are away.

        Raises:
            BrokerError: the topic cannot be read any more.
        """
        room = self._room()
        if room <= 0:
            return []
        behind = self._behind()
        if not behind or time.monotonic() - self._looked > _BEHIND:
            time.sleep(max(0.0, self._looked + self._pause - time.monotonic()))
            self._looked = time.monotonic()
            self._ends = self._asked_ends()
            behind = self._behind()
            self.ends_before = any(end < self.positions[one] for one, end in self._ends.items())
            self._pause = _PAUSE if behind else min(2 * self._pause, _LONGEST)
        most = -(-room // max(1, len(behind)))
        return [
            self._planned(partition, min(self.positions[partition] + most, end) - 1)
            for partition, end in behind
        ]

    def bounded(self, ends: Mapping[int, int], starts: Mapping[int, int]) -> Iterator[KafkaRun]:
        """Yield the runs up to the ends, as `RunReader.bounded`, without their messages."""
        for partition, _, last in in_turn(self.positions, ends, starts):
            while self._room() <= 0:
                if not self._going_on():
                    return
            yield self._planned(partition, last)

    def commit(self) -> None:
        """Commit the positions in the group; nothing waits for it."""
        if self._commits is None:
            self._commits = self._made_consumer()
        places = self._places(self.positions)
        with contextlib.suppress(client().KafkaException):
            self._commits.commit(offsets=places, asynchronous=True)

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()
        if self._commits is not None:
            self._commits.close()

    def _made_consumer(self) -> Consumer:
        return self._cluster.consumer(self._group, committed_only=self._committed_only)

    def _places(self, offsets: Mapping[int, int]) -> list[TopicPartition]:
        return [client().TopicPartition(self._topic, *place) for place in offsets.items()]

    def _behind(self) -> list[tuple[int, int]]:
        """Return the partitions that reach further than what is planned, with their ends."""
        return [one for one in sorted(self._ends.items()) if self.positions[one[0]] < one[1]]

    def _asked_ends(self) -> dict[int, int]:
        """Return how far partitions reach now, as far as their brokers say so soon (kafka-12)."""
        if not self._apart:
            kafka = client()
            # One question for all costs a quarter, and fails as one: without a leader, for example.
            with contextlib.suppress(kafka.KafkaException):
                wanted = self._places(dict.fromkeys(self.positions, kafka.OFFSET_END))
                found = self._consumer.offsets_for_times(wanted, self._patience)
                if all(place.error is None and place.offset >= 0 for place in found):
                    self._patience = _ANSWER
                    return {place.partition: place.offset for place in found}
            self._apart = True
            self._patience = min(2 * self._patience, _LONGEST_ANSWER)
        ends = self._asked_apart()
        if len(ends) == len(self.positions):
            self._apart = False
            with contextlib.closing(self._consumer):  # it may remember earlier leaders
                self._consumer = self._made_consumer()
        return ends

    def _asked_apart(self) -> dict[int, int]:
        """Ask for each partition alone, and return the answers that have come."""
        for partition in self.positions:
            if partition not in self._asked:
                self._asked |= self._cluster.asked_offsets(
                    self._topic, [partition], "latest", committed_only=self._committed_only
                )
        wait(self._asked.values(), _PAUSE)
        ends = {}
        for partition in [one for one, answer in self._asked.items() if answer.done()]:
            try:
                ends[partition] = self._asked.pop(partition).result().offset
            except client().KafkaException as error:
                where = f"topic {escaped(self._topic)}, partition {partition}"
                wrong = self._cluster.error(error.args[0], where)
                if not isinstance(wrong, BrokersAwayError):
                    raise wrong from error
                self._troubles.log(logging.WARNING, None, "%s; trying again", wrong)
        return {partition: end for partition, end in ends.items() if end >= 0}  # else it was away

    def _planned(self, partition: int, last: int) -> KafkaRun:
        first, self.positions[partition] = self.positions[partition], last + 1
        return KafkaRun(partition, first, last, [])
