"""The records of an input log: frames, values, Kafka's records, ticks, ends of sources (time-1).

A record's position in the log is its sequence number, counted from 0. Its arrival time is an `int`
of nanoseconds since 1970 which never decreases along the log. What an application does is a
function of these records and of nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from wallaroo.kafka_records import KafkaRecord, KafkaRun


@dataclass(frozen=True, slots=True)
class Frame:
    """A payload that a source received.

    Args:
        source: the source's name.
        payload: the frame without its header.
        at: arrival time, in nanoseconds since 1970.
    """

    source: str
    payload: bytes
    at: int = 0


@dataclass(frozen=True, slots=True)
class Value:
    """A message that a generator source made (graph-4).

    Args:
        source: the source's name.
        value: the message.
        at: arrival time, in nanoseconds since 1970.
    """

    source: str
    value: Any
    at: int = 0


@dataclass(frozen=True, slots=True)
class Unportable:
    """Stands for a `Value`'s message that cannot be pickled; a log keeps the reason instead.

    Such a record is a dead letter, reason `unportable`.

    Args:
        error: why.
    """

    error: str


@dataclass(frozen=True, slots=True)
class Consumed:
    """A record of a Kafka source's topic (kafka-1).

    Args:
        source: the source's name.
        record: what was read.
        at: arrival time, in nanoseconds since 1970.
    """

    source: str
    record: KafkaRecord
    at: int = 0


@dataclass(frozen=True, slots=True)
class Assigned:
    """A Kafka source reads these partitions from here on.

    Those of the source's first such record hold its watermark back from here on; one that is
    added later does so from its first record on (kafka-6, kafka-9).

    Args:
        source: the source's name.
        partitions: for each its number, its first offset, and the offset at which it ends;
            `None`: it does not end (kafka-10).
        at: arrival time, in nanoseconds since 1970.
        topic: the id of the topic (kafka-5).
    """

    source: str
    partitions: tuple[tuple[int, int, int | None], ...]
    at: int = 0
    topic: str = ""


@dataclass(frozen=True, slots=True)
class Unused:
    """Sequence numbers of offsets that hold nothing (kafka-1). Nothing happens at them.

    Args:
        source: the source's name.
        numbers: how many.
        at: arrival time of the run that they are in, in nanoseconds since 1970.
    """

    source: str
    numbers: int
    at: int = 0


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has moved on, and something is due (time-1).

    Args:
        at: arrival time, in nanoseconds since 1970.
    """

    at: int


@dataclass(frozen=True, slots=True)
class End:
    """A source gives nothing any more: its watermark is infinite from here on (time-3).

    Args:
        source: the source's name.
        at: arrival time, in nanoseconds since 1970.
        error_type: the exception's class name if a generator raised it, which becomes a dead
            letter of this record (graph-4); else `None`.
        error: that exception's text.
        ends_run: it was `SystemExit` or `KeyboardInterrupt`, which end the run (dead-3).
        partition: only this partition of a Kafka source ends (kafka-9); `None`: all of the source.
    """

    source: str
    at: int = 0
    error_type: str | None = None
    error: str = ""
    ends_run: bool = False
    partition: int | None = None


Single: TypeAlias = Value | Assigned | Unused | Tick | End
"""A record that an engine takes by itself; frames, and records of Kafka, come many at once."""

Record: TypeAlias = Frame | Consumed | Single


def records_of(source: str, run: KafkaRun, topic: str, at: int) -> list[Record]:
    """Return what a run holds, record by record (kafka-2).

    Args:
        source: the source's name.
        run: the run.
        topic: the name of the topic that it stands in.
        at: its arrival time, in nanoseconds since 1970.
    """
    records: list[Record] = []
    for piece in run.pieces(topic, whole=True):
        if isinstance(piece, int):
            records.append(Unused(source, piece, at))
        else:
            records += [Consumed(source, record, at) for record in piece]
    return records


def with_times_that_never_decrease(records: Iterable[Record]) -> list[Record]:
    """Return the records with each arrival time at least that of the record before (time-1)."""
    made: list[Record] = []
    latest = 0
    for record in records:
        latest = max(latest, record.at)
        made.append(record if record.at == latest else replace(record, at=latest))
    return made
