"""Where a Kafka source begins: what is asked for, and what the brokers hold (kafka-4, kafka-5)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from wallaroo.text import escaped
from wallaroo.transport.kafka.cluster import BrokerError, Cluster, Topic
from wallaroo.transport.kafka.position import Position

_log = logging.getLogger("wallaroo.kafka")


@dataclass(frozen=True)
class Reading:
    """What a Kafka source is to read.

    Args:
        source: its name.
        topic: the topic's name.
        partitions: those that are read; `None`: all.
        start: ``"earliest"``, ``"latest"``, a time in nanoseconds since 1970, or an offset for
            each partition (kafka-4).
        bounded: read to the end that there is at the start, then end the source (kafka-10).
        committed_only: see `Cluster.consumer`.
        group: see `Cluster.consumer`; `None`: no group gets positions.
    """

    source: str
    topic: str
    partitions: tuple[int, ...] | None = None
    start: str | int | Mapping[int, int] = "earliest"
    bounded: bool = False
    committed_only: bool = True
    group: str | None = None


class Begun(NamedTuple):
    """What a source finds at the brokers when it begins.

    Args:
        position: where it begins to read.
        there: which offsets each partition of an earlier run has now.
    """

    position: Position
    there: Mapping[int, range] = MappingProxyType({})


def begin(
    cluster: Cluster,
    reading: Reading,
    before: Position | None,
    again: Mapping[int, int] = MappingProxyType({}),
    *,
    accept_gaps: bool = False,
) -> Begun:
    """Return where a source begins to read now; it blocks.

    Args:
        cluster: the brokers.
        reading: what is to be read.
        before: where an earlier run stood; `None`: there was none.
        again: where partitions begin that are read before that once more.
        accept_gaps: go on where records are missing between that and what is there.

    Raises:
        BrokerError: the brokers do not answer, or what they hold does not fit (kafka-5).
    """
    topic = cluster.topic(reading.topic)
    chosen = _chosen(reading, topic)
    if before is None:
        offsets = _resolved(cluster, reading, chosen)
        ends = None
        if reading.bounded:
            ends = offsets_of(cluster, reading, chosen, "latest")
        return Begun(Position(topic.id, offsets, ends=ends))
    where = f"{reading.source}: topic {escaped(reading.topic)}"
    if topic.id != before.topic:
        raise BrokerError(
            f"{where}: the checkpoint read the topic with the id {before.topic}, and the topic of "
            f"this name has the id {topic.id} now: it was made again. To begin anew with it, take "
            "an empty checkpoint (kafka-5)"
        )
    if before.ends is not None:  # those that were added since are no part of a bounded read
        chosen = [partition for partition in chosen if partition in before.ends]
    first = offsets_of(cluster, reading, chosen, "earliest")
    end = cluster.offsets(reading.topic, chosen, "latest", committed_only=False)
    there = {partition: range(first[partition], end[partition]) for partition in chosen}
    offsets = {}
    for partition in chosen:
        low, high = first[partition], end[partition]
        following = before.offsets.get(partition, low)
        wanted = following if following > high else min(following, again.get(partition, following))
        if not low <= wanted <= high:
            gap = (
                f"{where}, partition {partition}: offset {wanted} is wanted, and the partition has "
                f"offsets {low} to {high - 1} now"
            )
            if not accept_gaps:
                raise BrokerError(
                    f"{gap}; run with --accept-gaps to go on with what is there (kafka-5)"
                )
            _log.warning("%s; what is missing is left out (kafka-5)", gap)
        offsets[partition] = min(max(following, low), high)
    until = before.ends
    if reading.bounded and until is None:  # it was not bounded before: this is the start
        until = offsets_of(cluster, reading, chosen, "latest")
    return Begun(Position(topic.id, offsets, before.at, until), there)


def _chosen(reading: Reading, topic: Topic) -> list[int]:
    if reading.partitions is None:
        return list(topic.partitions)
    missing = sorted(set(reading.partitions) - set(topic.partitions))
    if missing:
        raise BrokerError(
            f"{reading.source}: topic {escaped(topic.name)} has no partition {missing[0]}: it has "
            f"{len(topic.partitions)}"
        )
    return sorted(reading.partitions)


def _resolved(cluster: Cluster, reading: Reading, chosen: list[int]) -> dict[int, int]:
    """Return where a new run begins (kafka-4)."""
    start = reading.start
    if isinstance(start, (str, int)):
        return offsets_of(cluster, reading, chosen, start)
    first = offsets_of(cluster, reading, chosen, "earliest")
    end = offsets_of(cluster, reading, chosen, "latest")
    for partition, offset in start.items():
        if partition not in chosen or not first[partition] <= offset <= end[partition]:
            there = (
                f"has offsets {first[partition]} to {end[partition] - 1} now"
                if partition in chosen
                else "is not read"
            )
            raise BrokerError(
                f"{reading.source}: topic {escaped(reading.topic)}, partition {partition}: start= "
                f"says offset {offset}, and the partition {there} (kafka-5)"
            )
    return first | dict(start)


def offsets_of(
    cluster: Cluster, reading: Reading, partitions: list[int], at: str | int
) -> dict[int, int]:
    """Return an offset of each partition; see `Cluster.offsets`."""
    only = reading.committed_only
    return cluster.offsets(reading.topic, partitions, at, committed_only=only)
