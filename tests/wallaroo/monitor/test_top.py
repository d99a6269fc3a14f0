"""`wallaroo top`: what a run does, in a terminal and in a pipe."""

import json
import os
import pty
import re
import subprocess
import sys

from ports import free_port

from wallaroo.cli.main import main
from wallaroo.keys import partition_number
from wallaroo.text import escaped

from .conftest import NASTY

SHOWN = escaped(NASTY).encode("utf-8", "backslashreplace").decode()


def test_in_a_pipe_it_prints_the_figures_once(monitor, registry, capsys):
    registry.sources[NASTY].frames = 12_345
    (sink,) = registry.sinks.values()
    sink.connected = False
    assert main(["top", str(monitor.address[1])]) == 0
    shown = capsys.readouterr().out
    assert "on the reference engine, running" in shown
    assert "12,345" in shown
    assert "5 ms" in shown
    assert "7 25%" in shown
    at, skew = partition_number(7, 4), 3 / (4 / 4)
    assert at != partition_number(NASTY, 4)
    assert re.search(rf"\n{at} .* 1 +25% +7 25%\n", shown)
    assert re.search(rf" 4 +{skew:.2f} ", shown)
    assert "is away" in shown
    assert "\x1b" not in shown
    assert SHOWN in shown


def test_as_json_it_is_what_the_application_gives(monitor, capsys):
    assert main(["top", f"127.0.0.1:{monitor.address[1]}", "--json", "--times", "2"]) == 0
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["application"] == second["application"] == NASTY


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
    assert shown.count(b"on the reference engine") == 2
    assert rb"\x1b[31m" in shown


def test_where_nobody_answers_it_says_what_to_do(capsys):
    port = free_port()
    assert main(["top", str(port)]) == 1
    error = capsys.readouterr().err
    assert f"nobody answers at 127.0.0.1:{port}: Connection refused" in error
    assert "--metrics" in error
