"""Time in the compiled path: watermarks of sources and steps, and when something is due (time-3).

The interpreter computes every watermark at every record. Here that is done once for each feed.
After that, one number is compared for each message: the event time of this source from which on a
window step may be due (`Clock.due`). A watermark is computed when it is needed: when a message is
late, or may be.

Times are nanoseconds. `NEVER` and `FOREVER` are watermarks that all times compare with.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from wallaroo.topology import Application, Source
from wallaroo_reference.kept import Moment, SourceMoment

NEVER: Final = -math.inf
FOREVER: Final = math.inf
AT_ONCE: Final = -1
"""A `Clock.due` before every event time."""
NOT_DUE: Final = 1 << 64
"""A `Clock.due` after every event time."""


class Clock:
    """The time of one source.

    Attributes:
        greatest: the greatest event time of its messages; -1 before the first.
        due: the event time from which on window steps must have their turns; `AT_ONCE`: with the
            next record, whatever it is.
        last_frame: arrival time of its last frame, dead letter or not; `None` before the first.
        ended: it gives nothing any more.
    """

    __slots__ = ("by_arrival", "due", "ended", "greatest", "idle_after", "last_frame")

    def __init__(self, source: Source) -> None:
        self.by_arrival = source.config.event_time is None
        self.idle_after = source.config.idle_after
        self.greatest = -1
        self.due = NOT_DUE
        self.last_frame: int | None = None
        self.ended = False


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


class Times:
    """The time of an application.

    Attributes:
        now: the arrival time of the latest record.
        first: that of the log's first record; `None` before it.
        clocks: that of each source.
        steps: the window steps, in the order of their calls.
        turning: the steps are having their turns; only these move watermarks (time-4).
    """

    def __init__(self, application: Application) -> None:
        self.now = 0
        self.clocks = {name: Clock(source) for name, source in application.sources.items()}
        self.steps: list[TimedStep] = []
        self.turning = False
        self.first: int | None = None
        self._feeding: str | None = None

    def moments(self) -> dict[str, SourceMoment]:
        """Return the times of the sources, by name."""
        return {
            name: SourceMoment(
                None if clock.greatest < 0 else clock.greatest, clock.last_frame, clock.ended
            )
            for name, clock in self.clocks.items()
        }

    def go_on_from(self, moment: Moment) -> None:
        """Continue from the time of another run."""
        self.now, self.first = moment.now, moment.first
        for name, was in moment.sources.items():
            clock = self.clocks[name]
            clock.greatest = -1 if was.greatest is None else was.greatest
            clock.last_frame, clock.ended = was.last_frame, was.ended

    def arrive(self, at: int, frames_of: str | None) -> None:
        """Note that a record has arrived, or several at one time: frames or values of a source."""
        self.catch_up()
        self.now = max(self.now, at)
        if self.first is None:
            self.first = self.now
        self._feeding = frames_of
        if frames_of is not None:
            self.clocks[frames_of].last_frame = self.now

    def begin(self, source: str) -> None:
        """Compute from which event time on the feed that has arrived makes something due."""
        clock = self.clocks[source]
        if any(self.is_due(step, self.of(step.ways)) for step in self.steps):
            clock.due = AT_ONCE
        else:
            clock.due = self._due_in(source)

    def settle(self) -> None:
        """Compute that again, because other things are due than before."""
        if self._feeding is not None and not self.turning:
            clock = self.clocks[self._feeding]
            if clock.due != AT_ONCE:
                clock.due = self._due_in(self._feeding)

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
        if self._feeding is not None:
            self.clocks[self._feeding].due = self._due_in(self._feeding)

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

    def of(self, ways: Mapping[str, int]) -> float:
        """Return the watermark behind these ways; `NEVER`: there is none (time-3)."""
        least: float | None = None
        for source, delay in ways.items():
            watermark = self._of_source(self.clocks[source])
            if watermark is not None and (least is None or watermark - delay < least):
                least = watermark - delay
        return NEVER if least is None else least

    def arrival_of(self, step: TimedStep) -> float:
        """Return the arrival time at which a step's next window fires if nothing more comes.

        `FOREVER`: none does.
        """
        if step.next_due == FOREVER:
            return FOREVER
        # Every source must have reached that time or hold nothing back; one must have reached it.
        everyone, someone = NEVER, FOREVER
        for source, delay in step.ways.items():
            comes = self._comes_to(self.clocks[source], int(step.next_due) + delay)
            everyone = max(everyone, min(comes, self._released_at(self.clocks[source])))
            someone = min(someone, comes)
        return max(everyone, someone)

    def _due_in(self, source: str) -> int:
        """Return the event time of this source from which on a step may have something to fire."""
        clock = self.clocks[source]
        if clock.by_arrival:
            return NOT_DUE
        found = NOT_DUE
        for step in self.steps:
            if source not in step.ways or step.next_due == FOREVER:
                continue
            others = {name: delay for name, delay in step.ways.items() if name != source}
            if not others or self._held_back_by(others) >= step.next_due:
                found = min(found, int(step.next_due) + step.ways[source])
        return found

    def _held_back_by(self, ways: Mapping[str, int]) -> float:
        """Return the least watermark of the sources that hold back."""
        held = [(self._of_source(self.clocks[name]), delay) for name, delay in ways.items()]
        return min([mark - delay for mark, delay in held if mark is not None], default=FOREVER)

    def _of_source(self, clock: Clock) -> float | None:
        """Return a source's watermark; `None`: it holds nothing back."""
        if clock.ended:
            return FOREVER
        if clock.by_arrival:
            return self.now
        if clock.greatest < 0:
            return None if self.now >= self._released_at(clock) else NEVER
        if clock.idle_after is not None and clock.last_frame is not None:
            silent = self.now - clock.last_frame
            if silent >= clock.idle_after:
                return clock.greatest + silent
        return clock.greatest

    def _released_at(self, clock: Clock) -> float:
        """Return the arrival time from which on a source without event times holds nothing back."""
        if clock.ended or clock.by_arrival or clock.idle_after is None or clock.greatest >= 0:
            return FOREVER
        since = self.first if clock.last_frame is None else clock.last_frame
        return FOREVER if since is None else since + clock.idle_after

    def _comes_to(self, clock: Clock, time: int) -> float:
        """Return the arrival time at which a source's watermark is `time` if nothing more comes."""
        if clock.ended:
            return self.now
        if clock.by_arrival:
            return max(self.now, time)
        if clock.greatest >= time:
            return self.now
        if clock.idle_after is None or clock.greatest < 0 or clock.last_frame is None:
            return FOREVER
        return clock.last_frame + max(time - clock.greatest, clock.idle_after)
