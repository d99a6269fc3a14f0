"""Time in the compiled path: when window steps have their turns (time-3, time-4).

The interpreter computes every watermark at every record. Here that is done once for each feed.
After that, one number is compared for each message: the event time of this source from which on a
window step may be due (`Clock.due`). A watermark is computed when it is needed: when a message is
late, or may be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol, cast

from wallaroo.topology import Application, Source
from wallaroo.windowing.watermarks import FOREVER, PartitionedTime, SourceTime, Watermarks

AT_ONCE: Final = -1
"""A `Clock.due` before every event time."""
NOT_DUE: Final = 1 << 64
"""A `Clock.due` after every event time."""


class Clock(SourceTime):
    """The time of one source, or of one partition of a Kafka source (kafka-9).

    Attributes:
        due: the event time from which on window steps must have their turns; `AT_ONCE`: with the
            next record, whatever it is.
    """

    __slots__ = ("due",)

    def __init__(self, source: Source) -> None:
        super().__init__(source)
        self.due = NOT_DUE


class TimedStep(Protocol):
    """What the clocks know of a window step.

    Attributes:
        ways: its sources, with the delays on the way (`Application.ways`).
        watermark: the greatest that it has had.
        next_due: the least watermark at which a window fires.
    """

    ways: Mapping[str, int]
    watermark: float
    next_due: float

    def next_timeout(self) -> int | None:
        """Return the least arrival time at which a window fires by its timeout."""


class Times(Watermarks):
    """The time of an application.

    Attributes:
        clocks: the time of each source.
        clock: of what has arrived last: the source's, of a Kafka source the partition's; `None`: it
            was no frame, value or record of a source.
        steps: the window steps, in the order of their calls.
        turning: the steps are having their turns; only these move watermarks (time-4).
    """

    def __init__(self, application: Application) -> None:
        super().__init__(application, Clock)
        self.clocks = cast(dict[str, Clock | PartitionedTime], self.sources)
        self.clock: Clock | None = None
        self.steps: list[TimedStep] = []
        self.turning = False
        self._source: str | None = None  # of the records that have arrived

    def assign(self, source: str, partitions: Iterable[int]) -> None:
        """Note which partitions a Kafka source reads."""
        clock = self.clocks[source]
        assert isinstance(clock, PartitionedTime)
        clock.assign(partitions)

    def end(self, source: str, partition: int | None) -> None:
        """Note that a source has ended, or one of its partitions."""
        clock = self.clocks[source] if partition is None else self._clock_of(source, partition)
        clock.end()

    def arrive(self, at: int, frames_of: str | None, partition: int | None = None) -> None:
        """Note that a record has arrived, or several at one time: frames or values of a source."""
        self.catch_up()
        self.now = max(self.now, at)
        if self.first is None:
            self.first = self.now
        self._source, self.clock = frames_of, None
        if frames_of is not None:
            self.clock = self._clock_of(frames_of, partition)
            self.clock.last_frame = self.now

    def begin(self) -> None:
        """Compute from which event time on the records that have arrived make something due."""
        assert self.clock is not None
        if any(self.is_due(step, self.of(step.ways)) for step in self.steps):
            self.clock.due = AT_ONCE
        else:
            self.clock.due = self._due_in(self.clock)

    def settle(self) -> None:
        """Compute that again, because other things are due than before."""
        clock = self.clock
        if clock is not None and not self.turning and clock.due != AT_ONCE:
            clock.due = self._due_in(clock)

    def is_waiting(self) -> bool:
        """Whether window steps have a turn at the next record that has arrived, whatever it is."""
        return self.clock is not None and self.clock.due == AT_ONCE

    def reach(self, time: int) -> None:
        """Note the event time of a message."""
        if self.clock is not None:
            self.clock.greatest = max(self.clock.greatest, time)

    def turn(self, fire: Callable[[int], None]) -> None:
        """Give every window step its turn (time-4).

        Args:
            fire: lets a step, by its number, fire what is due.
        """
        self.turning = True
        for number, step in enumerate(self.steps):
            self.move(step)
            if self.is_due(step, step.watermark):
                fire(number)
        self.turning = False
        if self.clock is not None:
            self.clock.due = self._due_in(self.clock)

    def catch_up(self) -> None:
        """Move the steps' watermarks on to where they stand after the latest record."""
        for step in self.steps:
            self.move(step)

    def move(self, step: TimedStep) -> None:
        """Move a step's watermark on, as far as it has come; it never goes back."""
        watermark = self.of(step.ways)
        if watermark > step.watermark:
            step.watermark = watermark

    def is_due(self, step: TimedStep, watermark: float) -> bool:
        """Whether a step has something to fire at this watermark, now."""
        if step.next_due != FOREVER and watermark >= step.next_due:
            return True
        timeout = step.next_timeout()
        return timeout is not None and timeout <= self.now

    def next_arrival(self, step: TimedStep) -> int | None:
        """Return the arrival time at which time alone lets a step fire; `None`: nothing does."""
        timeout = step.next_timeout()
        if step.next_due == FOREVER:
            return timeout
        arrival = self.arrival_of(step.ways, int(step.next_due))
        return min([at for at in (timeout, arrival) if at is not None], default=None)

    def _due_in(self, clock: Clock) -> int:
        """Return the event time at this clock from which on a step may have something to fire."""
        due, source = NOT_DUE, self._source
        if clock.by_arrival or source is None:
            return due
        for step in self.steps:
            if source not in step.ways or step.next_due == FOREVER:
                continue
            if self._held_back_by(step.ways, clock) >= step.next_due:
                due = min(due, int(step.next_due) + step.ways[source])
        return due

    def _held_back_by(self, ways: Mapping[str, int], clock: Clock) -> float:
        """Return the least watermark of what holds back beside a clock."""
        least = FOREVER
        for name, delay in ways.items():
            of_source = self.clocks[name]
            parts = of_source.partitions if isinstance(of_source, PartitionedTime) else {}
            for other in parts.values() or [of_source]:
                mark = None if other is clock else other.watermark(self.now, self.first)
                if mark is not None:
                    least = min(least, mark - delay)
        return least

    def _clock_of(self, source: str, partition: int | None) -> Clock:
        clock = self.clocks[source]
        if isinstance(clock, PartitionedTime):
            assert partition is not None, f"records of {source} stand in partitions"
            clock = cast(Clock, clock.of(partition))
        return clock
