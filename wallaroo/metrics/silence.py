"""Partitions of Kafka topics for which windows wait, and from which nothing comes (kafka-9)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

from wallaroo.kafka import KafkaSourceConfig
from wallaroo.metrics.registry import Registry
from wallaroo.text import escaped
from wallaroo.times import SourceMoment
from wallaroo.topology import Application, Source

SILENT: Final = 30_000_000_000
"""Nanoseconds in which others came and none of a partition, from which it is called silent."""

_NO_TIME = -1  # before every event time
_NAMED = 5  # partitions that are named
_LOOK = 5.0  # seconds between looks

_log = logging.getLogger("wallaroo.kafka")


class Moment(Protocol):
    """The times of a run."""

    @property
    def now(self) -> int:
        """The arrival time of the latest record, of any source."""

    @property
    def first(self) -> int | None:
        """That of the first record; `None`: there was none."""

    @property
    def sources(self) -> Mapping[str, SourceMoment]:
        """Those of its sources, by name."""


def silent_partitions(
    source: Source, partitions: Mapping[int, SourceMoment], now: int, first: int | None
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


class Silence:
    """Says now and then for which partitions windows wait; in the loop's thread.

    Args:
        application: what runs.
        moment: returns the times of its sources.
        open_windows: returns how many windows are open.
        metrics: gets what is found; `None`: nobody wants it.

    Attributes:
        partitions: those for which windows wait, by source, as of the last look.
    """

    def __init__(
        self,
        application: Application,
        moment: Callable[[], Moment],
        open_windows: Callable[[], int],
        metrics: Registry | None,
    ) -> None:
        self.partitions: Mapping[str, list[int]] = {}
        self._moment = moment
        self._open_windows = open_windows
        self._metrics = metrics
        waited_for = {name for at in application.window_steps for name in application.ways[at]}
        self._sources = {
            name: source
            for name, source in application.sources.items()
            if name in waited_for and isinstance(source.config, KafkaSourceConfig)
        }
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin, in the running loop."""
        if self._sources:
            self._timer = asyncio.get_running_loop().call_later(_LOOK, self._look_again)

    def close(self) -> None:
        """Look a last time."""
        if self._timer is not None:
            self._timer.cancel()
            self.look()

    def _look_again(self) -> None:
        self.look()
        self.start()

    def look(self) -> None:
        """Look now, between two records."""
        before, moment = self.partitions, self._moment()
        found = {
            name: silent_partitions(
                source, moment.sources[name].partitions, moment.now, moment.first
            )
            for name, source in self._sources.items()
        }
        waiting = any(found.values()) and self._open_windows()
        self.partitions = {name: some for name, some in found.items() if some and waiting}
        for name, some in self.partitions.items():
            if new := set(some).difference(before.get(name, [])):
                _log.warning(
                    "windows wait for %s: nothing came from there for %d s or more, while others "
                    "went on. With idle_after= of the source they do not wait (kafka-9)",
                    named(name, new),
                    SILENT // 10**9,
                )
        if self._metrics is not None:
            for name in self._sources:
                self._metrics.sources[name].silent = tuple(self.partitions.get(name, ()))
