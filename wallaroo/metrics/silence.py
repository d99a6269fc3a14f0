"""Partitions of Kafka topics for which windows wait, and from which nothing comes (kafka-9)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, Protocol

from wallaroo.text import escaped
from wallaroo.topology import Source

SILENT: Final = 30_000_000_000
"""Nanoseconds in which others came and none of a partition, from which it is called silent."""

_NO_TIME = -1  # before every event time
_NAMED = 5  # partitions that are named


class PartitionTime(Protocol):
    """The time of a partition."""

    @property
    def greatest(self) -> int | None:
        """The greatest event time of its messages; -1 or `None`: there was none."""

    @property
    def last_frame(self) -> int | None:
        """The arrival time of its last record; `None`: there was none."""

    @property
    def ended(self) -> bool:
        """Whether it gives nothing any more."""


def silent_partitions(
    source: Source, partitions: Mapping[int, PartitionTime], now: int, first: int | None
) -> list[int]:
    """Return the partitions that hold the watermark of a source back, and have been silent.

    Args:
        source: a source that reads a topic.
        partitions: the times of its partitions.
        now: the arrival time of the latest record, of any source.
        first: that of the first record; `None`: there was none.
    """
    if source.config.event_time is None or source.config.idle_after is not None or first is None:
        return []
    silent, moving = {}, []
    for number, one in partitions.items():
        mark = _NO_TIME if one.greatest is None else one.greatest
        if one.ended:
            continue
        if now - (first if one.last_frame is None else one.last_frame) >= SILENT:
            silent[number] = mark
        else:
            moving.append(mark)
    return sorted([n for n, mark in silent.items() if not moving or mark < min(moving)])


def named(source: str, partitions: Collection[int]) -> str:
    """Return the names of a source's partitions, for people."""
    numbers = list(map(str, sorted(partitions)))
    if len(numbers) > _NAMED:
        numbers[_NAMED:] = [f"{len(numbers) - _NAMED} more"]
    *before, last = numbers
    listed = f"{', '.join(before)} and {last}" if before else last
    return f"partition{'s' * bool(before)} {listed} of source {escaped(source)}"
