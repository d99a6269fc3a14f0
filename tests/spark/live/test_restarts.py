"""Runs that end, and runs that go on from their checkpoints: each has a Spark of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from counted import counting, send
from live_on_spark import PATIENCE, jvm_of, options
from receiving import eventually

pytestmark = pytest.mark.alone

EXAMPLES = Path(__file__).parents[3] / "examples"
COMMAND = str(Path(sys.executable).with_name("wallaroo"))


def test_stop_1_and_dead_4_a_start_meets_what_the_log_has(spark_engine, receiver, tmp_path):
    dead = tmp_path / "dead.jsonl"
    given = {"on_error": "stop", "dead_letters": dead}
    # The timeout holds while Spark comes up, too.
    handle = spark_engine.serve(
        counting(receiver.port), options(tmp_path, stop_timeout=0.1, **given)
    )
    send(handle, "a", "bad", "a")
    handle.stop()
    summary = handle.wait(PATIENCE)
    assert summary.exit_code == 1
    assert summary.problem == "the stop was given up after 0.1 s"
    assert summary.unprocessed == 3
    assert b"".join(receiver.so_far) == b""
    handle = spark_engine.serve(counting(receiver.port), options(tmp_path, **given))
    eventually(lambda: jvm_of(os.getpid()), PATIENCE)
    jvm = jvm_of(os.getpid())
    summary = handle.wait(PATIENCE)
    assert summary.exit_code == 1
    assert "step 'number' of pipeline 'p', message 1" in summary.problem
    assert receiver.everything() == b"a 1\n"
    assert len(dead.read_text().splitlines()) == 1
    assert not psutil.pid_exists(jvm)


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
            jvm = None
            while jvm is None:
                jvm = jvm_of(process.pid)
        finally:
            process.kill()
    eventually(lambda: not psutil.pid_exists(jvm))
