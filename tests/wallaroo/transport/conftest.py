from __future__ import annotations

import time

import pytest
from listening import Edge

from wallaroo.transport.threads import LoopThread


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


@pytest.fixture
def edge(loop_thread):
    edges = []

    def make(*names, **options):
        edges.append(Edge(loop_thread, *(names or ["a"]), **options))
        return edges[-1]

    yield make
    for each in edges:
        each.close()
