"""`wallaroo top`: what a run does, in a terminal and in a pipe."""

from __future__ import annotations

import json
import os
import pty
import socket
import subprocess
import sys

import pytest
from counted import line, text

import wallaroo
from wallaroo.cli.main import main
from wallaroo.metrics.registry import Registry
from wallaroo.monitor.server import Monitor
from wallaroo.trace import DeadLetter, Reason

NASTY = "a step\n\x1b[31m 'named' so"


@wallaroo.computation(name=NASTY)
def nasty(message):
    return message


@pytest.fixture
def monitor():
    builder = wallaroo.ApplicationBuilder("shown")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, text)).to(nasty)
    builder.to_stateful(count, Count, "counts")
    application = builder.to_sink(wallaroo.TCPSinkConfig("127.0.0.1", 1, line)).build()
    registry = Registry(application, "reference")
    registry.state = "running"
    registry.sources["p"].frames = 12345
    registry.nodes[1].time.add([5_000_000] * 3)
    registry.partitions["counts"].add_visits({(b"t\0\0\0\0",): 3}, 1)
    letter = DeadLetter((1,), "p", "p", NASTY, 0, None, None, Reason.RAISED, "E", NASTY, b"x")
    registry.add_dead_letters([letter])
    monitor = Monitor(registry, "127.0.0.1", 0)
    monitor.start()
    yield monitor
    monitor.close()


class Count:
    pass


@wallaroo.state_computation(name="count")
def count(message, state):
    return message, True


def test_in_a_pipe_it_prints_the_figures_once(monitor, capsys):
    assert main(["top", str(monitor.address[1])]) == 0
    shown = capsys.readouterr().out
    assert "shown on the reference engine, running" in shown
    assert "12,345" in shown
    assert "5 ms" in shown
    assert "() 100%" in shown
    assert "Sink p/0 is away" in shown
    assert "\x1b" not in shown
    assert r"a step\n\x1b[31m" in shown


def test_as_json_it_is_what_the_application_gives(monitor, capsys):
    assert main(["top", f"127.0.0.1:{monitor.address[1]}", "--json", "--times", "2"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["application"] == second["application"] == "shown"


def test_on_a_terminal_it_is_live(monitor):
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "wallaroo", "top", str(monitor.address[1])]
    environment = {**os.environ, "COLUMNS": "160", "LINES": "40", "TERM": "xterm"}
    with subprocess.Popen(
        [*command, "--times", "2", "--interval", "0.1"], stdout=follower, env=environment
    ) as process:
        os.close(follower)
        shown = b""
        while True:
            try:
                shown += os.read(leader, 65536)
            except OSError:  # the terminal is closed
                break
        assert process.wait(60) == 0
    os.close(leader)
    assert shown.count(b"shown on the reference engine") == 2
    assert rb"a step\n\x1b[31m" in shown


def test_where_nobody_answers_it_says_what_to_do(capsys):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    assert main(["top", str(port)]) == 1
    error = capsys.readouterr().err
    assert f"nobody answers at 127.0.0.1:{port}: Connection refused" in error
    assert "--metrics" in error
