"""Where a Kafka source begins: what is asked for, and what the brokers hold (kafka-4, kafka-5)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType

from wallaroo.kafka import KafkaSourceConfig
from wallaroo.text import escaped
from wallaroo.transport.kafka.cluster import BrokerError, Cluster, Topic
from wallaroo.transport.logged import TopicPosition

_log = logging.getLogger("wallaroo.kafka")


def begin(
    cluster: Cluster,
    source: str,
    config: KafkaSourceConfig,
    before: TopicPosition | None,
    again: Mapping[int, int] = MappingProxyType({}),
    *,
    accept_gaps: bool = False,
) -> tuple[TopicPosition, Mapping[int, range]]:
    """Find out where a source begins to read now; it blocks.

    Args:
        cluster: the brokers.
        source: its name.
        config: what it is to read.
        before: where an earlier run stood; `None`: there was none.
        again: where partitions begin that are read before that once more.
        accept_gaps: go on where records are missing between that and what is there.

    Returns:
        Where it begins, and which offsets each partition of an earlier run has now.

    Raises:
        BrokerError: the brokers do not answer, or what they hold does not fit (kafka-5).
    """
    topic = cluster.topic(config.topic)
    chosen = _chosen(source, config, topic)
    if before is None:
        offsets = _resolved(cluster, source, config, chosen)
        ends = None
        if config.until is not None:
            ends = offsets_of(cluster, config, chosen, "latest")
        return TopicPosition(topic.id, offsets, ends=ends), {}
    where = f"{source}: topic {escaped(config.topic)}"
    if topic.id != before.topic:
        raise BrokerError(
            f"{where}: the checkpoint read the topic with the id {before.topic}, and the topic of "
            f"this name has the id {topic.id} now: it was made again. To begin anew with it, take "
            "an empty checkpoint (kafka-5)"
        )
    if before.ends is not None:  # those that were added since are no part of a bounded read
        chosen = [partition for partition in chosen if partition in before.ends]
    first = offsets_of(cluster, config, chosen, "earliest")
    end = cluster.offsets(config.topic, chosen, "latest", committed_only=False)
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
    if config.until is not None and until is None:  # it was not bounded before: this is the start
        until = offsets_of(cluster, config, chosen, "latest")
    return TopicPosition(topic.id, offsets, before.at, until), there


def _chosen(source: str, config: KafkaSourceConfig, topic: Topic) -> list[int]:
    if config.partitions is None:
        return list(topic.partitions)
    missing = sorted(set(config.partitions) - set(topic.partitions))
    if missing:
        raise BrokerError(
            f"{source}: topic {escaped(topic.name)} has no partition {missing[0]}: it has "
            f"{len(topic.partitions)}"
        )
    return sorted(config.partitions)


def _resolved(
    cluster: Cluster, source: str, config: KafkaSourceConfig, chosen: list[int]
) -> dict[int, int]:
    """Return where a new run begins (kafka-4)."""
    start = config.start
    if isinstance(start, (str, int)):
        return offsets_of(cluster, config, chosen, start)
    first = offsets_of(cluster, config, chosen, "earliest")
    end = offsets_of(cluster, config, chosen, "latest")
    for partition, offset in start:
        if partition not in chosen or not first[partition] <= offset <= end[partition]:
            there = (
                f"has offsets {first[partition]} to {end[partition] - 1} now"
                if partition in chosen
                else "is not read"
            )
            raise BrokerError(
                f"{source}: topic {escaped(config.topic)}, partition {partition}: start= "
                f"says offset {offset}, and the partition {there} (kafka-5)"
            )
    return first | dict(start)


def offsets_of(
    cluster: Cluster, config: KafkaSourceConfig, partitions: list[int], at: str | int
) -> dict[int, int]:
    """Return an offset of each partition; see `Cluster.offsets`."""
    only = config.committed_only
    return cluster.offsets(config.topic, partitions, at, committed_only=only)
