"""What the Spark tests share: one session for all that harm nothing."""

from __future__ import annotations

import pytest

from wallaroo.engine import load_engine


@pytest.fixture(scope="session")
def spark_engine():
    """The engine; its session comes up with the first case and ends with the tests."""
    yield load_engine("spark")
    from wallaroo_spark.session import close_session

    close_session()


@pytest.fixture(scope="session")
def reference():
    """The engine whose answers are right."""
    return load_engine("reference")
