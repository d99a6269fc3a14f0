"""Runs that have a Spark of their own, which is not there or must not be left behind."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from counted import counting
from live_on_spark import PATIENCE, jvm_of, options
from receiving import eventually

pytestmark = pytest.mark.alone

EXAMPLES = Path(__file__).parents[3] / "examples"
COMMAND = str(Path(sys.executable).with_name("wallaroo"))


def test_a_master_that_is_not_there_is_named(spark_engine, receiver, monkeypatch, caplog):
    monkeypatch.setattr("wallaroo_spark.jvm.session._REACHED", 0.5)
    caplog.set_level("INFO")
    own = {"master": "spark://127.0.0.1:1"}
    summary = spark_engine.serve(counting(receiver.port), options(own=own)).wait(PATIENCE)
    assert "connecting to Spark's master spark://127.0.0.1:1, for " in caplog.text
    assert summary.problem.startswith("Spark's master spark://127.0.0.1:1 cannot be reached, after")


def test_the_jvm_does_not_outlive_us(receiver):
    command = [COMMAND, "run", str(EXAMPLES / "word_count.py"), "--engine", "spark"]
    command += ["--in", "127.0.0.1:0", "--out", f"127.0.0.1:{receiver.port}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            # The sink's log line may come before.
            assert any(b"listening on 127.0.0.1:" in process.stderr.readline() for _ in range(3))
            eventually(lambda: jvm_of(process.pid), PATIENCE)
            jvm = jvm_of(process.pid)
        finally:
            process.kill()
    eventually(lambda: not psutil.pid_exists(jvm))
