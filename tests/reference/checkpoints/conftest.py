"""Served applications with checkpoints; what is left running is killed at a test's end."""

from __future__ import annotations

import pytest
from receiving import Receiver
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import ServeOptions


@pytest.fixture
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def serve(tmp_path):
    """Serve an application with the checkpoint `tmp_path/c`; `own` are the engine's options."""
    handles = []

    def start(application, isolation="trusting", *, own=None, **options):
        own = {"checkpoint": tmp_path / "c", "checkpoint_interval": 0.01, **(own or {})}
        options = ServeOptions(isolation=isolation, options=own, **options)
        handles.append(ReferenceEngine().serve(application, options))
        return handles[-1]

    def restart(handle):
        handles.append(handle.restart())
        return handles[-1]

    start.again = restart
    yield start
    for handle in handles:
        if handle.wait(0) is None:
            handle.kill()
