"""When a stop is given up (stop-1)."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from wallaroo.engine import ServeOptions
from wallaroo.transport.stop_clock import StopClock


def test_it_says_the_seconds_that_it_waited_and_not_those_that_a_signal_would_have_had():
    edges = SimpleNamespace(written=0, pending=False)
    options = ServeOptions(stop_timeout=0.1)
    clock = StopClock(options, None, edges, lambda: 0, least=lambda: 0.2)
    clock.input_ended(None)
    assert not asyncio.run(clock.in_time(asyncio.sleep(60)))
    assert clock.given_up(3).startswith("the stop was given up after 0.2 s, with 3 frames")
