from __future__ import annotations

import time

import pytest

from wallaroo.transport.loop_thread import LoopThread


@pytest.fixture
def loop_thread():
    thread = LoopThread("test")
    thread.start()
    yield thread
    assert thread.stop(10)


@pytest.fixture
def eventually():
    """Wait until a condition holds; how long it may take is no matter of the test."""

    def wait(condition, seconds=20.0):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "it did not come about"
            time.sleep(0.002)

    return wait
