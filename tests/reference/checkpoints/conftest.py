"""Served applications with checkpoints; what is left running is killed at a test's end."""

import pytest
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import ServeOptions


class Served:
    """Serves applications with the checkpoint `directory`, and kills what is left running."""

    def __init__(self, directory):
        self.directory = directory
        self._handles = []

    def __call__(self, application, isolation="trusting", *, own=None, **options):
        """Serve; `own` are the engine's options."""
        own = {"checkpoint": self.directory, "checkpoint_interval": 0.01, **(own or {})}
        options = ServeOptions(isolation=isolation, options=own, **options)
        self._handles.append(ReferenceEngine().serve(application, options))
        return self._handles[-1]

    def again(self, handle):
        """Start a run again that was killed."""
        self._handles.append(handle.restart())
        return self._handles[-1]

    def close(self):
        for handle in self._handles:
            if handle.wait(0) is None:
                handle.kill()


@pytest.fixture
def serve(tmp_path):
    served = Served(tmp_path / "c")
    yield served
    served.close()
