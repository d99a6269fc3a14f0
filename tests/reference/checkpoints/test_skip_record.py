"""``--skip-record``: a restart gets past a message that ends it, which becomes a dead letter."""

import base64
import json

import pytest
from running import wallaroo

APP = """
import sys
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()

class Numbers:
    def initial_value(self):
        return 1

    def apply(self, number):
        return number + 1 if number < 6 else None

@wallaroo.computation_multi(name="obey")
def obey(message):
    if message in ("exit", 3):
        sys.exit(7)
    if message == "much":
        return ["x" * 2**20] * 300
    return [message]

@wallaroo.encoder
def encode(message):
    return f"{message}\\n".encode()

def application_setup(args):
    (sink,) = wallaroo.tcp_parse_output_addrs(args)
    if "--numbers" in args:
        source = wallaroo.GenSourceConfig(Numbers())
    else:
        source = wallaroo.TCPSourceConfig(*wallaroo.tcp_parse_input_addrs(args)[0], decode)
    builder = wallaroo.ApplicationBuilder("app").new_pipeline("p", source).to(obey)
    return builder.to_sink(wallaroo.TCPSinkConfig(*sink, encode)).build()
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.py").write_text(APP)

    def run(*arguments, data=b""):
        done = wallaroo("run", "app.py", "--stdout", "--checkpoint", "c", *arguments, data=data)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    return run


def letters(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(("bad", "mode"), [("exit", ["--isolated"]), ("much", [])])
def test_the_message_that_ends_each_restart_is_left_out(run, tmp_path, bad, mode):
    options = ["--stdin", "--record", "r", *mode]
    code, out, err = run(*options, data=f"a\n{bad}\nb\n".encode())
    assert (code, out) == (1, "a\n")
    assert "leave this message out with --skip-record 1, which makes a dead letter of it" in err
    assert run(*options)[0] == 1
    skip = ["--skip-record", "1"]
    code, out, err = run(*options, *skip, "--dead-letters", "dead.json", data=b"c\n")
    assert (code, out) == (0, "a\nb\nc\n"), err
    (letter,) = letters(tmp_path / "dead.json")
    assert (letter["lineage"], letter["reason"], letter["error_type"]) == (
        [1],
        "decode",
        "SkippedRecordError",
    )
    assert base64.b64decode(letter["payload"]) == bad.encode()
    again = wallaroo("rerun", "r", "app.py", "--stdout", cwd=tmp_path)
    assert (again.returncode, again.stdout) == (1, b"a\n")
    again = wallaroo("rerun", "r", "app.py", "--stdout", *skip, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, b"a\nb\nc\n")
    # What is done with needs no option, and does not mind it.
    assert run(*options, *skip, data=b"d\n")[:2] == (0, "d\n")


def test_a_generator_goes_on_behind_the_value_that_is_left_out(run, tmp_path):
    code, out, _ = run("--numbers")
    assert (code, out) == (1, "1\n2\n")
    code, out, err = run("--numbers", "--skip-record", "2", "--dead-letters", "dead.json")
    assert (code, out) == (0, "1\n2\n4\n5\n6\n"), err
    (letter,) = letters(tmp_path / "dead.json")
    assert letter["error"] == "it is left out, as --skip-record 2 says"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--skip-record", "3"], "--skip-record 3: the input log ends before record 3"),
        (["--skip-record", "x"], "expected a whole number, 0 or more"),
        (["--skip-record", "1", "--checkpoint", "d"], "d holds no checkpoint"),
    ],
)
def test_a_record_that_is_not_there_is_refused(run, options, said):
    run("--stdin", data=b"a\nexit\nb\n")
    code, _, err = run("--stdin", *options)
    assert code == 2
    assert said in err
