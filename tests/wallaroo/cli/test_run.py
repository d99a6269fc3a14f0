"""``wallaroo run`` as people use it: real processes, sockets, pipes and a terminal."""

import array
import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import socket
import termios

import pytest
from receiving import eventually
from running import APP, WALLAROO_RUN, as_filter, wallaroo

from wallaroo.frames import frames


def test_idle_peers_do_not_lock_out_a_sender_under_a_small_limit_of_files(run, tmp_path):
    small = ["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", *WALLAROO_RUN]
    process = run("--idle-timeout", "0.5", command=small)
    words = tmp_path / "words"
    words.write_text("a\nb\n")
    with contextlib.ExitStack() as idle:
        for _ in range(70):
            with contextlib.suppress(ConnectionResetError):
                idle.enter_context(process.connect())
        while wallaroo("send", words, "--to", f"127.0.0.1:{process.port}").returncode:
            pass
    process.process.send_signal(signal.SIGTERM)
    code, errors, received = process.wait()
    assert code == 0
    assert received.endswith(b"A\nB\n")
    assert "a connection is refused: 32 are open, as many as the limit of open files" in errors
    assert "connections refused\n" in errors


def test_a_port_in_use_is_one_line_and_exit_1(app_file):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = wallaroo("run", app_file, "--in", address, "--out", "127.0.0.1:1")
    assert done.returncode == 1
    assert done.stderr.decode().splitlines()[1:] == [
        f"wallaroo: source p cannot listen on {address}: Address already in use"
    ]


def test_in_a_pipe_whose_reader_goes_away_it_ends_with_exit_1_and_no_traceback(app_file):
    process = as_filter(app_file)
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
    assert process.wait(60) == 1
    assert b"ended early: the outputs cannot be written: Broken pipe\n" in errors
    assert b"Traceback" not in errors
    assert b"Exception ignored" not in errors


def unread(stream):
    """Return how many bytes are in a pipe."""
    count = array.array("i", [0])
    fcntl.ioctl(stream.fileno(), termios.FIONREAD, count, True)
    return count[0]


def test_stop_1_while_both_pipes_block_a_stop_is_given_up_after_the_timeout(app_file):
    process = as_filter(app_file, "--stop-timeout", "0.2")
    process.stdin.write(b"a" * 60_000 + b"\n" + b"b" * 60_000 + b"\n")
    process.stdin.flush()
    eventually(lambda: unread(process.stdout) > 60_001)  # there is no room for the second output
    process.terminate()
    errors = process.stderr.read()
    assert process.wait(60) == 1
    assert b"outputs of sink 0 undelivered" in errors
    assert b"Fatal" not in errors
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()


def test_progress_and_summary_as_json_lines(app_file):
    process = as_filter(app_file, "--progress", "json")
    process.stdin.write(b"a\nb\n")
    process.stdin.flush()
    lines = [process.stderr.readline() for _ in range(3)]
    out, rest = process.communicate(timeout=30)
    assert out == b"A\nB\n"
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
    path.write_text(APP.replace("payload.decode()", "{b'good': 'good'}[payload]"))
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
