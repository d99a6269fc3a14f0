"""The two topics of a run, on brokers: what is sent to one, and what readers see of both."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wallaroo_conformance.live.peers import wait_until

if TYPE_CHECKING:
    from confluent_kafka import Message

READ, WRITTEN = 2, 3
"""Partitions of the two topics."""

_BATCH = 60  # records that are sent at once
_LETTERS, _ADDED = "abcde", "f"
_POLLED = 0.1  # seconds that a consumer waits for more


class Topics:
    """Two topics that nobody else has.

    Args:
        brokers: their addresses.
        patience: seconds that any one thing may take.

    Attributes:
        read: name of the topic that is read.
        written: name of the one that is written.
        gone: records that were read, and are deleted now, by partition.
    """

    def __init__(self, brokers: str, patience: float) -> None:
        from confluent_kafka.admin import AdminClient

        self._patience = patience
        self._client: dict[str, Any] = {"bootstrap.servers": brokers, "log_level": 0}
        self._admin = AdminClient(self._client)
        name = f"wallaroo-conformance-{uuid.uuid4().hex[:12]}"
        self.read, self.written = f"{name}-in", f"{name}-out"
        self._number = 0  # of records sent so far
        self.gone: dict[int, list[Message]] = {}

    def make(self) -> None:
        """Make both, and wait until they are there."""
        self._make(self.read, READ)
        self._make(self.written, WRITTEN)

    def delete(self) -> None:
        """Delete both; nothing waits for it."""
        self._admin.delete_topics([self.read, self.written])

    def send(self, count: int = _BATCH, *, commit: bool | None = None) -> None:
        """Send records, and tombstones; each letter stands in one partition.

        Args:
            count: how many.
            commit: commit them as a transaction, or abort it; `None`: without one.
        """
        from confluent_kafka import Producer

        own = {} if commit is None else {"transactional.id": f"{self.read}-{self._number}"}
        producer = Producer({**self._client, **own})
        letters = _LETTERS + _ADDED * (self.partitions(self.read) > READ)
        if commit is not None:
            producer.init_transactions(self._patience)
            producer.begin_transaction()
        for number in range(self._number, self._number + count):
            letter = letters[number % len(letters)]
            place = _LETTERS.index(letter) % READ if letter in _LETTERS else READ
            value = None if number % 11 == 7 else f"{letter} {number} {number}"
            producer.produce(self.read, value, letter, partition=place, timestamp=1_000 + number)
        self._number += count
        if producer.flush(self._patience):
            raise TimeoutError("the brokers have not taken what was sent")
        if commit is not None:
            finish = producer.commit_transaction if commit else producer.abort_transaction
            finish(self._patience)

    def messages(self, topic: str) -> dict[int, list[Message]]:
        """Return the committed messages of a topic, by partition, up to its end now."""
        from confluent_kafka import Consumer, TopicPartition

        own = {"group.id": topic, "enable.auto.commit": False, "enable.partition.eof": True}
        consumer = Consumer({**self._client, **own, "auto.offset.reset": "earliest"})
        found: dict[int, list[Message]] = {number: [] for number in range(self.partitions(topic))}
        consumer.assign([TopicPartition(topic, number, 0) for number in found])
        reading, end = set(found), time.monotonic() + self._patience
        while reading and time.monotonic() < end:
            for message in consumer.consume(1000, _POLLED):
                if message.error() is None:
                    found[message.partition() or 0].append(message)
                else:
                    reading.discard(message.partition() or 0)
        consumer.close()
        return found

    def make_again(self) -> None:
        """Delete the topic that is read, and make another of its name."""
        self._admin.delete_topics([self.read])[self.read].result(self._patience)
        self.until(lambda: not self.partitions(self.read), "the topic is gone")
        self._make(self.read, READ)

    def add_partition(self) -> None:
        """Let the topic that is read have one partition more."""
        from confluent_kafka.cimpl import NewPartitions

        wanted = self.partitions(self.read) + 1
        changed = self._admin.create_partitions([NewPartitions(self.read, wanted)])
        changed[self.read].result(self._patience)
        self.until(lambda: self.partitions(self.read) == wanted, "the partition is there")

    def delete_records(self, *, were_read: bool) -> None:
        """Remove all records, as retention does.

        Args:
            were_read: their outputs are there, and stay so.
        """
        from confluent_kafka import TopicPartition

        if were_read:
            self.gone = self.messages(self.read)

        numbers = range(self.partitions(self.read))
        ends = [TopicPartition(self.read, number, -1) for number in numbers]  # -1: to the end
        for removed in self._admin.delete_records(ends).values():
            removed.result(self._patience)

    def delete_positions(self) -> None:
        """Have the brokers forget the positions of the topic that is written, as after a week."""
        from confluent_kafka import ConsumerGroupTopicPartitions

        groups = [one.group_id for one in self._admin.list_consumer_groups().result().valid]
        for group in groups:
            asked = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
            places = asked[group].result(self._patience).topic_partitions or []
            if any(place.topic == self.written for place in places):
                self._admin.delete_consumer_groups([group])[group].result(self._patience)

    def partitions(self, topic: str) -> int:
        """Return how many partitions a topic has; 0: it is not there."""
        there = self._admin.list_topics(timeout=self._patience).topics.get(topic)
        return 0 if there is None else len(there.partitions)

    def until(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for something.

        Raises:
            TimeoutError: it has not come.
        """
        if not wait_until(holds, self._patience):
            raise TimeoutError(f"within {self._patience:g} s it did not come that {what}")

    def _make(self, topic: str, partitions: int) -> None:
        from confluent_kafka.cimpl import NewTopic

        # Records are of 1970: by their age brokers would delete them at once.
        new = NewTopic(topic, partitions, 1, config={"retention.ms": "-1"})
        self._admin.create_topics([new])[topic].result(self._patience)
        self.until(lambda: self.partitions(topic) == partitions, f"topic {topic} is there")
