"""``wallaroo receive --resume FILE``, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket

import pytest
from listening_cli import receiving

from wallaroo.cli.main import main
from wallaroo.cli.receive_resumed import StoringReceiver, opened


@contextlib.contextmanager
def sink(address):
    """Connect, and yield the connection and what the peer says on it, line by line."""
    with (
        socket.create_connection(address, timeout=60) as connection,
        connection.makefile("rb") as said,
    ):
        yield connection, said


@pytest.mark.parametrize("behind", [b"thr", b"three\n"])
def test_sink_9_it_stores_what_comes_and_tells_how_much(tmp_path, behind):
    path = tmp_path / "out"
    with receiving("--resume", str(path)) as (process, address):
        with sink(address) as (connection, said):
            assert [said.readline(), said.readline()] == [b"wallaroo-resume 1 0\n"] * 2
            connection.sendall(b"one\ntw")
            while said.readline() != b"wallaroo-resume 1 6\n":  # it may have come in two pieces
                pass
        process.kill()
    assert path.read_bytes() == b"one\ntw"
    with receiving("--resume", str(path), "--expect", "2") as (process, address):
        with sink(address) as (connection, said):
            assert said.readline() == b"wallaroo-resume 1 6\n"
            connection.sendall(b"o\n" + behind)
            while said.readline():
                pass
        assert process.wait(60) == 0
        assert process.stderr.read() == b"received 2 of 2 messages\n"
    assert path.read_bytes() == b"one\ntwo\n"


def test_sink_9_a_second_sink_is_refused_while_one_is_there(tmp_path):
    with receiving("--resume", str(tmp_path / "out")) as (process, address):
        with sink(address) as (_, said):
            said.readline()
            with sink(address) as (_, other), contextlib.suppress(ConnectionResetError):
                assert other.readline() == b""
        process.terminate()
        assert process.wait(60) == 0
        lines = process.stderr.read().splitlines()
    assert b"another sink is connected; it is refused" in lines[0]
    assert lines[1:] == [b"received 0 messages", b"refused 1 connections"]


def test_sink_9_the_last_message_that_is_expected_is_told_too(tmp_path):
    with receiving("--resume", str(tmp_path / "out"), "--expect", "1") as (process, address):
        with sink(address) as (connection, said):
            connection.sendall(b"one\ntwo\n")
            lines = said.readlines()
        assert process.wait(60) == 0
    assert lines[-1] == b"wallaroo-resume 1 4\n"


class Written(asyncio.Transport):
    """Keeps what is written to a connection."""

    def __init__(self, of):
        super().__init__()
        self._of = of
        self.data = b""

    def get_extra_info(self, name, default=None):
        return self._of if name == "socket" else default

    def write(self, data):
        self.data += data


def test_sink_9_only_what_is_on_the_disk_is_told(tmp_path, monkeypatch):
    calls = []

    def fsync(number):
        calls.append(number)
        if len(calls) == 2:
            raise OSError(errno.EIO, "broken")

    async def connected(file, of):
        receiver = StoringReceiver(file, "messages", None)
        run = asyncio.create_task(receiver.run(("127.0.0.1", 0), 60))
        await asyncio.sleep(0)  # it begins
        connection, transport = receiver.connection(), Written(of)
        connection.connection_made(transport)
        assert len(calls) == 1, "the process before this one may have been killed before its sync"
        assert transport.data == 2 * b"wallaroo-resume 1 4\n"
        connection.data_received(b"more")
        with pytest.raises(OSError, match="broken"):
            await run
        assert transport.data == 2 * b"wallaroo-resume 1 4\n"

    path = tmp_path / "out"
    path.write_bytes(b"one\n")
    with opened(path) as file, socket.socket() as of:
        monkeypatch.setattr(os, "fsync", fsync)
        asyncio.run(connected(file, of))


def test_what_is_there_already_may_be_enough(tmp_path, capsys):
    path = tmp_path / "out"
    path.write_bytes(b"12345")
    arguments = ["--listen", "127.0.0.1:0", "--resume", str(path), "--raw", "--expect", "5"]
    assert main(["receive", *arguments]) == 0
    assert "received 5 of 5 bytes" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--framed"], "--resume stores bytes as they come"),
        (["--output", "x"], "not allowed with argument"),
    ],
)
def test_what_does_not_fit_is_refused(tmp_path, capsys, arguments, why):
    path = str(tmp_path / "out")
    command = ["receive", "--listen", "127.0.0.1:0", "--resume", path, *arguments]
    with contextlib.suppress(SystemExit):
        assert main(command) == 2
    assert why in capsys.readouterr().err


def test_a_file_that_cannot_be_written_or_is_in_use_is_refused(tmp_path, capsys):
    listen = ["receive", "--listen", "127.0.0.1:0", "--resume"]
    assert main([*listen, str(tmp_path)]) == 2
    assert "cannot be written: Is a directory" in capsys.readouterr().err
    assert main([*listen, "/dev/null"]) == 2
    assert "is no regular file: its length does not tell" in capsys.readouterr().err
    path = str(tmp_path / "out")
    with receiving("--resume", path):
        assert main([*listen, path]) == 2
    assert "is in use by another process" in capsys.readouterr().err
