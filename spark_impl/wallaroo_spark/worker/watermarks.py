"""Watermarks: noted where records are decoded, replayed where windows are held (time-3).

A watermark is an event time in nanoseconds, or `NEVER` ("there is none yet"), or `FOREVER` (of a
source that has ended).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from typing import Any, Final

from wallaroo.topology import Application, Source
from wallaroo_spark.wire.tracks import NO_TIME, Moment, Track, What

NEVER: Final = -math.inf
FOREVER: Final = math.inf


class Tracker:
    """Notes the moments of the records that one task decodes.

    A record that can move no watermark is left out: nothing in its part has a later arrival time or
    event time than before.
    """

    def __init__(self, application: Application) -> None:
        sources = application.sources.values()
        self.track: Track = array("q")
        self._number = {source.pipeline: number for number, source in enumerate(sources)}
        self._all = any(source.config.idle_after is not None for source in sources)
        self._latest = -1
        self._greatest: dict[str, int] = {}

    def note(self, sequence: int, at: int, what: What, source: str, time: int = NO_TIME) -> None:
        """Note a record; `source` is of no concern for a tick."""
        moves = at > self._latest or time > self._greatest.get(source, NO_TIME)
        if moves or self._all or what is What.END:
            self._latest = at
            self._greatest[source] = max(time, self._greatest.get(source, NO_TIME))
            self.track.extend((sequence, at, what, self._number.get(source, 0), time))


class _Source:
    """What is known of a source: a state machine of its moments."""

    def __init__(self, node: Source) -> None:
        self._by_arrival = node.config.event_time is None
        self._idle_after = node.config.idle_after
        self.greatest = NO_TIME
        self.last: int | None = None  # the arrival time of its last frame
        self.ended = False

    def holds_at(self, now: int, first: int) -> float | None:
        """Return its watermark; `None`: it holds nothing back."""
        if self.ended:
            return FOREVER
        if self._by_arrival:
            return now
        silent = now - (first if self.last is None else self.last)
        idle = self._idle_after is not None and silent >= self._idle_after
        if self.greatest == NO_TIME:
            return None if idle else NEVER
        return self.greatest + silent if idle else self.greatest

    def reaches(self, target: int, now: int, first: int) -> float:
        """Return the arrival time from which it holds nothing below `target` back.

        Until then no frame comes. `FOREVER`: it holds back until one comes.
        """
        holds = self.holds_at(now, first)
        if holds is None or holds >= target:
            return now
        if self._by_arrival:
            return target
        if self._idle_after is None:
            return FOREVER
        silent_since = first if self.last is None else self.last
        idle = silent_since + self._idle_after
        return (
            idle if self.greatest == NO_TIME else max(idle, silent_since + target - self.greatest)
        )


class Watermarks:
    """The time of an application's sources, moment by moment.

    Args:
        application: the application.
        known: what `known` was when the last batch ended; `None`: nothing is known yet.

    Attributes:
        now: the arrival time of the latest record.
    """

    def __init__(self, application: Application, known: Any = None) -> None:
        self._names = list(application.sources)
        self._sources = [_Source(node) for node in application.sources.values()]
        self.now, self._first = 0, -1
        if known is not None:
            self.now, self._first, of_sources = known
            for source, values in zip(self._sources, of_sources, strict=True):
                source.greatest, source.last, source.ended = values

    @property
    def known(self) -> Any:
        """What the next batch has to know."""
        of_sources = [(one.greatest, one.last, one.ended) for one in self._sources]
        return self.now, self._first, of_sources

    def move(self, moment: Moment) -> None:
        """Note a record."""
        self.now = moment.at
        if self._first < 0:
            self._first = moment.at
        source = self._sources[moment.source]
        if moment.what == What.MESSAGE:
            source.last = moment.at
            source.greatest = max(source.greatest, moment.time)
        elif moment.what == What.END:
            source.ended = True

    def of(self, ways: Mapping[str, int], now: int | None = None) -> float:
        """Return the watermark of a step.

        Args:
            ways: the step's sources, with the delays on the way (`Application.ways`).
            now: an arrival time up to which no frame comes; `None`: that of the latest record.
        """
        at = self.now if now is None else now
        least: float | None = None
        for name, source in zip(self._names, self._sources, strict=True):
            if name in ways:
                own = source.holds_at(at, self._first)
                if own is not None:
                    less = own - ways[name]
                    least = less if least is None else min(least, less)
        return NEVER if least is None else least

    def when(self, ways: Mapping[str, int], watermark: int) -> int | None:
        """Return the arrival time at which a step's watermark gets to `watermark` by time alone.

        `None`: it waits for a frame.

        Args:
            ways: see `of`.
            watermark: in nanoseconds since 1970.
        """
        latest: float = self.now
        for name, source in zip(self._names, self._sources, strict=True):
            if name in ways:
                reached = source.reaches(watermark + ways[name], self.now, self._first)
                latest = max(latest, reached)
        if latest == FOREVER or self.of(ways, int(latest)) < watermark:
            return None
        return int(latest)
