"""An engine that is served."""

import pytest
from wallaroo_reference.engine import ReferenceEngine

from wallaroo.engine import ServeOptions


@pytest.fixture
def serve():
    """Serve an application and make sure that it has ended."""
    handles = []

    def start(application, **options):
        handles.append(ReferenceEngine().serve(application, ServeOptions(**options)))
        return handles[-1]

    yield start
    for handle in handles:
        if handle.wait(0) is None:
            handle.kill()
