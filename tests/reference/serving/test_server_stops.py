"""How a served run ends: it is stopped, killed, or user code ends it."""

import functools
import io
import socket
import threading

import pytest
from ports import free_port
from receiving import eventually
from served import BOTH, application, connect, if_bad, raising, stopped
from wallaroo_reference.compiled.machine import Compiled

import wallaroo
from wallaroo.frames import frame, frames
from wallaroo.transport import edges
from wallaroo.transport.sink import TCPSink


@pytest.fixture
def hanging(serve, receiver, monkeypatch):
    """A server in user code from the first message on, before its start is over; its release."""
    entered, release = threading.Event(), threading.Event()

    @wallaroo.computation(name="hang")
    def hang(_):
        entered.set()
        release.wait()

    class Terminal(io.StringIO):
        """A sender reads the address there, and is quicker than the server's start."""

        def write(self, text):
            if "listening on" in text:
                host, _, port = text.split()[-1].rpartition(":")
                with socket.create_connection((host, int(port))) as sock:
                    sock.sendall(frame(b"a"))
                    entered.wait(60)
            return super().write(text)

    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", Terminal())
        handle = serve(application(receiver.port, ("to", hang)), stop_timeout=0.1)
    yield handle, release
    release.set()


def test_stop_1_user_code_that_never_returns_from_the_first_message_is_given_up(hanging):
    summary = stopped(hanging[0])
    assert summary.problem == "user code has not returned since the stop was asked for"


def test_a_kill_before_the_start_is_over_ends_the_run(hanging):
    handle, release = hanging
    handle.kill()
    release.set()
    assert handle.wait(60).problem == "it was killed"


@BOTH
def test_dead_4_on_error_stop_names_the_encoder(serve, receiver, isolation):
    picky = wallaroo.encoder(if_bad(raising))
    handle = serve(
        application(receiver.port, encoder=picky, sinks=2), isolation=isolation, on_error="stop"
    )
    with connect(handle) as sock:
        sock.sendall(frame(b"bad"))
        summary = handle.wait(60)
    assert ": pipeline p, encoder of sink 0, message 0 (dead-4)" in summary.problem


@BOTH
def test_dead_4_what_was_received_behind_the_message_is_counted(serve, receiver, isolation):
    @wallaroo.computation_multi(name="split")
    def split(text):
        return text.split()

    picky = wallaroo.encoder(if_bad(raising))
    built = application(receiver.port, ("to", split), encoder=picky)
    handle = serve(built, isolation=isolation, on_error="stop")
    with connect(handle) as sock:
        sock.sendall(frames([b"a b", b"a b", b"bad c", *[b"d"] * 7]))
        summary = handle.wait(60)
    assert receiver.data == b"ab" * 2
    assert (summary.received, summary.unprocessed) == ({"p": 10}, 7)


def test_stop_1_what_a_run_that_is_given_up_has_received_is_processed_or_counted(
    serve, monkeypatch
):
    monkeypatch.setattr(edges, "TCPSink", functools.partial(TCPSink, limit=1000))
    seen, all_sent = [], threading.Event()

    @wallaroo.computation(name="see")
    def see(text):
        seen.append(text)
        all_sent.wait()
        return text

    handle = serve(application(free_port(), ("to", see)), stop_timeout=0.1)  # nobody listens
    with connect(handle) as sock:
        sock.sendall(frame(b"first"))
        eventually(lambda: seen)
        sock.sendall(frames([b"some"] * 4_000))  # more than a machine is fed at once
        all_sent.set()
        summary = stopped(handle)
    assert summary.exit_code == 1
    assert summary.unprocessed == summary.received["p"] - len(seen) > 0


def test_a_fault_of_the_engine_itself_ends_the_run_and_is_told(
    serve, receiver, monkeypatch, caplog
):
    def broken(self, source, payloads, at=0, partition=None):
        raise RuntimeError("a fault")

    monkeypatch.setattr(Compiled, "feed", broken)
    handle = serve(application(receiver.port))
    with connect(handle) as sock:
        sock.sendall(frames([b"a"]))
        summary = handle.wait(60)
        with pytest.raises(ConnectionResetError):
            sock.recv(1)  # frame-4: it is not known what became of the frame
    assert summary.exit_code == 1
    assert summary.problem == "the engine itself failed: RuntimeError: a fault"
    (record,) = [one for one in caplog.records if "this is a bug in it" in one.getMessage()]
    assert record.exc_info is not None
