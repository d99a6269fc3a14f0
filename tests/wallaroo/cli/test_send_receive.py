"""send and receive, over real sockets."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading

import pytest
from listening_cli import receiving
from ports import free_port
from receiving import reset

from wallaroo.cli.main import main
from wallaroo.frames import frame, frames


@pytest.fixture
def resetting():
    """The address of a listener that takes 1,000 bytes of a connection, or all, and resets it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def take():
            connection, _ = listener.accept()
            connection.recv(1000, socket.MSG_WAITALL)
            reset(connection)

        taking = threading.Thread(target=take)
        taking.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        taking.join(60)


def write(path, content):
    path.write_bytes(content)
    return str(path)


def say(address, *pieces):
    with socket.create_connection(address, timeout=30) as connection:
        for piece in pieces:
            connection.sendall(piece)


def test_send_makes_a_frame_of_each_line(tmp_path, receiver, capsys):
    path = write(tmp_path / "lines", b"one\n\ntwo\r\n \xff\0\nlast")
    assert main(["send", path, "--to", receiver.address]) == 0
    assert receiver.data == frames([b"one", b"", b"two", b" \xff\0", b"last"])
    said = capsys.readouterr().err
    assert said.startswith(f"sent 5 messages (33 bytes) to {receiver.address} in ")


def test_send_sends_frames_as_they_are(tmp_path, receiver, capsys):
    content = frames([b"a" * 200_000, b"", b"\n"]) + b"\0\0\0\x05cut"
    assert main(["send", write(tmp_path / "f", content), "--frames", "--to", receiver.address]) == 0
    assert receiver.data == content
    warning, said = capsys.readouterr().err.splitlines()
    assert warning.endswith("header, ends inside a frame: 7 bytes are there")
    assert said.startswith("sent 3 messages (200,020 bytes)")


def test_send_repeats_at_a_rate(tmp_path, receiver):
    path = write(tmp_path / "lines", b"a\nb\n")
    arguments = ["send", path, "--to", receiver.address, "--repeat", "3", "--rate", "1000"]
    assert main(arguments) == 0
    assert receiver.data == frames([b"a", b"b"] * 3)


def test_send_waits_for_the_listener(tmp_path):
    port = free_port()
    command = [sys.executable, "-m", "wallaroo", "send", write(tmp_path / "lines", b"a\n")]
    command += ["--to", f"127.0.0.1:{port}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == f"waiting for 127.0.0.1:{port} to listen\n".encode()
        with socket.create_server(("127.0.0.1", port)) as listener:
            connection, _ = listener.accept()
            with connection:
                assert connection.recv(100, socket.MSG_WAITALL) == frame(b"a")
        assert process.wait(timeout=60) == 0


UNKNOWN = (
    "it is not known how much was taken. See what the application counts as received or has put "
    "out, and send again what is missing; if repeats do no harm, send all of it again\n"
)


def test_frame_4_send_says_what_it_had_sent_when_the_connection_is_lost(
    tmp_path, resetting, capsys
):
    path = write(tmp_path / "lines", b"x" * 996 + b"\n")
    arguments = ["send", path, "--to", resetting, "--repeat", "1000000"]
    assert main(arguments) == 1
    said = capsys.readouterr().err
    assert re.match(
        rf"wallaroo: the connection to {resetting} was lost after [\d,]+ messages "
        r"\([\d,]+ bytes\) \((Broken pipe|Connection reset by peer)\): " + re.escape(UNKNOWN) + "$",
        said,
    ), said


def test_frame_4_send_fails_when_the_connection_is_reset_after_all_was_sent(
    tmp_path, resetting, capsys
):
    assert main(["send", write(tmp_path / "lines", b"a\n"), "--to", resetting]) == 1
    assert capsys.readouterr().err == (
        f"wallaroo: the connection to {resetting} was lost after 1 message (5 bytes) "
        f"(Connection reset by peer): {UNKNOWN}"
    )


def test_frame_4_send_believes_no_close_that_came_before_its_last_bytes():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        command = [sys.executable, "-m", "wallaroo", "send", "-", "--to", address]
        pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, **pipes) as process:  # pipes
            listener.accept()[0].close()
            _, said = process.communicate(b"a\n", timeout=60)
    assert process.returncode == 1
    assert UNKNOWN in said.decode()


def test_send_to_nobody_fails_in_one_line(tmp_path, capsys):
    address = f"127.0.0.1:{free_port()}"
    path = write(tmp_path / "lines", b"")
    assert main(["send", path, "--to", address, "--wait", "0"]) == 1
    said = f"nobody listens on {address} (Connection refused; waited 0 s); is the application"
    assert said in capsys.readouterr().err
    assert main(["send", str(tmp_path / "none"), "--to", address]) == 2
    assert capsys.readouterr().err.endswith("none: No such file or directory\n")
    assert main(["send", "-", "--to", address, "--repeat", "2"]) == 2
    assert "no --repeat with -" in capsys.readouterr().err


def test_send_to_a_host_that_there_is_not_fails_in_one_line(tmp_path, capsys):
    path = write(tmp_path / "lines", b"a\n")
    assert main(["send", path, "--to", "nowhere.invalid:7010"]) == 1
    assert "there is no host 'nowhere.invalid': " in capsys.readouterr().err


def test_send_repeats_no_pipe(tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)  # so that nobody waits for the other end
    try:
        assert main(["send", str(pipe), "--to", "127.0.0.1:1", "--repeat", "2"]) == 2
    finally:
        os.close(writer)
    assert f"{pipe} can be read once: no --repeat with it" in capsys.readouterr().err


def test_send_tells_a_receiver_that_does_not_close(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        path = write(tmp_path / "lines", b"a\n")
        assert main(["send", path, "--to", address, "--wait", "0.1"]) == 1
    assert capsys.readouterr().err == (
        f"wallaroo: {address} has not closed its side 0.1 s after 1 message (5 bytes); it may "
        f"be busy (--wait S waits longer): {UNKNOWN}"
    )


def test_send_ends_although_the_receiver_sends_on_and_on(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def pour():
            taken, _ = listener.accept()
            with taken, contextlib.suppress(OSError):
                while True:
                    taken.sendall(b"x" * 1000)

        pouring = threading.Thread(target=pour)
        pouring.start()
        address = f"127.0.0.1:{listener.getsockname()[1]}"
        path = write(tmp_path / "lines", b"a\n")
        assert main(["send", path, "--to", address, "--wait", "0.3"]) == 1
        pouring.join(60)
    assert "has not closed its side 0.3 s after 1 message" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "connections", "written", "what"),
    [
        (
            ["--expect", "3"],
            [[b"on", b"e\ntwo\n"], [b"three\nfour\n"]],
            b"one\ntwo\nthree\n",
            "3 of 3",
        ),
        (["--expect", "1"], [[b"no newline"]], b"no newline\n", "1 of 1"),
        (["--raw", "--expect", "5"], [[b"\0\xff\n", b"abc"]], b"\0\xff\nab", "5 of 5"),
        (  # a payload's own newline is kept
            ["--framed", "--expect", "3"],
            [[frame(b"a")[:3], frame(b"a")[3:] + frames([b"", b"has one\n"])]],
            b"a\n\nhas one\n\n",
            "3 of 3",
        ),
    ],
)
def test_receive_writes_messages_until_there_are_enough(options, connections, written, what):
    with receiving(*options) as (process, address):
        for pieces in connections:
            say(address, *pieces)
        output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (0, written)
    assert errors.startswith(f"received {what} ".encode())


def test_receive_writes_into_a_file(tmp_path):
    with receiving("--expect", "1", "--output", str(tmp_path / "out")) as (process, address):
        say(address, b"one\n")
        assert process.wait(60) == 0
    assert (tmp_path / "out").read_bytes() == b"one\n"


def test_receive_takes_connections_at_once_and_mixes_no_lines():
    with (
        receiving("--expect", "4") as (process, address),
        socket.create_connection(address) as one,
        socket.create_connection(address) as two,
    ):
        one.sendall(b"one ")
        two.sendall(b"two two\n")
        one.sendall(b"one\n")
        two.sendall(b"2\n")
        one.sendall(b"1\n")
        output, _ = process.communicate(timeout=30)
    assert sorted(output.splitlines()) == [b"1", b"2", b"one one", b"two two"]


def test_receive_framed_tells_what_is_no_frame_and_goes_on():
    with receiving("--framed", "--expect", "1") as (process, address):
        with socket.create_connection(address, timeout=30) as garbage:
            garbage.sendall(b"\xff\xff\xff\xff and more")
            assert garbage.recv(1) == b""
        with socket.create_connection(address, timeout=30) as cut:
            cut.sendall(b"\0\0\0\x05cut")
            cut.shutdown(socket.SHUT_WR)
            assert cut.recv(1) == b""
        say(address, frame(b"good"))
        output, errors = process.communicate(timeout=30)
    assert (process.returncode, output) == (1, b"good\n")
    assert b"header ff ff ff ff claims a payload of 4294967295 bytes" in errors
    assert b"it ended 7 bytes into a frame" in errors


def test_receive_gives_up_on_a_line_without_an_end():
    with receiving("--expect", "1") as (process, address):
        with socket.create_connection(address, timeout=30) as endless:
            with contextlib.suppress(ConnectionError):
                for _ in range(80):
                    endless.sendall(b"x" * (1 << 20))
            with contextlib.suppress(ConnectionError):
                assert endless.recv(1) == b""
        say(address, b"good\n")
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (1, b"good\n")
    assert b"it sent 67,108,864 bytes without a newline; for bytes that are not" in errors


def test_receive_refuses_connections_that_are_too_many():
    with (
        receiving("--expect", "2", "--max-connections", "1") as (process, address),
        socket.create_connection(address, timeout=30) as one,
    ):
        one.sendall(b"one\n")
        assert process.stdout is not None
        assert process.stdout.readline() == b"one\n"
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection(address, timeout=30) as two,
        ):
            assert two.recv(1) == b""
        one.sendall(b"more\n")
        output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (0, b"more\n")
    assert b": 1 are open (--max-connections); it is refused" in errors
    assert b"refused 1 connections\n" in errors


def test_receive_fails_when_too_little_came_in_time(capfd):
    assert main(["receive", "--listen", "127.0.0.1:0", "--expect", "1", "--timeout", "0.05"]) == 1
    assert "received 0 of 1 messages" in capfd.readouterr().err
    assert main(["receive", "--listen", "127.0.0.1:0", "--timeout", "0.05"]) == 0


def test_receive_stops_on_a_signal():
    with receiving() as (process, address):
        say(address, b"one\n")
        assert process.stdout is not None
        assert process.stdout.readline() == b"one\n"
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (0, b"received 1 messages\n")


def test_receive_on_a_port_in_use_fails_in_one_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert main(["receive", "--listen", address]) == 1
    [line] = capsys.readouterr().err.splitlines()
    assert line == f"wallaroo: cannot listen on {address}: Address already in use"


def test_receive_stops_when_its_reader_goes_away():
    with receiving() as (process, address):
        assert process.stdout is not None
        process.stdout.close()
        say(address, b"one\n")
        assert process.wait(timeout=60) == 141  # 128 + SIGPIPE, as for any command in a pipe
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()


def test_send_shows_a_bar_on_a_terminal_only(tmp_path, receiver):
    pytest.importorskip("rich", reason="progress bars are drawn by rich")
    path = write(tmp_path / "lines", b"a\n" * 1000)
    terminal, end = os.openpty()
    command = [sys.executable, "-m", "wallaroo", "send", path, "--to", receiver.address]
    with os.fdopen(end, "wb") as stderr:
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
        subprocess.run(command, stderr=stderr, check=True, timeout=60, env=environment)
    shown = b""
    while b"messages/s" not in shown:
        shown += os.read(terminal, 4096)
    os.close(terminal)
    assert f"sending to {receiver.address}".encode() in shown
    assert b"\x1b[" in shown
