"""Ticks: when time alone makes something due, the driver says so in the input log (time-1).

Workers hold the windows. With each micro-batch they report the arrival time at which the next one
fires if nothing comes. Every record moves time, so a tick is written only when all that was
received is processed and that time has come. So each tick makes something fire, and no micro-batch
is started for nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from wallaroo.records import Tick

_LOOK = 0.05  # most seconds between looks at the clock, which may be set


async def write_ticks(
    clock: Callable[[], int],
    due: Callable[[], int | None],
    backlog: Callable[[], int],
    take: Callable[[Tick], None],
) -> None:
    """Write ticks until cancelled.

    Args:
        clock: returns the time, in nanoseconds since 1970.
        due: returns when something is due, once all that was received is processed.
        backlog: returns the number of records that are not processed.
        take: takes a tick; from then on it is in the backlog.
    """
    while True:
        at = due()
        now = clock()
        if at is not None and at <= now and not backlog():
            take(Tick(now))
        wait = _LOOK if at is None or at <= now else min((at - now) / 1e9, _LOOK)
        await asyncio.sleep(wait)
