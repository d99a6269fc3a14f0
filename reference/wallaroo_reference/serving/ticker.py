"""Takes a tick when time alone makes something due (time-1)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from wallaroo.records import Tick
from wallaroo_reference.machine import Machine

_LOOK = 0.05  # seconds between looks at the clock while something will be due


class Ticker:
    """Watches the clock for a machine. Call its methods in the loop's thread.

    Args:
        machine: says when something is due.
        clock: returns the time, in nanoseconds since 1970.
        ticked: gets the tick.
        waits: whether records wait: they move time too, and need no tick.
    """

    def __init__(
        self,
        machine: Machine,
        clock: Callable[[], int],
        ticked: Callable[[Sequence[Tick]], None],
        waits: Callable[[], bool],
    ) -> None:
        self._machine = machine
        self._clock = clock
        self._ticked = ticked
        self._waits = waits
        self._timer: asyncio.TimerHandle | None = None

    def watch(self) -> None:
        """Look again when something is due, in place of any look before."""
        self.stop()
        due = self._machine.due()
        if due is not None:
            # The clock may be set, so it is read again from time to time.
            wait = min(max(0.0, (due - self._clock()) / 1e9), _LOOK)
            self._timer = asyncio.get_running_loop().call_later(wait, self._look)

    def stop(self) -> None:
        """Take no tick until `watch` is called."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        if self._waits():
            return  # once they are processed, `watch` is called
        now, due = self._clock(), self._machine.due()
        if due is not None and due <= now:
            self._ticked([Tick(now)])
        else:
            self.watch()
