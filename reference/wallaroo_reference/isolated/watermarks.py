"""How far time has come: the watermark of each source, and of each window step (time-3).

Watermarks are event times in nanoseconds. `NEVER` stands for "there is none yet" and `FOREVER` for
that of a source that has ended; both can be compared with every time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from wallaroo.times import SourceMoment
from wallaroo.topology import Application, Source
from wallaroo_reference.cells import Moment

Watermark: TypeAlias = float
"""An `int` of nanoseconds, `NEVER` or `FOREVER`."""

NEVER: Final = -math.inf
FOREVER: Final = math.inf


@dataclass(slots=True)
class _SourceTime:
    """What is known of a source's time.

    Attributes:
        by_arrival: its messages' event times are their arrival times.
        idle_after: nanoseconds of its config; `None`: it is never idle.
        greatest: the greatest event time so far.
        last_frame: the arrival time of its last frame, `None` before the first.
        ended: it gives nothing any more.
    """

    by_arrival: bool
    idle_after: int | None
    greatest: Watermark = NEVER
    last_frame: int | None = None
    ended: bool = False


class Watermarks:
    """The time of an application's sources, record by record."""

    def __init__(self, application: Application) -> None:
        self._nodes = application.sources
        # For each source its times: of a Kafka source one for each partition (kafka-9), of others,
        # and as long as it has no partition, one for all of it.
        self._sources: dict[str, dict[int | None, _SourceTime]] = {
            name: {None: _source_time(node)} for name, node in application.sources.items()
        }
        self.first: int | None = None
        """The arrival time of the log's first record."""
        self.now = 0
        """The arrival time of the latest record."""

    def arrive(self, at: int, source: str | None, partition: int | None = None) -> None:
        """A record has arrived; `source` if it is a frame or a value of one."""
        self.now = max(self.now, at)
        if self.first is None:
            self.first = self.now
        if source is not None:
            self._time_of(source, partition).last_frame = self.now

    def assign(self, source: str, partitions: Iterable[int]) -> None:
        """A Kafka source reads these partitions; those added later join at their first record."""
        if None in self._sources[source]:
            for partition in partitions:
                self._time_of(source, partition)

    def move(self, source: str, event_time: int, partition: int | None = None) -> None:
        """A message of `source` has this event time."""
        times = self._time_of(source, partition)
        times.greatest = max(times.greatest, event_time)

    def end(self, source: str, partition: int | None = None) -> None:
        """A source has ended, or one of its partitions."""
        if partition is not None:
            self._time_of(source, partition).ended = True
            return
        for times in self._sources[source].values():
            times.ended = True

    def moments(self) -> dict[str, SourceMoment]:
        """Return the times of the sources, by name."""
        return {
            name: _moment(times[None])
            if None in times
            else SourceMoment(
                None,
                None,
                all(one.ended for one in times.values()),
                {number: _moment(one) for number, one in times.items() if number is not None},
            )
            for name, times in self._sources.items()
        }

    def go_on_from(self, moment: Moment) -> None:
        """Continue from the watermarks of another run."""
        self.now, self.first = moment.now, moment.first
        for name, source in moment.sources.items():
            stored: Mapping[Any, SourceMoment] = source.partitions or {None: source}
            for partition, was in stored.items():
                times = self._time_of(name, partition)
                times.greatest = NEVER if was.greatest is None else was.greatest
                times.last_frame, times.ended = was.last_frame, was.ended

    def of(self, ways: dict[str, int]) -> Watermark:
        """Return the watermark of a step: the least of its sources', less the delays.

        Args:
            ways: the step's sources, with the delays on the way (`Application.ways`).
        """
        watermarks: list[Watermark] = []
        for name, delay in ways.items():
            for times in self._sources[name].values():
                watermark = self._of_source(times)
                if watermark is not None:
                    watermarks.append(watermark - delay)
        return min(watermarks, default=NEVER)

    def arrival_for(self, ways: dict[str, int], target: int) -> Watermark:
        """Return the least arrival time at which the step's watermark is `target` by time alone.

        `FOREVER`: it will not get there, however long nothing comes. A source that does not hold
        back is left out, but at least one source must get there.
        """
        sources = [
            (times, target + delay)
            for name, delay in ways.items()
            for times in self._sources[name].values()
        ]
        reached = [self._reaches(source, wanted) for source, wanted in sources]
        released = [self._released(source) for source, _ in sources]
        latest = max(map(min, zip(reached, released, strict=True)), default=FOREVER)
        # At that time at least one source must be there, not only be left out.
        return max(latest, min(reached, default=FOREVER))

    def _time_of(self, source: str, partition: int | None) -> _SourceTime:
        """Return the time of a source, or of a partition, which joins if it is new."""
        times = self._sources[source]
        if partition is not None:
            times.pop(None, None)
            if partition not in times:
                times[partition] = _source_time(self._nodes[source])
        return times[partition]

    def _of_source(self, source: _SourceTime) -> Watermark | None:
        """Return a source's watermark; `None`: it does not hold back."""
        if source.ended:
            return FOREVER
        if source.by_arrival:
            return self.now
        if source.idle_after is None:
            return source.greatest
        if source.greatest == NEVER:
            return None if self.now >= self._released(source) else NEVER
        assert source.last_frame is not None  # a message had an event time
        silent = self.now - source.last_frame
        return source.greatest + silent if silent >= source.idle_after else source.greatest

    def _reaches(self, source: _SourceTime, target: int) -> Watermark:
        """Return the arrival time at which the source's watermark is `target` by time alone."""
        if source.ended or (not source.by_arrival and source.greatest >= target):
            return self.now
        if source.by_arrival:
            return max(self.now, target)
        if source.idle_after is None or source.greatest == NEVER:
            return FOREVER
        assert source.last_frame is not None
        lacking = int(target - source.greatest)
        return source.last_frame + max(lacking, source.idle_after)

    def _released(self, source: _SourceTime) -> Watermark:
        """Return the arrival time from which a source without event times holds nothing back."""
        if source.idle_after is None or source.greatest != NEVER or self.first is None:
            return FOREVER
        since = self.first if source.last_frame is None else source.last_frame
        return since + source.idle_after


def _moment(times: _SourceTime) -> SourceMoment:
    greatest = None if times.greatest == NEVER else int(times.greatest)
    return SourceMoment(greatest, times.last_frame, times.ended)


def _source_time(node: Source) -> _SourceTime:
    by_arrival = node.config.event_time is None
    return _SourceTime(by_arrival, None if by_arrival else node.config.idle_after)
