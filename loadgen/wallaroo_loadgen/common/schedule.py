"""Open-loop schedules: when each message is to be sent, whatever the target does.

A schedule is a rate over time plus a way of arriving. The rate is a list of segments in which it
goes linearly from one value to another; its integral says how many messages are due by a time, and
the integral's inverse when message `i` is due. So sender and receiver work out the same intended
time from a message's number alone: nothing needs to be sent along, and nothing grows with the run.

>>> schedule = Schedule.parse("constant", rate=1000, warmup=0, duration=2, cooldown=0)
>>> stream = schedule.stream(share=0.5, phase=0.0, seed=7)
>>> stream.total, stream.intended(np.array([0, 1, 999])).tolist()
(1000, [0, 2000000, 1998000000])
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Floats = NDArray[np.float64]

NS = 1_000_000_000

_POISSON_GAPS = 1 << 16
"""Gaps are drawn once and repeated, so that any message's time is arithmetic."""

HELP = """\
constant                evenly spaced (the default)
steps:0.25,0.5,1        equal parts of the duration at these multiples of --rate
ramp:0.1,1              from the first to the second multiple of --rate, linearly
burst:5,0.1,2           5 times --rate for 0.1 s, every 2 s
poisson                 random arrivals at --rate; also added to another: ramp:0.1,1+poisson
"""


class ScheduleError(ValueError):
    """A schedule that cannot be read; the message says what is expected."""


@dataclass(frozen=True)
class Segment:
    """`seconds` during which the rate goes from `start` to `end` messages a second."""

    seconds: float
    start: float
    end: float


@dataclass(frozen=True)
class Schedule:
    """The rate of a whole run: warm-up, measured part and cool-down in one list of segments.

    Args:
        segments: in order, from the run's start.
        poisson: whether arrivals are random (exponential gaps) or evenly spaced.
        warmup: seconds at the start that are not measured.
        duration: seconds that are.
        offered: messages a second in the measured part, on average.
    """

    segments: tuple[Segment, ...]
    poisson: bool
    warmup: float
    duration: float
    offered: float

    @classmethod
    def parse(
        cls, text: str, *, rate: float, warmup: float, duration: float, cooldown: float
    ) -> Schedule:
        """Read a schedule as the command line gives it (see `HELP`).

        Raises:
            ScheduleError: with what is expected.
        """
        for name, value in (("rate", rate), ("duration", duration)):
            if not (value > 0 and math.isfinite(value)):
                raise ScheduleError(f"the {name} is a number above 0, not {value:g}")
        for name, value in (("warm-up", warmup), ("cool-down", cooldown)):
            if not (value >= 0 and math.isfinite(value)):
                raise ScheduleError(f"the {name} is 0 seconds or more, not {value:g}")
        parts = [part.strip() for part in text.split("+")]
        poisson = "poisson" in parts
        shapes = [part for part in parts if part != "poisson"]
        if len(shapes) > 1:
            raise ScheduleError(f"a schedule has one shape, not {' and '.join(shapes)}")
        measured = _shape(shapes[0] if shapes else "constant", rate, duration)
        segments = (
            Segment(warmup, measured[0].start, measured[0].start),
            *measured,
            Segment(cooldown, measured[-1].end, measured[-1].end),
        )
        kept = tuple(segment for segment in segments if segment.seconds > 0)
        offered = sum((part.start + part.end) / 2 * part.seconds for part in measured) / duration
        return cls(kept, poisson, warmup, duration, offered)

    @property
    def seconds(self) -> float:
        """Length of the run in seconds, warm-up and cool-down included."""
        return sum(segment.seconds for segment in self.segments)

    def stream(self, share: float, phase: float, seed: int) -> StreamSchedule:
        """Return the schedule of one connection, which sends `share` of all messages.

        Args:
            share: the part of the rate, above 0 and at most 1.
            phase: 0 to 1, how far into its first gap the connection starts, so that the messages
                of several do not come all at once.
            seed: of the random arrivals.
        """
        return StreamSchedule(self, share, phase, seed)


class StreamSchedule:
    """When one connection's messages are due, in nanoseconds from the run's start."""

    def __init__(self, schedule: Schedule, share: float, phase: float, seed: int) -> None:
        segments = schedule.segments
        self._phase = phase
        self._lengths: Floats = np.array([segment.seconds for segment in segments])
        self._starts: Floats = np.concatenate([[0.0], np.cumsum(self._lengths)])
        self._rates: Floats = np.array([segment.start * share for segment in segments])
        ends: Floats = np.array([segment.end * share for segment in segments])
        self._slopes: Floats = (ends - self._rates) / self._lengths
        self._due: Floats = np.concatenate(
            [[0.0], np.cumsum((self._rates + ends) / 2 * self._lengths)]
        )
        self._arrivals: Floats | None = None
        if schedule.poisson:
            gaps = np.random.default_rng([seed, 1]).exponential(size=_POISSON_GAPS)
            times = np.cumsum(gaps)
            self._arrivals = times * (_POISSON_GAPS / times[-1])
        self.total = self._count(float(self._due[-1]))
        self.measured_from = round(schedule.warmup * NS)
        self.measured_to = round((schedule.warmup + schedule.duration) * NS)

    def intended(self, messages: Int64s) -> Int64s:
        """Return the times at which these messages (numbers from 0) are due."""
        position = self._position(messages)
        segment = np.searchsorted(self._due, position, side="right") - 1
        segment = np.minimum(segment, len(self._lengths) - 1)
        into = position - self._due[segment]
        rate = self._rates[segment]
        root = np.sqrt(np.maximum(rate * rate + 2 * self._slopes[segment] * into, 0.0))
        # 2·into / (rate + root) solves rate·t + slope·t²/2 = into without cancelling at slope 0.
        seconds = np.divide(2 * into, rate + root, out=np.zeros_like(into), where=into > 0)
        return ((self._starts[segment] + seconds) * NS).astype(np.int64)

    def _position(self, messages: Int64s) -> Floats:
        """Return where on the axis of due messages these come: evenly spaced, or at random."""
        if self._arrivals is None:
            return messages.astype(np.float64) + self._phase
        rounds, rest = np.divmod(messages, _POISSON_GAPS)
        position: Floats = rounds * float(_POISSON_GAPS) + self._arrivals[rest]
        return position

    def _count(self, due: float) -> int:
        """Return how many messages come before `due` on that axis."""
        if self._arrivals is None:
            return max(0, math.ceil(due - self._phase - 1e-9))
        rounds, rest = divmod(due, float(_POISSON_GAPS))
        return int(rounds) * _POISSON_GAPS + int(np.searchsorted(self._arrivals, rest))


def _shape(text: str, rate: float, duration: float) -> list[Segment]:
    name, _, rest = text.partition(":")
    if name == "constant" and not rest:
        return [Segment(duration, rate, rate)]
    if name == "steps":
        values = _numbers(text, rest)
        return [Segment(duration / len(values), value * rate, value * rate) for value in values]
    if name == "ramp":
        start, end = _numbers(text, rest, 2)
        return [Segment(duration, start * rate, end * rate)]
    if name == "burst":
        return _bursts(text, rest, rate, duration)
    raise ScheduleError(f"no schedule is called {text!r}; there are:\n{HELP}")


def _bursts(text: str, rest: str, rate: float, duration: float) -> list[Segment]:
    times, width, period = _numbers(text, rest, 3)
    if not 0 < width < period:
        raise ScheduleError(f"{text}: a burst of {width:g} s does not fit into {period:g} s")
    if duration / period > 100_000:
        raise ScheduleError(f"{text}: more than 100,000 bursts in {duration:g} s")
    segments: list[Segment] = []
    left = duration
    while left > 1e-9:
        for seconds, factor in ((period - width, 1.0), (width, times)):
            part = min(seconds, left)
            if part > 1e-9:
                segments.append(Segment(part, factor * rate, factor * rate))
            left -= part
    return segments


def _numbers(text: str, rest: str, count: int | None = None) -> list[float]:
    try:
        values = [float(item) for item in rest.split(",")]
    except ValueError:
        raise ScheduleError(f"{text!r}: numbers are expected after the colon:\n{HELP}") from None
    if count is not None and len(values) != count:
        raise ScheduleError(f"{text!r}: {count} numbers are expected after the colon:\n{HELP}")
    if not all(math.isfinite(value) and value >= 0 for value in values) or not any(values):
        raise ScheduleError(f"{text!r}: the numbers are 0 or more, and not all 0")
    return values
