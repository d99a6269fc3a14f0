"""Watermarks: noted where records are decoded, replayed where windows are held (time-3).

A watermark is an event time in nanoseconds, or `NEVER` ("there is none yet"), or `FOREVER` (of a
source that has ended).
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from typing import Any, Final

from wallaroo.operations import Windowed
from wallaroo.topology import Application, Source, Step
from wallaroo.windows import CountWindows, RangeWindows, Windows
from wallaroo_spark.wire.tracks import NO_TIME, Track, What

NEVER: Final = -math.inf
FOREVER: Final = math.inf


class Tracker:
    """Notes the moments of the records that one task decodes.

    Most records are left out. Where nothing has a later arrival time or event time than before, no
    watermark moves. And where all windows behind a source lie on grids, an event time matters only
    when it reaches the next time at which one of them may be due; until then, the same windows have
    fired. How far a source has come is noted at the end.
    """

    def __init__(self, application: Application) -> None:
        sources = application.sources.values()
        self._track: Track = array("q")
        self._all = any(source.config.idle_after is not None for source in sources)
        self._latest = -1
        self._noted = {
            source.pipeline: _Noted(number, _grids(application, source.pipeline))
            for number, source in enumerate(sources)
        }
        self._no_source = _Noted(0, ())

    def note(self, sequence: int, at: int, what: What, source: str, time: int = NO_TIME) -> None:
        """Note a record; `source` is of no concern for a tick."""
        noted = self._noted.get(source, self._no_source)
        later = time > noted.greatest
        if later:
            noted.greatest = time
        if at > self._latest or (later and time >= noted.due) or self._all or what is What.END:
            self._latest = at
            self._track.extend((sequence, at, what, noted.number, time))
            if later:
                noted.told()
        elif later:
            noted.untold = sequence, at

    def finish(self) -> Track:
        """Return the track, when all records have been noted."""
        for noted in self._noted.values():
            if noted.untold is not None:
                moment = (*noted.untold, What.MESSAGE, noted.number, noted.greatest)
                self._track.extend(moment)
                noted.untold = None
        return self._track


class _Noted:
    """What a tracker knows of a source.

    Args:
        number: its number.
        grids: see `_grids`.

    Attributes:
        greatest: its greatest event time.
        due: the next event time that may let a window fire.
        untold: the sequence and the arrival time of the record with the greatest event time, while
            that is not in the track.
    """

    def __init__(self, number: int, grids: Sequence[tuple[int, int]] | None) -> None:
        self.number = number
        self.greatest = NO_TIME
        self.due = NEVER
        self.untold: tuple[int, int] | None = None
        self._grids = grids

    def told(self) -> None:
        """Note that the greatest event time is in the track."""
        self.untold = None
        if self._grids is not None:
            last = self.greatest
            nexts = [last + every - (last - first) % every for first, every in self._grids]
            self.due = min(nexts, default=FOREVER)


def _grids(application: Application, source: str) -> list[tuple[int, int]] | None:
    """Return when windows behind a source may be due, by its event times.

    Returns:
        Pairs of (first, every): at the first time, and whenever so much more has passed. `None`: at
        any time.
    """
    grids = []
    for index in application.window_steps:
        before = application.ways[index].get(source)
        windows = _windows_of(application, index)
        if before is None or isinstance(windows, CountWindows):  # these are due by arrival time
            continue
        if not isinstance(windows, RangeWindows):
            return None
        grids.append((before + windows.range + windows.delay, windows.slide))
    return grids


def _windows_of(application: Application, index: int) -> Windows:
    step = application.nodes[index]
    assert isinstance(step, Step)
    assert isinstance(step.operation, Windowed)
    return step.operation.windows


class _Source:
    """What is known about a source's time, moment by moment."""

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
        """Return the arrival time from which it no longer holds anything below `target` back.

        That is, if no frame comes until then. `FOREVER`: it holds back until a frame comes.
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
        self._sources = [_Source(node) for node in application.sources.values()]
        self._named = dict(zip(application.sources, self._sources, strict=True))
        self.now, self._first = 0, -1
        if known is not None:
            self.now, self._first, of_sources = known
            for source, values in zip(self._sources, of_sources, strict=True):
                source.greatest, source.last, source.ended = values

    @property
    def known(self) -> Any:
        """What the next batch must know."""
        of_sources = [(one.greatest, one.last, one.ended) for one in self._sources]
        return self.now, self._first, of_sources

    def move(self, at: int, what: int, source: int, time: int) -> None:
        """Note a record: its arrival time, what it is, its source, its event time."""
        self.now = at
        if self._first < 0:
            self._first = at
        moved = self._sources[source]
        if what == What.MESSAGE:
            moved.last = at
            if time > moved.greatest:
                moved.greatest = time
        elif what == What.END:
            moved.ended = True

    def of(self, ways: Mapping[str, int], now: int | None = None) -> float:
        """Return the watermark of a step.

        Args:
            ways: the step's sources, with the delays on the way (`Application.ways`).
            now: an arrival time up to which no frame comes; `None`: that of the latest record.
        """
        at = self.now if now is None else now
        least: float | None = None
        for name, delay in ways.items():
            own = self._named[name].holds_at(at, self._first)
            if own is not None and (least is None or own - delay < least):
                least = own - delay
        return NEVER if least is None else least

    def when(self, ways: Mapping[str, int], watermark: int) -> int | None:
        """Return the arrival time at which a step's watermark gets to `watermark` by time alone.

        `None`: it waits for a frame.

        Args:
            ways: see `of`.
            watermark: in nanoseconds since 1970.
        """
        latest: float = self.now
        for name, delay in ways.items():
            reached = self._named[name].reaches(watermark + delay, self.now, self._first)
            latest = max(latest, reached)
        if latest == FOREVER or self.of(ways, int(latest)) < watermark:
            return None
        return int(latest)
