"""Runs that have a Spark of their own, which is not there."""

import pytest
from counted import counting
from live_on_spark import PATIENCE, options

pytestmark = pytest.mark.alone


def test_a_master_that_is_not_there_is_named(spark_engine, receiver, monkeypatch, caplog):
    monkeypatch.setattr("wallaroo_spark.jvm.session._REACHED", 0.5)
    caplog.set_level("INFO")
    own = {"master": "spark://127.0.0.1:1"}
    summary = spark_engine.serve(counting(receiver.port), options(own=own)).wait(PATIENCE)
    assert "connecting to Spark's master spark://127.0.0.1:1, for " in caplog.text
    assert summary.problem.startswith("Spark's master spark://127.0.0.1:1 cannot be reached, after")
