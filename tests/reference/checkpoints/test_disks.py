"""A disk that takes nothing for a while, or never again."""

import errno
import os
import socket
import sqlite3
import threading

import pytest
from counted import counting, send
from receiving import eventually
from wallaroo_reference.checkpoints.store import StateFile

from wallaroo.frames import frames
from wallaroo.transport.input_log import InputLog, InputLogError
from wallaroo.transport.recording import RecordedLog


@pytest.mark.parametrize(("problem", "recorded"), [(errno.ENOSPC, False), (errno.EROFS, True)])
def test_while_the_disk_takes_nothing_nothing_is_read_and_nothing_lost(
    serve, receiver, disk, problem, recorded, monkeypatch, caplog, tmp_path
):
    own = {"checkpoint": None, "record": tmp_path / "r"} if recorded else {}
    monkeypatch.setattr("wallaroo.transport.appending._RETRY", 0.02)
    handle = serve(counting(receiver.port), own=own)
    with socket.create_connection(handle.addresses["p"], timeout=60) as sock:
        sock.sendall(frames([b"a"]))
        eventually(lambda: receiver.so_far == [b"a 1\n"])
        disk.problem = problem
        sock.sendall(frames([b"b"]))
        eventually(lambda: "nothing more is read until the disk takes them" in caplog.text)
        sock.sendall(frames([b"c"]) * 10_000)
        assert receiver.so_far == [b"a 1\n"]  # what is not on disk has no effect outside
        assert os.strerror(problem) in caplog.text
        disk.problem = None
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""
    assert "the disk takes the input log again" in caplog.text
    handle.stop()
    assert handle.wait(60).exit_code == 0
    assert receiver.data == b"a 1\nb 1\n" + b"".join([b"c %d\n" % n for n in range(1, 10_001)])
    if recorded:
        assert RecordedLog(tmp_path / "r").following == 10_002


def test_a_sync_that_fails_ends_the_run_and_senders_see_a_reset(serve, receiver, disk, monkeypatch):
    def fail(fd):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    handle = serve(counting(receiver.port))
    monkeypatch.setattr(disk, "fsync", fail, raising=False)
    with socket.create_connection(handle.addresses["p"], timeout=60) as sock:
        sock.sendall(frames([b"a"]))
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
    summary = handle.wait(60)
    assert summary.exit_code == 1
    assert "could not be synced: Input/output error" in summary.problem
    assert not any(receiver.so_far)


def test_a_sync_that_fails_ends_a_stop_though_outputs_wait_for_it(
    serve, receiver, disk, monkeypatch
):
    syncs = threading.Event()

    def fail(fd):
        syncs.wait(60)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("wallaroo_reference.serving.outbox.LIMIT", 1)
    handle = serve(counting(receiver.port), stop_timeout=1000)
    monkeypatch.setattr(disk, "fsync", fail, raising=False)
    with socket.create_connection(handle.addresses["p"], timeout=60) as sock:
        sock.sendall(frames([b"a"] * 2000))
        eventually(lambda: handle.progress().received == 2000)
        syncs.set()
        assert handle.wait(60).exit_code == 1


def test_frame_4_a_stop_while_the_disk_is_full_resets_senders(serve, receiver, disk, caplog):
    handle = serve(counting(receiver.port), stop_timeout=0.2)
    with socket.create_connection(handle.addresses["p"], timeout=60) as sock:
        sock.sendall(frames([b"a"]))
        eventually(lambda: receiver.so_far == [b"a 1\n"])
        disk.problem = errno.ENOSPC
        sock.sendall(frames([b"b"]))
        eventually(lambda: "nothing more is read until the disk takes them" in caplog.text)
        handle.stop()
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
    assert handle.wait(60).exit_code == 1


def test_a_checkpoint_that_cannot_be_written_is_tried_again(serve, receiver, monkeypatch, caplog):
    monkeypatch.setattr("wallaroo_reference.serving.checkpointing._RETRY", 0.02)
    write, tries = StateFile.write, []

    def full(self, head, blobs):
        tries.append(head.moment.sequence)
        if len(tries) < 4:
            raise sqlite3.OperationalError("database or disk is full")
        write(self, head, blobs)

    monkeypatch.setattr(StateFile, "write", full)
    handle = serve(counting(receiver.port))
    with socket.create_connection(handle.addresses["p"], timeout=60) as sock:
        sock.sendall(frames([b"a", b"b"]))
        eventually(lambda: handle.progress().details["checkpoints"])
    assert tries[:4] == tries[:1] * 4
    assert caplog.text.count("cannot be written: database or disk is full") == 1
    assert "state.db is written again" in caplog.text


def test_a_log_that_cannot_be_shortened_does_not_end_the_run(serve, receiver, monkeypatch, caplog):
    def fail(self, sequence):
        raise InputLogError(f"what is before {sequence} cannot be deleted")

    monkeypatch.setattr(InputLog, "drop_before", fail)
    handle = serve(counting(receiver.port))
    with socket.create_connection(handle.addresses["p"], timeout=60) as sock:
        sock.sendall(frames([b"a", b"b"]))
        eventually(lambda: "cannot be deleted; it is tried again at the next" in caplog.text)
    handle.stop()
    assert handle.wait(60).exit_code == 0
    assert receiver.data == b"a 1\nb 1\n"


def test_a_full_log_that_breaks_ends_the_run_which_would_read_nothing_more(
    serve, receiver, monkeypatch, caplog
):
    def fail(log, sequence):
        raise InputLogError(f"what is before {sequence} cannot be deleted")

    def breaks(log, sequence):
        log._broken = "the input log could not be synced"
        raise InputLogError(log._broken)

    own = {"log_bytes": 20_000, "checkpoint_interval": 0.05}
    monkeypatch.setattr(InputLog, "drop_before", fail)
    handle = serve(counting(receiver.port), own=own)
    with socket.create_connection(handle.addresses["p"], timeout=60) as sock:
        sock.sendall(frames([b"x" * 1000] * 25))
        eventually(lambda: "cannot be deleted; it is tried again at the next" in caplog.text)
    handle.stop()
    assert handle.wait(60).exit_code == 0
    monkeypatch.setattr(InputLog, "drop_before", breaks)
    summary = serve(counting(receiver.port), own=own).wait(60)
    assert (summary.exit_code, summary.problem) == (1, "the input log could not be synced")


def test_a_log_that_is_full_waits_for_a_checkpoint(serve, receiver):
    own = {"log_bytes": 20_000, "checkpoint_interval": 1000}
    handle = serve(counting(receiver.port), own=own)
    send(handle, *[b"x" * 1000] * 200)
    assert handle.progress().details["checkpoints"] > 1  # long before the interval is over
    assert handle.progress().details["log_bytes"] < 200_000


class Unpicklable:
    def __init__(self):
        self.count = 0
        self.function = lambda: None


def test_a_state_that_cannot_be_stored_ends_the_run_and_is_named(serve, receiver):
    handle = serve(counting(receiver.port, Unpicklable))
    with socket.create_connection(handle.addresses["p"], timeout=60) as sock:
        sock.sendall(frames([b"a"]))
        summary = handle.wait(60)
    assert summary.exit_code == 1
    assert "state partition 'counts', key 'a', cannot be pickled" in summary.problem


def test_a_stop_does_not_wait_for_a_state_that_cannot_be_stored(serve, receiver):
    own = {"checkpoint_interval": 1000}
    handle = serve(counting(receiver.port, Unpicklable), own=own, stop_timeout=1000)
    send(handle, "a")
    handle.stop()
    summary = handle.wait(60)
    assert summary is not None
    assert "state partition 'counts', key 'a', cannot be pickled" in summary.problem


def test_dead_4_a_restart_meets_the_record_that_ended_the_run_again(serve, receiver):
    application = counting(receiver.port)
    handle = serve(application, on_error="stop")
    with socket.create_connection(handle.addresses["p"], timeout=60) as sock:
        sock.sendall(frames([b"a"]))
        eventually(lambda: handle.progress().details["checkpoints"])
        sock.sendall(frames([b"\xff", b"b"]))  # it cannot be decoded
        assert handle.wait(60).exit_code == 1
    handle = serve(application, on_error="stop")
    summary = handle.wait(60)
    assert (summary.exit_code, summary.received) == (1, {"p": 0})
    assert summary.dead_letters == {("p", None, "decode"): 1}
    handle = serve(application)  # whoever goes on gets the rest
    eventually(lambda: receiver.so_far[-1].endswith(b"b 1\n"))
