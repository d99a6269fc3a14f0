"""`wallaroo run --metrics`: a real process, asked over HTTP while it runs."""

import contextlib
import json
import re
import signal
import socket
import urllib.error
import urllib.request

import pytest
from receiving import eventually
from running import wallaroo

from wallaroo.frames import frames


@pytest.fixture
def live(run):
    """A run with a live page, and what asks for its figures."""

    def live(*arguments):
        process = run("--metrics", "127.0.0.1:0", *arguments)
        page = re.search(r"metrics at (http://127\.0\.0\.1:\d+)/", process.errors)[1]

        def figures(path="/api"):
            with urllib.request.urlopen(page + path, timeout=30) as answer:
                return json.load(answer)

        return process, figures

    return live


@pytest.mark.parametrize("mode", [(), ("--isolated",)])
def test_the_figures_of_a_run_are_served_while_it_runs(live, mode):
    process, figures = live(*mode)
    with process.connect() as sender:
        sender.sendall(frames([b"a", b"b", b"\xff"]))
        eventually(lambda: figures()["sinks"][0]["written"] == 2)
        found = figures()
        assert found["sources"][0]["frames"] == 3
        assert found["dead_letters"] == 1
        assert figures("/ready")["ready"]
    process.process.send_signal(signal.SIGTERM)
    assert process.wait()[0] == 0


def test_the_page_works_while_user_code_keeps_the_loop(live):
    process, figures = live()
    with process.connect() as sender:
        sender.sendall(frames([b"hang"]))
        eventually(lambda: figures()["sources"][0]["frames"] == 1)

        def named():
            with contextlib.suppress(urllib.error.HTTPError):
                figures("/ready")
                return False
            text = figures()["verdict"]["text"]
            return re.search(r"app\.py, line 1[45], in obey has not returned", text)

        eventually(named)


def test_a_port_in_use_ends_it_before_it_listens(app_file):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        options = ("--metrics", address, "--in", "x:0", "--out", address)
        done = wallaroo("run", app_file, *options)
    assert done.returncode == 1
    said = f"wallaroo: the figures cannot be served at {address}: Address already in use"
    assert said in done.stderr.decode()
    assert b"listening" not in done.stderr
