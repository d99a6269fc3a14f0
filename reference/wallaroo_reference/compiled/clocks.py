"""Time in the compiled path: when window steps have their turns (time-3, time-4).

The interpreter computes every watermark at every record. Here that is done once for each feed.
After that, one number is compared for each message: the event time of this source from which on a
window step may be due (`Clock.due`). A watermark is computed when it is needed: when a message is
late, or may be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from wallaroo.topology import Application, Source
from wallaroo.windowing.watermarks import FOREVER, NO_TIME, SourceTime, Watermarks
from wallaroo_reference.cells import Moment, SourceMoment

AT_ONCE: Final = -1
"""A `Clock.due` before every event time."""
NOT_DUE: Final = 1 << 64
"""A `Clock.due` after every event time."""


class Clock(SourceTime):
    """The time of one source.

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
        steps: the window steps, in the order of their calls.
        turning: the steps are having their turns; only these move watermarks (time-4).
    """

    def __init__(self, application: Application) -> None:
        self.clocks = {name: Clock(source) for name, source in application.sources.items()}
        super().__init__(self.clocks)
        self.steps: list[TimedStep] = []
        self.turning = False
        self._source: str | None = None  # of the records that have arrived

    def moments(self) -> dict[str, SourceMoment]:
        """Return the times of the sources, by name."""
        return {
            name: SourceMoment(
                None if clock.greatest == NO_TIME else clock.greatest, clock.last_frame, clock.ended
            )
            for name, clock in self.clocks.items()
        }

    def go_on_from(self, moment: Moment) -> None:
        """Continue from the time of another run."""
        self.now, self.first = moment.now, moment.first
        for name, was in moment.sources.items():
            clock = self.clocks[name]
            clock.greatest = NO_TIME if was.greatest is None else was.greatest
            clock.last_frame, clock.ended = was.last_frame, was.ended

    def arrive(self, at: int, frames_of: str | None) -> None:
        """Note that a record has arrived, or several at one time: frames or values of a source."""
        self.catch_up()
        self.now = max(self.now, at)
        if self.first is None:
            self.first = self.now
        self._source = frames_of
        if frames_of is not None:
            self.clocks[frames_of].last_frame = self.now

    def begin(self, source: str) -> None:
        """Compute from which event time on the records that have arrived make something due."""
        clock = self.clocks[source]
        if any(self.is_due(step, self.of(step.ways)) for step in self.steps):
            clock.due = AT_ONCE
        else:
            clock.due = self._due_in(source)

    def settle(self) -> None:
        """Compute that again, because other things are due than before."""
        if self._source is not None and not self.turning:
            clock = self.clocks[self._source]
            if clock.due != AT_ONCE:
                clock.due = self._due_in(self._source)

    def is_waiting(self, source: str | None) -> bool:
        """Whether window steps have a turn at the next record of a source, whatever it gives."""
        return source is not None and self.clocks[source].due == AT_ONCE

    def reach(self, source: str, time: int) -> None:
        """Note the event time of a message."""
        clock = self.clocks[source]
        clock.greatest = max(clock.greatest, time)

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
        if self._source is not None:
            self.clocks[self._source].due = self._due_in(self._source)

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

    def _due_in(self, source: str) -> int:
        """Return the event time of this source from which on a step may have something to fire."""
        due = NOT_DUE
        if self.clocks[source].by_arrival:
            return due
        for step in self.steps:
            if source not in step.ways or step.next_due == FOREVER:
                continue
            others = {name: delay for name, delay in step.ways.items() if name != source}
            if not others or self._held_back_by(others) >= step.next_due:
                due = min(due, int(step.next_due) + step.ways[source])
        return due

    def _held_back_by(self, ways: Mapping[str, int]) -> float:
        """Return the least watermark of the sources that hold back."""
        marks = [
            (self.clocks[name].watermark(self.now, self.first), delay)
            for name, delay in ways.items()
        ]
        return min([mark - delay for mark, delay in marks if mark is not None], default=FOREVER)
