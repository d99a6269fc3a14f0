"""``wallaroo run`` as people use it: real processes, sockets, pipes, signals and a terminal."""

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
import time
from pathlib import Path

import pytest

from wallaroo.frames import frame, frames

APP = """
import sys
import wallaroo

@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload.decode()

@wallaroo.computation(name="obey")
def obey(text):
    if text == "exit":
        sys.exit(7)
    if text == "hang":
        while True:
            pass
    return text.upper()

@wallaroo.encoder
def encode(text):
    return text + "\\n"

def application_setup(args):
    print("arguments:", args, file=sys.stderr)
    "--mine" in args  # an option that is named is taken
    (host, port), (out_host, out_port) = (
        wallaroo.tcp_parse_input_addrs(args)[0], wallaroo.tcp_parse_output_addrs(args)[0])
    builder = wallaroo.ApplicationBuilder("app")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig(host, port, decode)).to(obey)
    return builder.to_sink(wallaroo.TCPSinkConfig(out_host, out_port, encode)).build()
"""


@pytest.fixture
def app(tmp_path):
    path = tmp_path / "app.py"
    path.write_text(APP)
    return path


class Run:
    """A process of ``wallaroo run``, and the peers of its source and its sink."""

    def __init__(self, app, *arguments, stderr=subprocess.PIPE):
        self.sink = socket.create_server(("127.0.0.1", 0))
        out = f"127.0.0.1:{self.sink.getsockname()[1]}"
        command = [sys.executable, "-m", "wallaroo", "run", str(app), *arguments]
        command += ["--in", "127.0.0.1:0", "--out", out]
        self.process = subprocess.Popen(command, stderr=stderr, text=True)
        self.received = bytearray()
        self._receiving = threading.Thread(target=self._receive)
        self._receiving.start()
        self.errors = ""
        if stderr is subprocess.PIPE:
            while "listening on" not in self.errors:
                line = self.process.stderr.readline()
                assert line, self.errors
                self.errors += line
            self.port = int(self.errors.strip().rpartition(":")[2])

    def _receive(self):
        with contextlib.suppress(OSError):
            sock, _ = self.sink.accept()
            with sock:
                while data := sock.recv(65536):
                    self.received += data

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def wait(self):
        """Wait for the end; return the exit code, stderr, and what the sink's peer has got."""
        _, rest = self.process.communicate(timeout=60)
        with contextlib.suppress(OSError):
            self.sink.shutdown(socket.SHUT_RDWR)
        self._receiving.join(30)
        return self.process.returncode, self.errors + (rest or ""), bytes(self.received)

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.wait()
        self.sink.close()


@pytest.fixture
def run(app):
    runs = []

    def start(*arguments, **options):
        runs.append(Run(app, *arguments, **options))
        return runs[-1]

    yield start
    for each in runs:
        each.end()


def wallaroo(*arguments, data=b"", **options):
    return subprocess.run(
        [sys.executable, "-m", "wallaroo", *map(str, arguments)],
        input=data,
        capture_output=True,
        timeout=60,
        check=False,
        **options,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stop_1_a_signal_under_load_delivers_what_was_received(run, number):
    process = run()
    going = threading.Event()
    going.set()

    def load():
        with process.connect() as sock, contextlib.suppress(OSError):
            while going.is_set():
                sock.sendall(frames([b"message"] * 1000))

    sender = threading.Thread(target=load)
    sender.start()
    while len(process.received) < 100_000:
        time.sleep(0.005)
    process.process.send_signal(number)
    code, errors, received = process.wait()
    going.clear()
    sender.join()
    assert code == 0
    count = received.count(b"\n")
    assert received == b"MESSAGE\n" * count
    assert f"  p: {count:,} in, {count:,} out\n" in errors
    assert "stopping; once more to stop at once\n" in errors
    assert "Traceback" not in errors


def test_a_second_signal_ends_it_at_once(run):
    process = run()
    with process.connect() as sock:
        sock.sendall(frame(b"hang"))
        time.sleep(0.2)
        process.process.send_signal(signal.SIGINT)
        while "stopping" not in process.errors:
            process.errors += process.process.stderr.readline()
        process.process.send_signal(signal.SIGINT)
        code, errors, _ = process.wait()
    assert code == 130
    assert "Traceback" not in errors


def test_stop_1_code_that_never_returns_is_given_up_after_the_timeout(run):
    process = run("--stop-timeout", "0.2")
    with process.connect() as sock:
        sock.sendall(frames([b"one", b"hang"]))
        time.sleep(0.2)
        process.process.terminate()
        code, errors, _ = process.wait()
    assert code == 1
    assert "ended early: user code has not returned since the stop was asked for\n" in errors


def test_stop_1_without_its_sink_it_gives_up_and_tells_what_is_undelivered(app):
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        out = f"127.0.0.1:{nobody.getsockname()[1]}"
    done = wallaroo("run", app, "--stdin", "--stop-timeout", "0.2", "--out", out, data=b"a\nb\n")
    errors = done.stderr.decode()
    assert done.returncode == 1
    assert f"sink p/0: cannot connect to {out}: Connection refused; trying again\n" in errors
    assert "  p: 2 outputs of sink 0 undelivered\n" in errors
    assert "  ended early: the stop was given up after 0.2 s\n" in errors


def test_dead_3_exit_in_user_code_ends_the_run_naming_the_step(run):
    process = run()
    with process.connect() as sock:
        sock.sendall(frames([b"a", b"exit", b"b"]))
        code, errors, received = process.wait()
    assert (code, received) == (1, b"A\n")
    assert "ended early: SystemExit ended the run: pipeline p, step obey, message 1 (dead-3)" in (
        errors
    )


def test_dead_4_on_error_stop(run):
    process = run("--on-error", "stop")
    with process.connect() as sock:
        sock.sendall(frames([b"a", b"\xff", b"b"]))
        code, errors, received = process.wait()
    assert (code, received) == (1, b"A\n")
    assert "  dead letters: 1\n    1 decode: p\n" in errors


@pytest.mark.parametrize("ending", ["kill -9", "given up", "exit in user code"])
def test_frame_4_an_engine_that_dies_resets_its_connections(run, ending):
    process = run("--stop-timeout", "0.1")
    with process.connect() as sock, process.connect() as other:
        sock.sendall(frames([b"a", b"b"]))
        while process.received != b"A\nB\n":
            time.sleep(0.005)
        if ending == "kill -9":
            process.process.kill()
        else:
            other.sendall(frame(b"hang" if ending == "given up" else b"exit"))
            if ending == "given up":
                time.sleep(0.2)
                process.process.send_signal(signal.SIGTERM)
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
        assert process.wait()[0] != 0


def test_frame_4_an_engine_that_stops_in_order_resets_nothing(run):
    process = run()
    with process.connect() as sock:
        sock.sendall(frames([b"a", b"b"]))
        while process.received != b"A\nB\n":
            time.sleep(0.005)
        process.process.send_signal(signal.SIGTERM)
        assert sock.recv(1) == b""
    assert process.wait()[0] == 0


FORKING = """
    if text == "fork and return":
        os.fork()
    if text == "fork and exit" and not os.fork():
        sys.exit(0)
    if text == "fork and stay" and not os.fork():
        print("child", os.getpid(), file=sys.stderr, flush=True)
        time.sleep(600)
    return text.upper()
"""


@pytest.fixture
def forking(run, app):
    app.write_text(APP.replace("    return text.upper()\n", FORKING, 1) + "\nimport os, time\n")
    return run


@pytest.mark.parametrize("isolated", [[], ["--isolated"]])
@pytest.mark.parametrize("how", [b"fork and return", b"fork and exit"])
def test_a_forked_child_of_user_code_is_no_second_engine(forking, how, isolated):
    process = forking(*isolated)
    with process.connect() as sock:
        sock.sendall(frames([b"a", how, *[b"b"] * 100]))
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""
    process.process.send_signal(signal.SIGTERM)
    code, errors, received = process.wait()
    assert (code, received) == (0, b"A\n" + how.upper() + b"\n" + b"B\n" * 100)
    said = [line for line in errors.splitlines() if "came back into the engine" in line]
    assert len(said) == 1
    assert said[0].startswith("wallaroo: pipeline p, message 1 or one after it: a process forked ")
    assert "forked in obey (" in said[0]


def test_frame_4_a_forked_child_holds_no_connection_open(forking):
    process = forking()
    with process.connect() as sock:
        sock.sendall(frames([b"fork and stay"]))
        line = ""
        while not line.startswith("child "):
            line = process.process.stderr.readline()
        child = int(line.split()[1])
        try:
            while process.received != b"FORK AND STAY\n":
                time.sleep(0.005)
            process.process.kill()
            with pytest.raises(ConnectionResetError):
                sock.recv(1)
            process.process.wait()  # its last descriptors may go after the connection
            socket.create_server(("127.0.0.1", process.port)).close()
        finally:
            os.kill(child, signal.SIGKILL)
    assert process.wait()[0] == -signal.SIGKILL


def test_idle_peers_do_not_lock_out_a_sender_under_a_small_limit_of_files(app, tmp_path):
    command = [sys.executable, "-m", "wallaroo", "run", str(app), "--idle-timeout", "0.5"]
    command += ["--in", "127.0.0.1:0", "--out"]
    words = tmp_path / "words"
    words.write_text("a\nb\n")
    with contextlib.ExitStack() as stack:
        sink = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        command = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *command]
        process = stack.enter_context(
            subprocess.Popen(
                [*command, f"127.0.0.1:{sink.getsockname()[1]}"], stderr=subprocess.PIPE, text=True
            )
        )
        stack.callback(process.kill)
        line = ""
        while "listening on" not in line:
            line = process.stderr.readline()
        port = int(line.rpartition(":")[2])
        taken = stack.enter_context(sink.accept()[0])
        for _ in range(70):
            with contextlib.suppress(ConnectionResetError):
                stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=30))
        while wallaroo("send", words, "--to", f"127.0.0.1:{port}").returncode:
            pass
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
        assert taken.recv(100).endswith(b"A\nB\n")
    assert process.returncode == 0
    assert "a connection is refused: 32 are open, as many as the limit of open files" in errors
    assert "connections refused\n" in errors


def test_a_port_in_use_is_one_line_and_exit_1(app):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = wallaroo("run", app, "--in", address, "--out", "127.0.0.1:1")
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[1:] == [
        f"wallaroo: source p cannot listen on {address}: Address already in use"
    ]


def test_stdin_and_stdout_make_it_a_filter(app):
    done = wallaroo("run", app, "--stdin", "--stdout", data=b"one\ntwo\n\nthree")
    assert (done.returncode, done.stdout) == (0, b"ONE\nTWO\n\nTHREE\n")
    assert b"  p: 4 in, 4 out\n" in done.stderr


def test_in_a_pipe_whose_reader_goes_away_it_ends_with_exit_1_and_no_traceback(app):
    process = subprocess.Popen(
        [sys.executable, "-m", "wallaroo", "run", app, "--stdin", "--stdout"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(b"a\n")
    process.stdin.flush()
    assert process.stdout.readline() == b"A\n"
    process.stdout.close()
    with contextlib.suppress(BrokenPipeError):
        while process.poll() is None:
            process.stdin.write(b"a\n" * 1000)
            process.stdin.flush()
    errors = process.stderr.read()
    process.stderr.close()
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    assert process.wait(30) == 1
    assert b"ended early: the outputs cannot be written: Broken pipe\n" in errors
    assert b"Traceback" not in errors
    assert b"Exception ignored" not in errors


def test_stop_1_while_both_pipes_block_a_stop_is_given_up_after_the_timeout(app):
    command = [sys.executable, "-m", "wallaroo", "run", app, "--stdin", "--stdout"]
    process = subprocess.Popen(
        [*command, "--stop-timeout", "0.2"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdin.write(b"a" * 60_000 + b"\n" + b"b" * 60_000 + b"\n")
    process.stdin.flush()
    time.sleep(1.0)  # the first output fills the pipe; the second blocks
    process.terminate()
    errors = process.stderr.read()
    assert process.wait(30) == 1
    assert b"outputs of sink 0 undelivered" in errors
    assert b"Fatal" not in errors
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def test_dead_letters_are_counted_logged_and_stored(app, tmp_path):
    path = tmp_path / "dead.jsonl"
    done = wallaroo(
        "run", app, "--stdin", "--stdout", "--dead-letters", path, data=b"a\n\xff\x1b[31m\nb\n"
    )
    assert (done.returncode, done.stdout) == (0, b"A\nB\n")
    assert json.loads(path.read_text())["reason"] == "decode"
    assert b"warning: dead letter: pipeline p, decoder, decode (UnicodeDecodeError)" in done.stderr
    assert b"\x1b" not in done.stderr


def test_isolated_mode_prints_findings(tmp_path):
    path = tmp_path / "app.py"
    path.write_text(
        APP.replace(".to(obey)", '.to_stateful(forget, State, "s")')
        + "\n@wallaroo.state_computation(name='forget')\n"
        "def forget(text, state):\n    state.seen = text\n    return text, False\n\n"
        "class State:\n    seen = None\n"
    )
    done = wallaroo("run", path, "--isolated", "--stdin", "--stdout", data=b"a\nb\n")
    assert done.stdout == b"a\nb\n"
    assert b"  finding: unflagged-mutation: p, forget: " in done.stderr


def test_arguments_the_application_names_and_those_after_two_dashes_go_to_it(app):
    arguments = ["--mine", "x", "--stdin", "--", "--stdout", "--engine", "y"]
    with socket.create_server(("127.0.0.1", 0)) as sink:
        out = f"127.0.0.1:{sink.getsockname()[1]}"
        done = wallaroo("run", app, "--out", out, "--in", "127.0.0.1:0", *arguments)
    expected = ["--out", out, "--in", "127.0.0.1:0", "--mine", "x", "--stdout", "--engine", "y"]
    assert done.stderr.decode().splitlines()[0] == f"arguments: {expected}"
    assert done.returncode == 0


def test_progress_and_summary_as_json_lines(app):
    process = subprocess.Popen(
        [sys.executable, "-m", "wallaroo", "run", app, "--stdin", "--stdout", "--progress", "json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdin.write("a\nb\n")
    process.stdin.flush()
    lines = [process.stderr.readline() for _ in range(3)]
    out, rest = process.communicate(timeout=30)
    assert out == "A\nB\n"
    progress = json.loads(lines[1])["progress"]
    assert (progress["received"], progress["written"], progress["dead_letters"]) == (2, 2, 0)
    summary = json.loads(rest.splitlines()[-1])["summary"]
    assert summary["received"] == {"p": 2}
    assert summary["written"] == [{"pipeline": "p", "sink": 0, "outputs": 2}]
    assert (summary["exit_code"], summary["problem"]) == (0, None)


SUMMARY_OF_DEAD = "no message came through: 2 in, 2 dead letters, nothing out."


@pytest.mark.parametrize(("lines", "said"), [(b"bad\nbad\n", True), (b"bad\ngood\n", False)])
def test_dead_1_where_every_message_was_a_dead_letter_the_summary_says_so(tmp_path, lines, said):
    path = tmp_path / "picky.py"
    path.write_text(
        "import wallaroo\n"
        "@wallaroo.decoder(header_length=4, length_fmt='>I')\n"
        "def decode(payload):\n"
        "    return {b'good': 'good'}[payload]\n"
        "@wallaroo.encoder\n"
        "def encode(text):\n"
        "    return text\n"
        "def application_setup(args):\n"
        "    ab = wallaroo.ApplicationBuilder('picky')\n"
        "    ab.new_pipeline('p', wallaroo.TCPSourceConfig('127.0.0.1', 0, decode))\n"
        "    ab.to_sink(wallaroo.TCPSinkConfig('127.0.0.1', 1, encode))\n"
        "    return ab.build()\n"
    )
    done = wallaroo("run", path, "--stdin", "--stdout", data=lines)
    errors = done.stderr.decode()
    assert (SUMMARY_OF_DEAD in errors) is said
    assert ("docs/migrating.md" in errors) is said


LIVE = "3 in · 2 out · 1 dead letters"


def uncolored(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def on_a_terminal(run, **environment):
    """Return what a person sees on stderr while three messages pass."""
    pytest.importorskip("rich", reason="the live line needs rich")
    leader, follower = pty.openpty()
    before = dict(os.environ)
    os.environ.update(environment | {"TERM": "xterm", "COLUMNS": "100"})
    try:
        process = run(stderr=follower)
    finally:
        os.environ.clear()
        os.environ.update(before)
        os.close(follower)
    seen = bytearray()
    sent = stopped = False
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:  # the other side has closed
            break
        seen += data
        text = seen.decode(errors="replace")
        if not sent and "listening on" in text and "\n" in text.partition("listening on")[2]:
            process.port = int(text.partition("listening on")[2].split("\r")[0].rpartition(":")[2])
            with process.connect() as sock:
                sock.sendall(frames([b"a", b"\xff", b"c"]))
            sent = True
        if LIVE in uncolored(text) and not stopped:
            process.process.terminate()
            stopped = True
    os.close(leader)
    assert process.wait()[0] == 0
    return seen.decode()


def test_on_a_terminal_there_is_one_live_line(run):
    seen = on_a_terminal(run)
    assert "messages/s" in seen
    assert LIVE in uncolored(seen)
    assert "\x1b[31m" in seen
    assert "warning: dead letter: pipeline p" in seen
    assert "p: 3 in, 2 out" in seen


def test_no_color_means_no_color(run):
    seen = on_a_terminal(run, NO_COLOR="1")
    assert LIVE in uncolored(seen)
    assert "\x1b[31m" not in seen


def test_an_engine_that_is_not_there_is_one_line(app):
    done = wallaroo("run", app, "--engine", "abacus")
    assert done.returncode == 2
    assert done.stderr.startswith(b"wallaroo: no engine is called 'abacus'; installed: ")


def test_help_suffices():
    done = wallaroo("run", "--help")
    text = done.stdout.decode()
    assert done.returncode == 0
    for option in ("--engine", "--isolated", "--dead-letters", "--on-error", "--stdin", "--stdout"):
        assert option in text
    assert "examples:" in text


def test_the_compiled_engine_serves_too(app):
    done = wallaroo("run", app, "--engine", "compiled", "--stdin", "--stdout", data=b"a\n")
    assert (done.returncode, done.stdout) == (0, b"A\n")


def test_an_application_given_by_its_modules_name(app):
    done = wallaroo("run", "app", "--stdin", "--stdout", data=b"a\n", cwd=Path(app).parent)
    assert (done.returncode, done.stdout) == (0, b"A\n")
