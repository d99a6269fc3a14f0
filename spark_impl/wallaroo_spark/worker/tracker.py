"""What records say about time, noted where they are decoded (time-3)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from wallaroo.topology import Application
from wallaroo.windowing.kinds import windowed
from wallaroo.windowing.watermarks import FOREVER, NEVER, NO_TIME
from wallaroo.windows import CountWindows, RangeWindows
from wallaroo_spark.wire.job import NO_PARTITION, Track, What


class Tracker:
    """Notes the moments of the records that one task decodes.

    Most records are left out. Where nothing has a later arrival time or event time than before, no
    watermark moves. And where all windows behind a source lie on grids, an event time matters only
    when it reaches the next time at which one of them may be due; until then, the same windows have
    fired. How far a source has come is noted at the end. Each partition of a Kafka source counts as
    a source (kafka-9).
    """

    def __init__(self, application: Application) -> None:
        sources = application.sources
        self._track: Track = array("q")
        self._all = any(source.config.idle_after is not None for source in sources.values())
        self._latest = -1
        self._numbers = {name: number for number, name in enumerate(sources)}
        self._grids = {name: _grids(application, name) for name in sources}
        self._noted: dict[tuple[str, int], _Noted] = {}

    def note(
        self,
        sequence: int,
        at: int,
        what: What,
        source: str,
        time: int = NO_TIME,
        partition: int = NO_PARTITION,
    ) -> None:
        """Note a record; `source` is empty for a tick."""
        if what is What.ASSIGNED:  # no record of the partition: one that is added joins later
            number = self._numbers[source]
            self._track.extend((sequence, at, what, number, time, partition))
            return
        noted = self._noted.get((source, partition))
        first = noted is None  # with it a partition may join
        if noted is None:
            number, grids = self._numbers.get(source, 0), self._grids.get(source, ())
            noted = self._noted[source, partition] = _Noted(number, partition, grids)
        later = what is What.MESSAGE and time > noted.greatest
        if later:
            noted.greatest = time
        due = first or at > self._latest or (later and time >= noted.due)
        if due or self._all or what is What.END:
            self._latest = max(self._latest, at)
            self._track.extend((sequence, at, what, noted.number, time, partition))
            if later:
                noted.tracked()
        elif later:
            noted.left_out = sequence, at

    def finish(self) -> Track:
        """Return the track, when all records have been noted."""
        for noted in self._noted.values():
            if noted.left_out is not None:
                moment = (*noted.left_out, What.MESSAGE, noted.number, noted.greatest)
                self._track.extend((*moment, noted.partition))
                noted.left_out = None
        return self._track


class _Noted:
    """What a tracker knows of a source, or of a partition of one.

    Args:
        number: the source's number.
        partition: the partition's number, or `NO_PARTITION`.
        grids: see `_grids`.

    Attributes:
        greatest: its greatest event time.
        due: the next event time that may let a window fire.
        left_out: the sequence and the arrival time of the record with the greatest event time,
            while that is not in the track.
    """

    def __init__(
        self, number: int, partition: int, grids: Sequence[tuple[int, int]] | None
    ) -> None:
        self.number = number
        self.partition = partition
        self.greatest = NO_TIME
        self.due = NEVER
        self.left_out: tuple[int, int] | None = None
        self._grids = grids

    def tracked(self) -> None:
        """Note that the greatest event time is in the track."""
        self.left_out = None
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
        windows = windowed(application, index).windows
        if before is None or isinstance(windows, CountWindows):  # these are due by arrival time
            continue
        if not isinstance(windows, RangeWindows):
            return None
        grids.append((before + windows.range + windows.delay, windows.slide))
    return grids
