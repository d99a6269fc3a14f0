from __future__ import annotations

import pytest
from kafka_broker import NoBrokerError, broker


@pytest.fixture(scope="session")
def kafka():
    """One broker for all tests that do it no harm."""
    try:
        with broker() as made:
            yield made
    except NoBrokerError as error:
        pytest.skip(str(error))
