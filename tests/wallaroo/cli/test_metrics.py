"""`wallaroo run --metrics`: a real process, asked over HTTP while it runs."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from receiving import eventually

from wallaroo.frames import frames

APP = """
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()

@wallaroo.computation(name="obey")
def obey(text):
    while text == "hang":
        pass
    return text.upper()

@wallaroo.encoder
def encode(text):
    return text + "\\n"

def application_setup(args):
    (host, port), = wallaroo.tcp_parse_input_addrs(args)
    (out_host, out_port), = wallaroo.tcp_parse_output_addrs(args)
    builder = wallaroo.ApplicationBuilder("app")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig(host, port, decode)).to(obey)
    return builder.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode)).build()
"""


@pytest.fixture
def app(tmp_path):
    path = tmp_path / "app.py"
    path.write_text(APP)
    return path


@pytest.fixture
def sink():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


@contextlib.contextmanager
def running(app, sink, *arguments):
    """A run with a live page: its process, the page's address and the source's port."""
    out = f"127.0.0.1:{sink.getsockname()[1]}"
    command = [sys.executable, "-m", "wallaroo", "run", str(app), *arguments]
    command += ["--in", "127.0.0.1:0", "--out", out]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = ""
            while "listening on" not in said:
                line = process.stderr.readline()
                assert line, said
                said += line
            page = re.search(r"metrics at (http://127\.0\.0\.1:\d+)/", said)[1]
            yield process, page, int(said.strip().rpartition(":")[2])
        finally:
            process.kill()


def figures(page, path="/api"):
    with urllib.request.urlopen(page + path, timeout=30) as answer:
        return json.load(answer)


@pytest.mark.parametrize("mode", [(), ("--isolated",)])
def test_the_figures_of_a_run_are_served_while_it_runs(app, sink, mode):
    with running(app, sink, "--metrics", "0", *mode) as (process, page, port):
        with socket.create_connection(("127.0.0.1", port)) as sender:
            sender.sendall(frames([b"a", b"b", b"\xff"]))
            eventually(lambda: figures(page)["sinks"][0]["written"] == 2)
            found = figures(page)
            assert found["sources"][0]["frames"] == 3
            assert found["dead_letters"] == 1
            assert figures(page, "/ready")["ready"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_the_page_works_while_user_code_keeps_the_loop(app, sink):
    with running(app, sink, "--metrics", "127.0.0.1:0") as (process, page, port):
        with socket.create_connection(("127.0.0.1", port)) as sender:
            sender.sendall(frames([b"hang"]))
            eventually(lambda: figures(page)["sources"][0]["frames"] == 1)

            def named():
                with contextlib.suppress(urllib.error.HTTPError):
                    figures(page, "/ready")
                    return False
                return (
                    "app.py, line 10, in obey has not returned" in figures(page)["verdict"]["text"]
                )

            eventually(named)
        process.kill()


def test_a_port_in_use_ends_it_before_it_listens(app, sink):
    taken = f"127.0.0.1:{sink.getsockname()[1]}"
    done = subprocess.run(
        f"{sys.executable} -m wallaroo run {app} --metrics {taken} --in x:0 --out {taken}".split(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"wallaroo: the figures cannot be served at {taken}: Address alr")
