"""The plan made from a configuration: the workload, and when each message is due."""

from __future__ import annotations

from wallaroo_loadgen.common.config import RunConfig
from wallaroo_loadgen.common.schedule import NS, Schedule, StreamSchedule
from wallaroo_loadgen.workloads.catalogue import build
from wallaroo_loadgen.workloads.protocol import Options, Workload, WorkloadError

_MOST_BINS = 240  # columns of a plot over time; this bounds the memory of a plot


class Plan:
    """The plan made from a configuration: the workload, and each stream's schedule.

    Every process of a run builds its own and gets the same.

    Raises:
        WorkloadError, ScheduleError: when the configuration cannot work.
    """

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.schedule = Schedule.parse(
            config.schedule,
            rate=config.rate,
            warmup=config.warmup,
            duration=config.duration,
            cooldown=config.cooldown,
        )
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
