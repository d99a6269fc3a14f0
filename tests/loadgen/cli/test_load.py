"""`wallaroo load` and `wallaroo compare` as a user types them.

A target that takes a second makes a run valid on a busy machine too: the sender may be late by a
tenth of that.
"""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import psutil
import pytest
from commands_here import Done, wallaroo_here
from ports import free_port
from receiving import eventually
from running import wallaroo

WALLAROO = [sys.executable, "-m", "wallaroo"]
TARGET = Path(__file__).parents[1] / "target.py"
TIMES = "--duration 1 --warmup 0.2 --cooldown 0.1 --drain 2 --wait 15"
SHORT = ["--rate", "400", *TIMES.split()]
SLOW = ("--delay", "1.0")


def load(*words: str) -> Done:
    """Run a load test as a user does, in a process that measures and nothing else."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    return wallaroo("load", *words, data="", env=environment)


def started(behaviour: str, *options: str, command: str = "{}") -> tuple[Done, int]:
    """Run a load test that starts its target; return what it said, and the target's port."""
    port = free_port()
    target = f"{sys.executable} {TARGET} --port {port} --sink {{listen}} {behaviour}"
    words = ["--to", f"127.0.0.1:{port}", "--listen", "127.0.0.1:0", *SHORT, *options]
    return load("echo", *words, "--start", command.format(target)), port


@pytest.fixture
def addresses(start_target: Callable[..., int]) -> Callable[..., list[str]]:
    """Return a function that starts a target and returns the arguments for it."""

    def start(*options: str) -> list[str]:
        listen = free_port()
        port = start_target(listen, *options)
        return ["--to", f"127.0.0.1:{port}", "--listen", f"127.0.0.1:{listen}"]

    return start


def test_a_good_run_is_exit_0_and_leaves_its_files(
    addresses: Callable[..., list[str]], tmp_path: Path
) -> None:
    files = {name: tmp_path / f"run.{name}" for name in ("json", "html", "hdr", "junit")}
    options = [word for name, path in files.items() for word in (f"--{name}", str(path))]
    done = load("echo", *addresses(*SLOW), *SHORT, "--slo", "p99<60s", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "sent 520 of 520 messages" in done.stdout
    assert "SLO p99<60s: met" in done.stdout
    assert "\x1b" not in done.stdout
    cases = ET.parse(files["junit"]).getroot().iter("testcase")
    assert [(case.get("name"), case[0].tag) for case in cases] == [
        ("valid", "system-out"),
        ("p99<60s", "system-out"),
    ]
    run = json.loads(files["json"].read_text())["runs"][0]
    assert run["latency"]["count"] == 400
    assert run["latency"]["min"] >= 999_000  # a histogram's class may begin a little below
    assert run["config"]["seed"] == 0
    assert run["machine"]["processors"] == os.cpu_count()
    assert "HistogramLogReader" not in files["hdr"].read_text()
    assert len(files["hdr"].read_text().splitlines()) == 4
    page = files["html"].read_text()
    assert "valid, SLOs met" in page
    assert page.count('<figure class="plot">') == 4
    again = wallaroo_here("compare", files["json"], files["json"])
    assert again.returncode == 6  # one run does not show how much runs differ


def test_a_missed_slo_is_exit_3(addresses: Callable[..., list[str]]) -> None:
    done = load("echo", *addresses(*SLOW), *SHORT, "--slo", "p50<1ms", "--slo", "max<90s")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "SLO p50<1ms: MISSED (1." in done.stdout
    assert "SLO max<90s: met" in done.stdout


def test_a_terminal_shows_the_run_while_it_goes_on(addresses: Callable[..., list[str]]) -> None:
    master, slave = pty.openpty()
    command = [*WALLAROO, "load", "echo", *addresses(), *SHORT]
    with subprocess.Popen(command, stdout=slave, stderr=slave) as process:
        os.close(slave)
        said = b""
        with contextlib.suppress(OSError):  # the terminal is closed
            while data := os.read(master, 65536):
                said += data
    os.close(master)
    assert process.returncode in {0, 4}  # 4: a machine so busy that the sender was late
    for words in ("backlog", "own lateness", "p99 over time"):
        assert words in said.decode()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--start /no/such --wait 1", "the application cannot be started: .*'/no/such'"),
        ("--listen SILENT --wait 0.5", "cannot listen at SILENT: Address already in use; --listen"),
        ("--to CLOSED --wait 0.5", r"nobody listens at CLOSED \(waited 0.5 s\)"),
        ("--wait 1", "no sink connected in 1 s"),
    ],
)
def test_a_run_that_cannot_be_made_says_why_in_one_line(options: str, words: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        places = {"SILENT": f"127.0.0.1:{silent.getsockname()[1]}"}
        places["CLOSED"] = f"127.0.0.1:{free_port()}"
        for name, place in places.items():
            options, words = options.replace(name, place), words.replace(name, place)
        to = [] if "--to" in options else ["--to", places["SILENT"]]
        listen = [] if "--listen" in options else ["--listen", "127.0.0.1:0"]
        done = wallaroo_here("load", "echo", *to, *listen, *options.split())
    assert done.returncode == 4
    assert re.search(f"^INVALID: {words}.*$", done.stdout, re.MULTILINE), done.stdout
    assert "Traceback" not in done.stderr


def test_a_rate_the_machine_cannot_send(addresses: Callable[..., list[str]]) -> None:
    done = load("echo", *addresses(), *SHORT, "--rate", "2e7", "--duration", "0.3", "--drain", "1")
    assert done.returncode == 4
    assert "INVALID:" in done.stdout
    assert "could be sent before the time was over" in done.stdout


def test_start_runs_the_application_and_ends_all_that_it_has_started() -> None:
    done, port = started("--delay 1", command="sh -c '{}; true'")
    assert done.returncode == 0, done.stdout + done.stderr
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port))


def test_an_application_that_ends_at_once_is_quoted() -> None:
    program = f"{sys.executable} -c 'import sys; sys.exit(\"no such thing\")'"
    words = ["--to", f"127.0.0.1:{free_port()}", "--listen", "127.0.0.1:0", "--wait", "600"]
    done = load("echo", *words, "--start", program)
    assert done.returncode == 5
    assert "TARGET ENDED: the application ended with exit 1: no such thing" in done.stdout


def test_ctrl_c_leaves_a_partial_report(
    addresses: Callable[..., list[str]], tmp_path: Path
) -> None:
    path, mark = tmp_path / "run.json", tmp_path / "mark"
    words = [
        "echo",
        *addresses("--mark", str(mark)),
        *SHORT,
        "--duration",
        "60",
        "--json",
        str(path),
    ]
    with subprocess.Popen(
        [*WALLAROO, "load", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        eventually(mark.exists)
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=30)
    assert process.returncode == 130, out + errors
    assert "PARTIAL: interrupted" in out
    run = json.loads(path.read_text())["runs"][0]
    assert run["partial"]
    assert 0 < run["counts"]["sent"] < run["counts"]["scheduled"]
    assert run["counts"]["received"] == run["counts"]["expected"] == run["counts"]["sent"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["echo"], "--to HOST:PORT says where"),
        (["--to", "h:1"], "name a workload"),
        (["tunnel", "--to", "h:1"], "no workload is called 'tunnel'"),
        (["echo", "--to", "nowhere"], "--to: 'nowhere' is not an address; write HOST:PORT"),
        (["echo", "--to", "h:1", "--to", "h:2"], "echo has 1 sources (source)"),
        (["echo", "--to", "h:1", "--rate", "0"], "the rate is a number above 0"),
        (["echo", "--to", "h:1", "--slo", "quick"], "an SLO is a bound"),
        (["echo", "--to", "h:1", "-o", "size"], "an option is NAME=VALUE"),
        (["echo", "--to", "h:1", "--repeat", "0"], "--repeat is at least 1"),
        (["echo", "--to", "h:1", "--json", "/no/such/x.json"], "no such directory"),
        (["echo", "--to", "h:1", "--workload", "x.py"], "not both"),
        (["--workload", "x.py", "--to", "h:1"], "no workload file /"),
        (["echo", "--to", "h:1", "--processes", "0"], "--processes is at least 1"),
        (["echo", "--to", "h:1", "--search", "--resolution", "1"], "above 0 and below 1"),
    ],
)
def test_what_cannot_be_meant_is_exit_2(words: list[str], message: str) -> None:
    done = wallaroo_here("load", *words)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stdout == ""


@pytest.mark.nightly("five runs; how a search closes in is in test_verdict, its command below")
def test_a_search_finds_where_the_target_stops_keeping_up(
    start_target: Callable[..., int], tmp_path: Path
) -> None:
    listen = free_port()
    # It takes 40,000 bytes a second: 400 messages of 100 bytes.
    port = start_target(listen, "--bytes-per-second", "40000", "--read", "4000")
    path = tmp_path / "search.json"
    words = ["--to", f"127.0.0.1:{port}", "--listen", f"127.0.0.1:{listen}", "-o", "size=100"]
    # Coarse: how it closes in on the limit is test_verdict's.
    times = "--duration 1.2 --warmup 0.3 --cooldown 0 --drain 1 --resolution 0.9"
    done = load("echo", *words, *times.split(), "--search", "--rate", "250", "--json", str(path))
    found = json.loads(path.read_text())["searches"][0]
    rates = [point["rate"] for point in found["points"]]
    assert rates[0] == 250
    # On a busy machine a step may fail for lateness; beyond its limit the target never passes.
    assert all(point["rate"] < 500 for point in found["points"] if point["good"])
    if found["best"] is not None:
        assert done.returncode == 0
        assert f"highest sustained rate: {found['best']:,.0f} messages/s" in done.stdout
        up_to = f"the target keeps pace up to {found['best']:,.0f} messages/s; at "
        assert up_to in done.stdout


def test_a_listener_that_closes_in_the_middle(
    start_target: Callable[..., int],
    tmp_path: Path,
) -> None:
    listen, mark = free_port(), tmp_path / "mark"
    port = start_target(listen, "--mark", str(mark))
    process: list[Done] = []
    words = ["--to", f"127.0.0.1:{port}", "--listen", f"127.0.0.1:{listen}"]
    thread = threading.Thread(
        target=lambda: process.append(load("echo", *words, *SHORT, "--duration", "60"))
    )
    thread.start()
    eventually(mark.exists)
    for child in psutil.Process().children():
        if {str(TARGET), f"127.0.0.1:{listen}"} <= set(child.cmdline()):
            child.kill()
    thread.join(60)
    done = process[0]
    assert done.returncode == 5
    assert re.search(r"TARGET ENDED: connection 0: the target closed .* after \d+ of", done.stdout)
    assert "the application's sink closed its connection" in done.stdout
    assert "this machine cannot" not in done.stdout


def test_a_target_that_crashes_is_not_a_machine_that_cannot_send(tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    done, _ = started("--crash-after 100", "--html", str(page))
    assert done.returncode == 5, done.stdout + done.stderr
    assert "TARGET ENDED: the application ended by SIGKILL" in done.stdout
    assert "this machine cannot" not in done.stdout
    assert "could be sent" not in done.stdout
    text = page.read_text()
    assert '<span class="badge bad">TARGET ENDED</span>' in text
    assert "the application ended by SIGKILL" in text


def test_a_search_ends_with_the_target() -> None:
    done, _ = started("--crash-after 100", "--search")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "did not keep pace at any rate that was tried; at 400 the application" in done.stdout
    assert done.stdout.count("400/s") == 1  # not tried again
