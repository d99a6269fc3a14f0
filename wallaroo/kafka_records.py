"""What is read from a Kafka topic and written to one, and which partition that goes to (kafka-13).

Plain data and arithmetic: nothing here needs a broker or a client.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

Header: TypeAlias = tuple[str, bytes | None]
"""A header of a record: its name and value; names may repeat, and their order counts."""

PARTITION_END = 1 << 31
"""The smallest int too large for the number of a partition."""

_SEED = 0x9747B28C
_M = 0x5BD1E995
_WORD = 0xFFFFFFFF
_POSITIVE = 0x7FFFFFFF
_SHORT = 64  # bytes of a key whose hash is remembered


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    """A record of a Kafka topic, as ``@wallaroo.kafka_decoder`` gets it (kafka-7).

    Args:
        value: its value; `None`: it is a tombstone, which says that its key is gone.
        key: its key; `None`: it has none.
        headers: its headers, in their order.
        timestamp: nanoseconds since 1970; `None`: it has none.
        topic: the topic that it stands in.
        partition: the partition of the topic.
        offset: its position in the partition. In a test it may be left out; then
            `wallaroo.testing` counts from 0 in each partition.
    """

    value: bytes | None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp: int | None = None
    topic: str = ""
    partition: int = 0
    offset: int = -1


@dataclass(frozen=True, slots=True)
class KafkaOutput:
    """What an encoder returns for a Kafka sink, if it says more than a value and a key (kafka-13).

    Args:
        value: bytes, text (UTF-8) or `None`, which makes a tombstone.
        key: bytes, text or `None`.
        partition: the number of a partition; `None`: the key decides, without a key the number of
            the record that caused the output.
        headers: pairs of a name and a value, or a mapping; values are bytes, text or `None`.
    """

    value: bytes | str | None
    key: bytes | str | None = None
    partition: int | None = None
    headers: Any = ()


class Produced(NamedTuple):
    """An output of a Kafka sink, judged (kafka-13): what is sent.

    Args:
        value: its value; `None`: a tombstone.
        key: its key.
        partition: where it goes; `None`: that is decided when the topic's number of partitions is
            known (`partition_of`).
        headers: its headers.
        timestamp: the message's event time, in milliseconds since 1970.
        number: the sequence number of the record that caused it.
    """

    value: bytes | None
    key: bytes | None
    partition: int | None
    headers: tuple[Header, ...]
    timestamp: int
    number: int


Output: TypeAlias = bytes | Produced
"""What a sink gets: of a TCP sink bytes, of a Kafka sink what is sent."""


def size_of(outputs: Sequence[Any]) -> int:
    """Return how many bytes outputs of one sink hold; of a Kafka sink values, keys and headers."""
    if not outputs or type(outputs[0]) is not Produced:
        return sum(map(len, outputs))
    # In one loop, which calls no function for each: outputs are measured more than once.
    size = sum([len(value or b"") + len(key or b"") for value, key, _, _, _, _ in outputs])
    headers = [header for output in outputs for header in output[3]]
    return size + sum([len(name.encode()) + len(value or b"") for name, value in headers])


class KafkaRun(NamedTuple):
    """What stands between two offsets of a partition, as a client has read it (kafka-1).

    Args:
        partition: its number.
        first: the first offset.
        last: the last offset.
        messages: what is there, in order, as `confluent_kafka.Message`s; offsets that hold nothing
            have none.
    """

    partition: int
    first: int
    last: int
    messages: list[Any]

    def pieces(self, topic: str, whole: bool) -> list[list[Any] | int]:
        """Return what the run holds, and the counts of numbers between that are not used.

        Args:
            topic: the topic's name.
            whole: as `KafkaRecord`s; else the values alone.
        """
        messages, first = self.messages, self.first
        if len(messages) == self.last - first + 1:
            return [_contents(messages, topic, whole)]
        pieces: list[list[Any] | int] = []
        begin, position = 0, first
        for index, message in enumerate(messages):
            offset = message.offset()
            if offset != position:
                if index > begin:
                    pieces.append(_contents(messages[begin:index], topic, whole))
                pieces.append(offset - position)
                begin = index
            position = offset + 1
        if len(messages) > begin:
            pieces.append(_contents(messages[begin:], topic, whole))
        if position <= self.last:
            pieces.append(self.last + 1 - position)
        return pieces


def _contents(messages: Sequence[Any], topic: str, whole: bool) -> list[Any]:
    if not whole:
        return [message.value() for message in messages]
    return [
        KafkaRecord(
            message.value(),
            message.key(),
            tuple(message.headers() or ()),
            _nanoseconds(*message.timestamp()),
            topic,
            message.partition(),
            message.offset(),
        )
        for message in messages
    ]


def _nanoseconds(kind: int, milliseconds: int) -> int | None:
    return milliseconds * 1_000_000 if kind else None  # kind 0: it has none


def kafka_timestamp(record: Any) -> Any:
    """Return a record's own timestamp: ``KafkaSourceConfig(…, event_time=kafka_timestamp)``.

    Engines call it with the record, other functions of event times with the message (kafka-8).
    """
    return record.timestamp


def partition_of(key: bytes | None, number: int, partitions: int) -> int:
    """Return the partition of an output that names none, as Java's producer has it (kafka-13).

    Args:
        key: the output's key.
        number: the sequence number of the record that caused the output, for one without a key.
        partitions: how many partitions the topic has.
    """
    if key is None:
        return number % partitions
    hashed = _remembered(key) if len(key) <= _SHORT else murmur2(key)
    return (hashed & _POSITIVE) % partitions


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash of a key that Kafka's partitioner for Java uses, 0 or more."""
    length = len(data)
    words = length // 4 * 4
    result = _SEED ^ length
    for at in range(0, words, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _M & _WORD
        word = (word ^ word >> 24) * _M & _WORD
        result = result * _M & _WORD ^ word
    if length > words:
        result = (result ^ int.from_bytes(data[words:], "little")) * _M & _WORD
    result = (result ^ result >> 13) * _M & _WORD
    return result ^ result >> 15


_remembered = lru_cache(maxsize=1 << 14)(murmur2)
