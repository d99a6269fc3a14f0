"""The plan of a run: its workload, by name or from a file, and when each message is due."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, get_args

from wallaroo_loadgen.common.config import RunConfig
from wallaroo_loadgen.common.schedule import NS, Schedule, StreamSchedule
from wallaroo_loadgen.workloads.echo import Echo
from wallaroo_loadgen.workloads.log_status import LogStatus
from wallaroo_loadgen.workloads.market_spread import MarketSpread
from wallaroo_loadgen.workloads.protocol import Framing, Options, Workload, WorkloadError
from wallaroo_loadgen.workloads.replay import Replay
from wallaroo_loadgen.workloads.word_count import WordCount

MAKERS: Mapping[str, Callable[[Options], Workload]] = {
    "echo": Echo,
    "log_status": LogStatus,
    "market_spread": MarketSpread,
    "replay": Replay,
    "word_count": WordCount,
}
"""Workloads by name."""

_MOST_BINS = 240  # columns of a plot over time; this bounds the memory of a plot


class Plan:
    """The plan made from a configuration: the workload, and each stream's schedule.

    Every process of a run builds its own and gets the same.

    Raises:
        WorkloadError, ScheduleError: when the configuration cannot work.
    """

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.schedule = schedule_of(config)
        self.workload: Workload = build(
            config.workload,
            Options(config.seed, config.connections, config.run, config.values),
        )
        streams = self.workload.streams
        sources = self.workload.sources
        if len(config.to) != len(sources):
            raise WorkloadError(
                f"{config.workload} has {len(sources)} sources ({', '.join(sources)}), so --to "
                f"names as many addresses in this order; there are {len(config.to)}"
            )
        self.streams: list[StreamSchedule] = [
            self.schedule.stream(stream.share, index / len(streams), config.seed * 65_536 + index)
            for index, stream in enumerate(streams)
        ]
        # Round columns: 0.1 s wide at least, and never more than fit a plot.
        self.bin_ns = max(NS // 10, -(-round(self.schedule.seconds * NS) // _MOST_BINS))
        self.bins = round(self.schedule.seconds * NS) // self.bin_ns + 1

    def streams_of(self, process: int) -> list[int]:
        """Return the streams that sender process `process` serves."""
        return list(range(process, len(self.streams), self.config.processes))


def schedule_of(config: RunConfig) -> Schedule:
    """Return the schedule that a configuration names.

    Raises:
        ScheduleError: when it cannot be read.
    """
    return Schedule.parse(
        config.schedule,
        rate=config.rate,
        warmup=config.warmup,
        duration=config.duration,
        cooldown=config.cooldown,
    )


def build(name: str, options: Options) -> Workload:
    """Make a workload by its name (one of `MAKERS`) or from a file that ends in `.py`.

    Raises:
        WorkloadError: when there is no such workload, or it does not work; the message says where.
    """
    if name.endswith(".py"):
        return _check(name, _from_file(Path(name), options))
    maker = MAKERS.get(name)
    if maker is None:
        there_are = ", ".join(sorted(MAKERS))
        raise WorkloadError(f"no workload is called {name!r}; there are {there_are}, or a file.py")
    return maker(options)


def _from_file(path: Path, options: Options) -> Any:
    if not path.is_file():
        raise WorkloadError(f"no workload file {path}")
    path = path.resolve()
    try:
        maker = runpy.run_path(str(path)).get("workload")
        if not callable(maker):
            raise WorkloadError(f"{path} has no function workload(options)")
        return maker(options)
    except WorkloadError:
        raise
    except Exception as error:
        raise WorkloadError(f"{_place(path, error)}: {type(error).__name__}: {error}") from error


def _place(path: Path, error: Exception) -> str:
    """Return FILE:LINE of the deepest frame of `error` that is in the user's file."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename == str(path):
            line = frame.lineno
    return f"{path}:{line}" if line else str(path)


def _check(name: str, made: Any) -> Workload:
    for attribute in ("sources", "framing", "streams", "match", "preparation", "probe", "answers"):
        if not hasattr(made, attribute):
            raise WorkloadError(f"{name}: what workload(options) returns has no {attribute!r}")
    if made.framing not in get_args(Framing):
        raise WorkloadError(f"{name}: framing is 'lines' or 'frames', not {made.framing!r}")
    if not made.streams:
        raise WorkloadError(f"{name}: there are no streams, so nothing would be sent")
    result: Workload = made
    return result
