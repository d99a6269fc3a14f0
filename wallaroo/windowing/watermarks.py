"""Watermarks of sources and of window steps (time-3).

Times are nanoseconds. A watermark is an event time, or `NEVER` (there is none yet), or `FOREVER`
(of a source that has ended).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from wallaroo.kafka import KafkaSourceConfig
from wallaroo.overriding import override
from wallaroo.times import SourceMoment
from wallaroo.topology import Application, Source

NEVER: Final = -math.inf
FOREVER: Final = math.inf
NO_TIME: Final = -1
"""Stands for an event time where there is none."""


class SourceTime:
    """The time of one source.

    Attributes:
        by_arrival: its messages' event times are their arrival times.
        idle_after: after so long a silence its watermark moves with the arrival time.
        greatest: the greatest event time of its messages; `NO_TIME` before the first.
        last_frame: arrival time of its last frame, dead letter or not; `None` before the first.
        ended: it gives nothing any more.
    """

    __slots__ = ("by_arrival", "ended", "greatest", "idle_after", "last_frame")

    def __init__(self, source: Source) -> None:
        self.by_arrival = source.config.event_time is None
        self.idle_after = source.config.idle_after
        self.greatest = NO_TIME
        self.last_frame: int | None = None
        self.ended = False

    def end(self) -> None:
        """Note that it gives nothing any more."""
        self.ended = True

    def moment(self) -> SourceMoment:
        """Return what another run needs to continue from this time."""
        greatest = None if self.greatest == NO_TIME else self.greatest
        return SourceMoment(greatest, self.last_frame, self.ended)

    def go_on_from(self, moment: SourceMoment) -> None:
        """Continue from the time of another run."""
        self.greatest = NO_TIME if moment.greatest is None else moment.greatest
        self.last_frame, self.ended = moment.last_frame, moment.ended

    def watermark(self, now: int, first: int | None) -> float | None:
        """Return its watermark; `None`: it holds nothing back.

        Args:
            now: the arrival time of the latest record.
            first: that of the log's first record; `None` before it.
        """
        if self.ended:
            return FOREVER
        if self.by_arrival:
            return now
        greatest, idle_after = self.greatest, self.idle_after
        if idle_after is not None:
            since = first if self.last_frame is None else self.last_frame
            if since is not None and now - since >= idle_after:
                return None if greatest == NO_TIME else greatest + now - since
        return NEVER if greatest == NO_TIME else greatest

    def comes_to(self, target: int, now: int, first: int | None) -> float:
        """Return the arrival time from which it holds nothing below `target` back.

        That is, if no frame comes until then. `FOREVER`: it holds back until a frame comes.
        """
        mark = self.watermark(now, first)
        if mark is None or mark >= target:
            return now
        if self.by_arrival:
            return target
        since = first if self.last_frame is None else self.last_frame
        if self.idle_after is None or since is None:
            return FOREVER
        idle = since + self.idle_after
        return idle if self.greatest == NO_TIME else max(idle, since + target - self.greatest)


class PartitionedTime(SourceTime):
    """The time of a Kafka source: the least of its partitions' (kafka-9).

    Until it has partitions it is a source that has never had a frame.

    Args:
        source: the source.
        fresh: returns the time of a partition.

    Attributes:
        partitions: their times. Those that were added later are here from their first record on.
    """

    __slots__ = ("fresh", "partitions")

    def __init__(self, source: Source, fresh: Callable[[Source], SourceTime]) -> None:
        super().__init__(source)
        self.fresh = partial(fresh, source)
        self.partitions: dict[int, SourceTime] = {}

    def of(self, partition: int) -> SourceTime:
        """Return the time of a partition, which joins if it is new."""
        if partition not in self.partitions:
            self.partitions[partition] = self.fresh()
        return self.partitions[partition]

    def assign(self, partitions: Iterable[int]) -> None:
        """Let the first partitions join; those added later join at their first record."""
        if not self.partitions:
            self.partitions = {partition: self.fresh() for partition in partitions}

    @override
    def moment(self) -> SourceMoment:
        if not self.partitions:
            return super().moment()
        parts = {partition: one.moment() for partition, one in self.partitions.items()}
        return SourceMoment(None, None, all(one.ended for one in parts.values()), parts)

    @override
    def go_on_from(self, moment: SourceMoment) -> None:
        super().go_on_from(moment)
        for partition, was in moment.partitions.items():
            self.of(partition).go_on_from(was)

    @override
    def watermark(self, now: int, first: int | None) -> float | None:
        if not self.partitions:
            return super().watermark(now, first)
        marks = [one.watermark(now, first) for one in self.partitions.values()]
        return min([mark for mark in marks if mark is not None], default=None)

    @override
    def comes_to(self, target: int, now: int, first: int | None) -> float:
        if not self.partitions:
            return super().comes_to(target, now, first)
        return max([one.comes_to(target, now, first) for one in self.partitions.values()])

    @override
    def end(self) -> None:
        super().end()
        for one in self.partitions.values():
            one.end()


class Watermarks:
    """The time of an application.

    Args:
        application: the application.
        fresh: returns the time of a source, or of a partition of a Kafka source.

    Attributes:
        now: the arrival time of the latest record.
        first: that of the log's first record; `None` before it.
        sources: the time of each source, by name.
    """

    def __init__(
        self, application: Application, fresh: Callable[[Source], SourceTime] = SourceTime
    ) -> None:
        self.now = 0
        self.first: int | None = None
        self.sources: dict[str, SourceTime] = {
            name: PartitionedTime(source, fresh)
            if isinstance(source.config, KafkaSourceConfig)
            else fresh(source)
            for name, source in application.sources.items()
        }

    def moments(self) -> dict[str, SourceMoment]:
        """Return the times of the sources, by name."""
        return {name: source.moment() for name, source in self.sources.items()}

    def go_on_from(self, now: int, first: int | None, sources: Mapping[str, SourceMoment]) -> None:
        """Continue from the time of another run; it may have had other sources."""
        self.now, self.first = now, first
        for name, source in self.sources.items():
            if name in sources:
                source.go_on_from(sources[name])

    def of(self, ways: Mapping[str, int], now: int | None = None) -> float:
        """Return the watermark of a step; `NEVER`: there is none.

        Args:
            ways: the step's sources, with the delays on the way (`Application.ways`).
            now: an arrival time up to which no frame comes; `None`: that of the latest record.
        """
        at = self.now if now is None else now
        least: float | None = None
        for name, delay in ways.items():
            mark = self.sources[name].watermark(at, self.first)
            if mark is not None and (least is None or mark - delay < least):
                least = mark - delay
        return NEVER if least is None else least

    def arrival_of(self, ways: Mapping[str, int], watermark: int) -> int | None:
        """Return the arrival time at which a step's watermark gets to `watermark` by time alone.

        `None`: it waits for a frame.

        Args:
            ways: see `of`.
            watermark: in nanoseconds since 1970.
        """
        latest: float = self.now
        for name, delay in ways.items():
            reached = self.sources[name].comes_to(watermark + delay, self.now, self.first)
            latest = max(latest, reached)
        if latest == FOREVER or self.of(ways, int(latest)) < watermark:
            return None
        return int(latest)
