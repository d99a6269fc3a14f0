from __future__ import annotations

import pytest
from spark_runs import Receiver


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()
