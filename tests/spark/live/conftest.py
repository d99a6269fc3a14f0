"""What tests of live runs on Spark are given."""

from __future__ import annotations

import pytest
from receiving import Receiver


@pytest.fixture
def receiver():
    """A sink's peer."""
    made = Receiver()
    yield made
    made.close()
