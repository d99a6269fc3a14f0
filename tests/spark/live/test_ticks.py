"""When a tick is written, and when not; the clock is the test's."""

from __future__ import annotations

import asyncio

from wallaroo_spark.live.intake import write_ticks

from wallaroo.records import Tick


class Run:
    """What `write_ticks` is told, and what it has written."""

    def __init__(self):
        self.now, self.due, self.backlog = 0, None, 0
        self.ticks: list[Tick] = []
        self.looks = 0

    def clock(self):
        self.looks += 1
        return self.now

    def take(self, tick):
        self.ticks.append(tick)
        self.backlog = 1

    async def looked(self, times=3):
        """Wait until the clock has been looked at so many times more."""
        until = self.looks + times
        while self.looks < until:
            await asyncio.sleep(0.001)


def test_time_1_a_tick_is_written_once_when_something_is_due_and_nothing_waits():
    async def scenario():
        run = Run()
        writing = asyncio.create_task(
            write_ticks(run.clock, lambda: run.due, lambda: run.backlog, run.take)
        )
        run.now = 10**9
        await run.looked()
        assert run.ticks == []  # nothing is due at any time
        run.due = 10**9 + 1
        await run.looked()
        assert run.ticks == []  # it is due later
        run.now, run.backlog = 2 * 10**9, 1
        await run.looked()
        assert run.ticks == []  # what waits moves time too
        run.backlog = 0
        await run.looked()
        assert run.ticks == [Tick(2 * 10**9)]  # and no other while that one waits
        run.due, run.backlog = None, 0
        await run.looked()
        assert len(run.ticks) == 1
        writing.cancel()

    asyncio.run(scenario())
