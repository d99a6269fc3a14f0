"""The simulated machine's time, its chances, and the life of the process that runs on it."""

from __future__ import annotations

import heapq
import itertools
import zlib
from collections.abc import Callable
from random import Random

STEP = 20e-6  # seconds that a call to the system takes
MOST_STEPS = 60_000  # of one life; a life that takes more goes round in circles
FIRST_DESCRIPTOR = 1_000_000  # no process has as many real ones
_EPOCH = 1_700_000_000_000_000_000  # nanoseconds since 1970 when simulated time is 0


class Crash(BaseException):
    """The simulated process is dead. Whatever it still calls raises this and does nothing."""


class Broken(Exception):
    """A promise was broken; the text says which and how."""


class World:
    """Time, chance and life.

    Args:
        seed: decides everything that the plan does not.

    Attributes:
        now: simulated seconds.
        dead: the process has crashed and no other has been started.
        life: number of the process that runs, from 0.
        steps: of this life so far.
        trace: a checksum of all steps, to compare two runs.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.now = 1.0
        self.dead = True
        self.life = -1
        self.steps = 0
        self.trace = 0
        self.crash_at: int | None = None
        self._crash_in = ""
        self._counted = 0  # of the steps that `crash_at` counts
        self._clock_is_off = 0  # nanoseconds
        self._events: list[tuple[float, int, Callable[[], None], bool]] = []
        self._numbers = itertools.count()
        self._descriptors = itertools.count(FIRST_DESCRIPTOR)

    def chance(self, *names: object) -> Random:
        """Return a source of chance of its own for what is named.

        To leave out one part of a plan does not change the chances of another.
        """
        return Random(repr((self.seed, *names)))

    def descriptor(self) -> int:
        """Return the number of a new descriptor; none is used twice."""
        return next(self._descriptors)

    def time_ns(self) -> int:
        """Return nanoseconds since 1970, as the machine's clock has them: it may go back."""
        return _EPOCH + int(self.now * 1e9) + self._clock_is_off

    def begin(self, crash_at: int | None, crash_in: str = "") -> None:
        """Begin a life that crashes at a step; `None`: it does not.

        Args:
            crash_at: number of the step, from 1.
            crash_in: only steps of this name count; empty: all do.
        """
        self.life += 1
        if (chance := self.chance("clock", self.life)).random() < 0.2:
            self._clock_is_off = chance.randint(-500_000_000, 500_000_000)
        self.dead = False
        self.steps = self._counted = 0
        self.crash_at, self._crash_in = crash_at, crash_in

    def crash_soon(self) -> None:
        """Have the life end at its next step."""
        self.crash_at, self._crash_in = self._counted + 1, ""

    def crash_now(self) -> Crash:
        """End the life; raise what is returned."""
        self.dead = True
        return Crash()

    def step(self, what: str) -> bool:
        """Note a step, and return whether the process dies in the middle of it.

        Raises:
            Crash: the process is dead, and does nothing.
            Broken: this life never ends.
        """
        if self.dead:
            raise Crash
        self.steps += 1
        self.now += STEP
        self.trace = zlib.crc32(what.encode(), self.trace)
        if self._crash_in in {"", what}:
            self._counted += 1
            if self._counted == self.crash_at:
                self.dead = True
                return True
        if self.steps > MOST_STEPS:
            raise Broken(f"the engine has not come to an end after {MOST_STEPS} steps")
        return False

    def pass_time(self, seconds: float) -> None:
        """Let the process be busy for so long; its peers are not."""
        end = self.now + seconds
        while beside := [one for one in self._events if one[0] <= end and one[3]]:
            event = min(beside)
            self._events.remove(event)
            heapq.heapify(self._events)
            self.now = max(self.now, event[0])
            event[2]()
        self.now = end

    def call(self, what: str) -> None:
        """Note a step that happens whole or not at all.

        Raises:
            Crash: the process died before it.
        """
        if self.step(what):
            raise Crash

    # -- what will happen --------------------------------------------------------------------------

    def at(self, delay: float, event: Callable[[], None]) -> None:
        """Have something happen in `delay` seconds, and not while user code is busy."""
        heapq.heappush(self._events, (self.now + delay, next(self._numbers), event, False))

    def beside(self, delay: float, event: Callable[[], None]) -> None:
        """Have something happen in `delay` seconds beside the process, whatever that does."""
        heapq.heappush(self._events, (self.now + delay, next(self._numbers), event, True))

    def let_happen(self, until: float) -> bool:
        """Let the first thing happen that is due until then, and return whether there was one."""
        if not self._events or self._events[0][0] > until:
            return False
        at, _, event, _ = heapq.heappop(self._events)
        self.now = max(self.now, at)
        event()
        return True

    def settle(self, seconds: float) -> None:
        """Let time pass while no process runs."""
        end = self.now + seconds
        while self.let_happen(end):
            pass
        self.now = max(self.now, end)
