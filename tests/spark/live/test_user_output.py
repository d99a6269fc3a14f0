"""What user code prints and logs on a worker reaches the driver's standard error, with its step."""

from __future__ import annotations

import json
import logging
import subprocess
import sys

import pytest
import talking_app

from wallaroo import testing
from wallaroo.loading import load_application

pytestmark = pytest.mark.xdist_group("spark")


def run(*options):
    done = subprocess.run(
        [
            *(sys.executable, "-m", "wallaroo", "run", talking_app.__file__),
            *("--engine", "spark", "--stdin", "--stdout", "--stop-timeout", "120", *options),
        ],
        input=b"a\n",
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr.decode().splitlines()


def test_what_workers_print_and_log_is_json_line_by_line():
    results, lines = run("--log-json")
    assert results == b"a\n"
    assert not [line for line in lines if line.startswith("[") or line[:2].isdigit()]
    told = [json.loads(line) for line in lines if line.startswith("{")]
    told = [one for one in told if "summary" not in one]  # the last line
    said = [(one["logger"], one["level"], one.get("step"), one["message"]) for one in told]
    assert {
        ("wallaroo.printed", "info", "talking_app.py", "at import"),  # in the driver
        ("talking", "info", "first", "computed a"),
        ("talking", "info", "second", "computed a"),
        ("wallaroo.printed", "info", "add", "building"),
        ("wallaroo.printed", "info", "encode", "encoding"),
        ("talking", "error", "all ways", "it failed\n\x1b"),
    } <= set(said)
    assert not [one for one in said if one[1] == "debug"]
    (failed,) = [one for one in told if "exception" in one]
    assert failed["exception"].endswith("KeyError: 'a'")


def test_a_bounded_run_logs_what_its_workers_log(spark_engine, caplog, capsys):
    caplog.set_level(logging.INFO)
    application = load_application(talking_app.__file__)
    testing.run(application, {"p": [b"a"]}, engine="spark")
    logged = {
        (record.name, getattr(record, "step", ""), record.getMessage()) for record in caplog.records
    }
    assert {("talking", "first", "computed a"), ("talking", "second", "computed a")} <= logged
    assert r"[first] computing\x1b a" in capsys.readouterr().err.splitlines()
