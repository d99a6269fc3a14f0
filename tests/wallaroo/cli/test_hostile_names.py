"""Names may hold anything; no command gives a terminal the control characters in them."""

import re
import subprocess
import sys

import pytest
from ports import free_port
from running import wallaroo

from wallaroo.cli.main import main

APPLICATION = """
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    print("PRINTED")
    return int(payload)

@wallaroo.computation(name="STEP")
def step(number):
    return 1 // number

class Total:
    value = 0

@wallaroo.partition
def key(number):
    return "KEY"

@wallaroo.state_computation(name="COUNT")
def count(number, total):
    total.value += 1
    return total.value, True

@wallaroo.encoder
def encode(number):
    return b"%d" % number

def application_setup(args):
    (source,), (sink,) = [wallaroo.TCPSourceConfig(*at, decode)
        for at in wallaroo.tcp_parse_input_addrs(args)], [wallaroo.TCPSinkConfig(*at, encode)
        for at in wallaroo.tcp_parse_output_addrs(args)]
    builder = wallaroo.ApplicationBuilder("APP").new_pipeline("PIPE", source)
    return (builder.to(step).to_state_partition(count, Total, "STATES", key).to_sink(sink)).build()
"""
HOSTILE = re.compile(rb"\x1b|^hostile", re.M)
BESIDE = ["--in", "127.0.0.1:0", "--out", "127.0.0.1:1"]
RUN = ["run", "app.py", "--stdin", "--stdout", *BESIDE]
COMMANDS = [
    ["check", "app.py"],
    ["graph", "app.py"],
    ["graph", "app.py", "--compiled"],
    [*RUN, "--dead-letters", "DEAD", "--checkpoint", "c", "--record", "r", "--log-level", "debug"],
    [*RUN, "--isolated", "--on-error", "stop"],
    [*RUN, "--checkpoint", "DIR/c"],
    ["checkpoint", "c"],
    ["checkpoint", "c", "--entities"],
    ["checkpoint", "r"],
    ["rerun", "r", "app.py"],
    ["rerun", "r", "app.py", "--against", "other.py"],
    ["explain", "r", "app.py", "--output", "0"],
    ["explain", "r", "app.py", "--dead-letter", "0"],
    ["send", "--dead-letters", "DEAD", "--to", "a@127.0.0.1:1"],
    ["conform", "--app", "app.py", "--lines", "in.txt", "--cases", "20"],
    ["compare", "FILE", "in.txt"],
    ["load", "FILE", "--to", "127.0.0.1:1"],
]


def hostile(text):
    """Return a text whose words in capitals bring control characters and a line of their own."""
    return re.sub(r"(?<!-)\b[A-Z]{3,}\b", lambda word: f"{word[0]}\x1b[31m\nhostile", text)


@pytest.fixture
def folder(tmp_path):
    written = hostile(APPLICATION).replace("\x1b", r"\x1b").replace("\nhostile", r"\nhostile")
    (tmp_path / "app.py").write_text(written)
    (tmp_path / "other.py").write_text(written.replace("value += 1", "value += 2"))
    (tmp_path / "in.txt").write_text("1\nx\x1b\n0\n2\n")
    return tmp_path


def test_no_command_shows_control_characters(folder, monkeypatch, capfdbinary):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", sys.path[:])
    for words in COMMANDS:
        if words[0] == "run":
            data = (folder / "in.txt").read_bytes()
            done = wallaroo(*map(hostile, words), data=data)
            said = done.stdout + done.stderr
        else:
            main([*map(hostile, words)])
            said = b"".join(capfdbinary.readouterr())
        assert said, words
        assert not HOSTILE.search(said), (words, said)
        assert b"Traceback" not in said, (words, said)


def test_a_live_run_and_top_show_no_control_characters(folder):
    port = str(free_port())
    command = [sys.executable, "-m", "wallaroo", "run", "app.py", *BESIDE, "--metrics", port]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE) as process:
        try:
            said = b""
            while b"listening on" not in said:
                said += process.stderr.readline()
            done = wallaroo("top", port, "--times", "1")
        finally:
            process.terminate()
            said += process.communicate(timeout=60)[1]
    assert done.returncode == 0, done.stderr
    assert b"STEP" in done.stdout
    assert not HOSTILE.search(said + done.stdout + done.stderr)
