"""Locust as the control plane, in processes of its own: gevent must not reach this one."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from load_runs import LOCUSTFILE
from ports import free_port
from receiving import eventually
from running import ran

RATE, SECONDS = 500, 2.5  # warm-up 0.5, measured 1.5, cool-down 0.5


def command(target: int, listen: int, *options: str, file: Path = LOCUSTFILE) -> list[str]:
    fixed = f"--workload echo --to 127.0.0.1:{target} --listen 127.0.0.1:{listen} --rate {RATE}"
    times = "--duration 1.5 --warmup 0.5 --cooldown 0.5 --drain 2 --only-summary --headless"
    program = [sys.executable, "-m", "locust", "-f", str(file)]
    return [*program, *fixed.split(), *times.split(), *options]


def run_locust(target: int, listen: int, *options: str, **more: Any) -> Any:
    words = command(target, listen, *options, **more)
    return ran(words)


def figures(path: Path) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(path.read_text())["runs"][0]
    return run


def test_counts_of_two_processes_agree_exactly(
    start_target: Callable[..., int], tmp_path: Path
) -> None:
    listen, port = free_port(), str(free_port())
    options = ["--processes", "2", "--master-bind-port", port, "--master-port", port]
    path = tmp_path / "run.json"
    done = run_locust(start_target(listen), listen, *options, "--load-json", str(path))
    run = figures(path)
    counts = run["counts"]
    assert counts["scheduled"] == counts["sent"] == counts["expected"] == RATE * SECONDS
    assert counts["received"] == counts["distinct"] == counts["sent"]
    assert run["latency"]["count"] == run["lateness"]["count"] == RATE * 1.5
    others = [reason for reason in run["invalid"] if not reason.startswith("sender lateness")]
    assert others == []  # lateness is the machine's affair, anything else would be ours
    assert done.returncode == (4 if run["invalid"] else 0), done.stderr
    # What the workers say for themselves is what the master has.
    sent = re.findall(r"sender (\d): (\d+) messages sent", done.stderr)
    assert sorted(number for number, _ in sent) == ["0", "1"]
    assert sum(int(count) for _, count in sent) == counts["sent"]
    # Locust's own table has the same number of samples.
    row = re.search(r"^latency +echo +(\d+) ", done.stdout + done.stderr, re.MULTILINE)
    assert row is not None
    assert int(row[1]) == run["latency"]["count"]


def test_users_do_not_change_the_rate_and_a_lost_output_decides_the_exit_code(
    start_target: Callable[..., int], tmp_path: Path
) -> None:
    listen, path = free_port(), tmp_path / "run.json"
    target = start_target(listen, "--drop", "50")
    done = run_locust(target, listen, "-u", "7", "--slo", "p50<1us", "--load-json", str(path))
    assert done.returncode == 4
    run = figures(path)
    assert run["counts"]["sent"] == RATE * SECONDS
    assert run["counts"]["missing"] == 25
    assert [slo["met"] for slo in run["slos"]] == [False]
    assert "25 missing" in done.stderr


def test_what_cannot_be_meant_is_exit_2() -> None:
    done = run_locust(1, free_port(), "--slo", "p99 fast")
    assert done.returncode == 2
    assert "an SLO is a bound on latency" in done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_leaves_a_partial_report(
    start_target: Callable[..., int],
    tmp_path: Path,
) -> None:
    listen, path, mark = free_port(), tmp_path / "run.json", tmp_path / "mark"
    target = start_target(listen, "--mark", str(mark))
    words = command(target, listen, "--load-json", str(path), "--duration", "60")
    with subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        eventually(mark.exists)
        process.send_signal(signal.SIGINT)
        errors = process.communicate(timeout=60)[1]
    assert process.returncode == 130, errors
    run = figures(path)
    assert run["partial"]
    assert 0 < run["counts"]["sent"] < run["counts"]["scheduled"]
    assert run["counts"]["received"] == run["counts"]["expected"]


INTERRUPTED_THERE = """
import os, signal
from wallaroo_loadgen.control.conductor import Collector
from wallaroo_loadgen.with_locust.runs import LoadUser, install

install()
added = Collector.add

def add(self, node, report):
    Collector.add = added
    os.kill(os.getpid(), signal.SIGINT)
    added(self, node, report)

Collector.add = add
"""


def test_ctrl_c_while_the_run_itself_works_leaves_a_report_too(
    start_target: Callable[..., int], tmp_path: Path
) -> None:
    """Python raises `KeyboardInterrupt` wherever it is: in the run, it would end it unreported."""
    listen, path, file = free_port(), tmp_path / "run.json", tmp_path / "locustfile.py"
    file.write_text(INTERRUPTED_THERE)
    options = ("--load-json", str(path), "--duration", "60")
    done = run_locust(start_target(listen), listen, *options, file=file)
    assert done.returncode == 130, done.stderr
    assert figures(path)["partial"]


def test_the_help_names_our_options() -> None:
    program = [sys.executable, str(LOCUSTFILE), "--help"]
    done = ran(program, check=True)
    assert "--duration DURATION" in done.stdout
    assert "--web-host <ip>" in done.stdout  # and Locust's own
