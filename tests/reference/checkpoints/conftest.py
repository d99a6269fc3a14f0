"""Served applications with checkpoints."""

import pytest


@pytest.fixture
def serve(serve, tmp_path):
    """Serve an application from one checkpoint; `own` are further options of the engine's own."""

    def with_checkpoint(application, isolation="trusting", *, own=None, **options):
        own = {"checkpoint": tmp_path / "c", "checkpoint_interval": 0.01, **(own or {})}
        return serve(application, isolation=isolation, options=own, **options)

    return with_checkpoint
