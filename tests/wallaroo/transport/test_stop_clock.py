"""When a stop is given up (stop-1)."""

from __future__ import annotations

import asyncio
import io
from types import SimpleNamespace

import pytest

from wallaroo.engine import ServeOptions
from wallaroo.transport.stop_clock import StopClock


@pytest.mark.parametrize(
    ("unprocessed", "pending", "stdout", "in_time"),
    [
        (3, 0, None, True),  # the engine is at work
        (3, 5, None, False),  # it waits for a sink's peer
        (0, 5, None, False),
        (0, 5, io.BytesIO(), True),  # who reads the pipe may be slow
        (0, 0, None, False),  # what is left to do is the engine's own
    ],
)
def test_the_end_of_the_input_has_no_limit_but_for_a_peer(unprocessed, pending, stdout, in_time):
    def ended(*, asked: bool, seconds: float) -> bool:
        edges = SimpleNamespace(written=0, pending=pending)
        options = ServeOptions(stop_timeout=0.1, stdout=stdout)
        clock = StopClock(options, _Loop(), edges, lambda: 0, lambda: unprocessed)
        clock.input_ended(None)
        if asked:
            clock.request()
        return asyncio.run(clock.in_time(asyncio.sleep(seconds)))

    assert ended(asked=False, seconds=0.5 if in_time else 60) == in_time
    assert not ended(asked=True, seconds=60)


class _Loop:
    """A loop in this thread."""

    def post(self, call):
        call()
