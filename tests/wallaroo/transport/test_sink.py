"""The TCP sink against peers that are late, slow, deaf, or go away in the middle of an output."""

from __future__ import annotations

import array
import contextlib
import fcntl
import random
import socket
import termios
import time

import pytest
from ports import free_port
from receiving import read_exactly, reset

from wallaroo.transport.sink import Backoff, TCPSink

ID = ("p", 0)


class Peer:
    """A listening socket whose connections have a small buffer."""

    def __init__(self, port=0):
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.listener.bind(("127.0.0.1", port))
        self.listener.listen()
        self.listener.settimeout(60)
        self.port = self.listener.getsockname()[1]

    def accept(self):
        sock, _ = self.listener.accept()
        sock.settimeout(60)
        return sock

    def close(self):
        self.listener.close()


def acknowledged_and_unread(sock):
    """Return what our kernel has acknowledged, without making room for more."""
    count, before, still = array.array("i", [0]), -1, 0
    while still < 10:  # for half a second nothing more has come: the system takes no more
        time.sleep(0.05)
        fcntl.ioctl(sock.fileno(), termios.FIONREAD, count, True)
        still = still + 1 if count[0] == before else 0
        before = count[0]
    return sock.recv(count[0], socket.MSG_PEEK) if count[0] else b""


@pytest.fixture
def peer():
    peer = Peer()
    yield peer
    peer.close()


@pytest.fixture
def sink_to(loop_thread):
    sinks = []

    def make(port, **options):
        options.setdefault("backoff", Backoff(0.01, 0.05, random.Random(1)))
        sink = TCPSink(ID, "127.0.0.1", port, **options)
        loop_thread.call(sink.start)
        sinks.append(sink)
        return sink

    yield make
    for sink in sinks:
        loop_thread.call(sink.close)


def numbered(start, stop):
    return [b"output %d\n" % n for n in range(start, stop)]


def test_sink_3_a_peer_that_comes_late_gets_everything(loop_thread, sink_to, caplog, eventually):
    port = free_port()
    caplog.set_level("INFO", "wallaroo")
    sink = sink_to(port)
    loop_thread.call(sink.write, numbered(0, 50))
    eventually(lambda: caplog.records)  # it has tried
    loop_thread.call(sink.write, numbered(50, 100))
    again = Peer(port)
    sock = again.accept()
    expected = b"".join(numbered(0, 100))
    assert read_exactly(sock, len(expected)) == expected
    loop_thread.run(sink.drain(), 60)
    texts = [record.getMessage() for record in caplog.records]
    where = f"127.0.0.1:{port}"
    refused = f"sink p/0: cannot connect to {where}: Connection refused; trying again"
    assert texts == [refused, f"sink p/0: connected to {where}"], "and not a line an attempt"
    sock.close()
    again.close()


@pytest.mark.parametrize("read", [0, 1, 1000, 20_001])
def test_sink_3_after_a_reset_it_starts_at_an_outputs_first_byte_without_a_gap(
    loop_thread, sink_to, peer, read, caplog
):
    caplog.set_level("WARNING", "wallaroo")
    sink = sink_to(peer.port)
    outputs = numbered(0, 30_000)
    for start in range(0, len(outputs), 1000):
        loop_thread.call(sink.write, outputs[start : start + 1000])
    sock = peer.accept()
    got = read_exactly(sock, read)
    got += acknowledged_and_unread(sock)
    reset(sock)
    whole = b"".join(outputs)
    assert whole.startswith(got)
    assert len(got) < len(whole)
    begun = whole.rfind(b"\n", 0, len(got)) + 1
    sock = peer.accept()
    rest = read_exactly(sock, len(whole) - begun)
    assert rest == whole[begun:], "what was acknowledged whole is not sent again, all else is"
    loop_thread.run(sink.drain(), 60)
    assert (sink.written, sink.pending) == (30_000, 0)
    assert "outputs are to be sent, perhaps again" in caplog.text
    sock.close()


def test_sink_3_what_is_kept_is_bounded_and_room_is_announced(loop_thread, sink_to, peer):
    told = []
    sink: TCPSink = sink_to(peer.port, limit=250_000, on_room=lambda: told.append(sink.full))
    written = 0
    while not loop_thread.call(lambda: sink.full):
        loop_thread.call(sink.write, [bytes(1000)])
        written += 1000
    assert 50_000 < written <= 166_000 + 4096, "the limit, and what the peer's kernel takes"
    assert told == []
    sock = peer.accept()
    sock.settimeout(0.01)
    while not told:
        with contextlib.suppress(TimeoutError):
            sock.recv(65536)
    assert told == [False]
    sock.close()


def test_a_peer_that_half_closes_and_reads_on_is_not_left(loop_thread, sink_to, peer):
    sink = sink_to(peer.port)
    sock = peer.accept()
    sock.sendall(b"what a receiver says is thrown away")
    sock.shutdown(socket.SHUT_WR)
    time.sleep(0.05)
    loop_thread.call(sink.write, numbered(0, 10))
    expected = b"".join(numbered(0, 10))
    assert read_exactly(sock, len(expected)) == expected
    loop_thread.run(sink.drain(), 60)
    sock.close()


def test_what_was_not_delivered_stays_counted_after_close(loop_thread, sink_to, peer):
    sink = sink_to(peer.port)
    loop_thread.call(sink.write, [bytes(1 << 20)] * 10)
    with pytest.raises(TimeoutError):
        loop_thread.run(sink.drain(), 0.1)
    loop_thread.call(sink.close)
    assert sink.written + sink.pending == 10
    assert sink.pending > 0


def test_pauses_grow_to_a_bound_and_begin_anew():
    backoff = Backoff(1.0, 5.0, random.Random(0))
    pauses = [backoff.pause() for _ in range(5)]
    for pause, longest in zip(pauses, [1, 2, 4, 5, 5], strict=True):
        assert 0.75 * longest <= pause <= longest
    backoff.reset()
    assert backoff.pause() <= 1.0
