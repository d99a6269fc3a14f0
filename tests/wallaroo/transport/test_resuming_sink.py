"""The TCP sink against peers that remember, and are killed, silent, or somebody else (sink-9).

The live runs of conformance kill engines and peers; here is what a peer may say, and what is kept.
"""

from __future__ import annotations

import random
import socket

import pytest
from receiving import eventually, read_exactly, reset

from wallaroo.transport import resuming_sink
from wallaroo.transport.resuming_sink import ResumingSink
from wallaroo.transport.resumption import NEW, Lines, ResumptionError, Stream, kept_line
from wallaroo.transport.sink import Backoff

ID = ("p", 0)


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


@pytest.fixture
def sink_to(loop_thread, listener):
    sinks = []

    def make(stream=NEW):
        backoff = Backoff(0.01, 0.05, random.Random(1))
        sink = ResumingSink(ID, *listener.getsockname(), stream, backoff=backoff)
        loop_thread.call(sink.start)
        sinks.append(sink)
        return sink

    yield make
    for sink in sinks:
        loop_thread.call(sink.close)


@pytest.fixture
def accept(listener):
    socks = []

    def accepted(said):
        sock, _ = listener.accept()
        sock.settimeout(60)
        sock.sendall(said)
        socks.append(sock)
        return sock

    yield accepted
    for sock in socks:
        sock.close()


def test_sink_9_it_goes_on_right_behind_what_is_kept_also_inside_an_output(
    loop_thread, sink_to, accept
):
    sink = sink_to()
    loop_thread.call(sink.write, [b"one\n", b"two\n"])
    loop_thread.call(sink.write, [b"three\n"])
    sock = accept(kept_line(0))
    assert read_exactly(sock, 14) == b"one\ntwo\nthree\n"
    loop_thread.run(sink.drain(), 60)
    assert (sink.written, sink.pending) == (3, 0)
    sock.close()  # it has read all and kept 5 bytes
    loop_thread.call(sink.write, [b"four\n"])
    sock = accept(kept_line(5))
    assert read_exactly(sock, 14) == b"wo\nthree\nfour\n"
    loop_thread.run(sink.drain(), 60)
    assert sink.written == 4, "what comes again is not counted again"


def test_sink_9_a_peer_that_tells_decides_what_is_delivered(
    loop_thread, sink_to, accept, eventually
):
    sink = sink_to()
    sock = accept(2 * kept_line(0))
    loop_thread.call(sink.write, [b"one\n"])
    loop_thread.call(sink.write, [b"two\n"])
    assert read_exactly(sock, 8) == b"one\ntwo\n"
    loop_thread.call(sink.look)
    assert (sink.written, sink.pending) == (0, 2)
    sock.sendall(kept_line(4)[:9])
    sock.sendall(kept_line(4)[9:])
    eventually(lambda: sink.written == 1)
    assert loop_thread.call(lambda: sink.stream(8)) == Stream(4, b"two\n")
    sock.sendall(kept_line(8))
    loop_thread.run(sink.drain(), 60)
    assert loop_thread.call(lambda: sink.stream(sink.end)) == Stream(8, b"")


def test_sink_9_a_peer_that_tells_and_is_gone_is_noticed_though_all_was_acknowledged(
    loop_thread, sink_to, accept
):
    sink = sink_to()
    sock = accept(2 * kept_line(0))
    loop_thread.call(sink.write, [b"one\n"])
    assert read_exactly(sock, 4) == b"one\n"
    sock.close()
    sock = accept(kept_line(0))
    assert read_exactly(sock, 4) == b"one\n"
    loop_thread.run(sink.drain(), 60)


def test_sink_9_behind_a_peer_that_says_nothing_more_a_bounded_end_is_kept(
    loop_thread, sink_to, accept, monkeypatch
):
    monkeypatch.setattr(resuming_sink, "SILENT", 10)
    sink = sink_to()
    sock = accept(kept_line(0))
    for number in range(9):
        loop_thread.call(sink.write, [b"%03d\n" % number])
        loop_thread.run(sink.drain(), 60)
    stream = loop_thread.call(lambda: sink.stream(sink.end))
    assert stream == Stream(26, b"6\n007\n008\n"), "ten bytes, however long a write is"
    assert read_exactly(sock, 36)
    sock.close()
    loop_thread.call(sink.write, [b"009\n"])
    assert read_exactly(accept(kept_line(27)), 13) == b"\n007\n008\n009\n"


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"hello\n", r"it said b'hello', and not how many bytes"),
        (b"wallaroo-resume 2 0\n", "it said b'wallaroo-resume 2 0', and not"),
        (b"wallaroo-resume 1 07\n", "it said b'wallaroo-resume 1 07', and not"),
        (b"x" * 100, "and not how many bytes"),
        (kept_line(3), "it has kept 3 bytes of the sink's stream, and those before byte 4 are"),
        (kept_line(9), "it has kept 9 bytes, and 8 of the sink's stream have been sent: what"),
    ],
)
def test_sink_9_what_does_not_fit_is_refused_with_the_line_and_tried_again(
    loop_thread, sink_to, accept, caplog, said, why
):
    sink = sink_to(Stream(4, b"two\n"))
    loop_thread.call(sink.complete)
    sock = accept(said)
    assert sock.recv(1) == b"", "it is closed"
    again = accept(kept_line(4))
    assert read_exactly(again, 4) == b"two\n"
    assert why in caplog.text
    assert "cannot connect to" in caplog.text


def test_sink_9_who_says_nothing_is_refused(loop_thread, sink_to, accept, monkeypatch, caplog):
    monkeypatch.setattr(resuming_sink, "_TIMEOUT", 0.05)
    sink_to()
    sock = accept(b"wallaroo-resume 1 0")  # no newline
    assert sock.recv(1) == b""
    accept(kept_line(0))
    assert "it has not said within 0.05 s how many bytes it has kept" in caplog.text


@pytest.mark.parametrize("said", [b"thanks\n", kept_line(5), kept_line(0)])
def test_sink_9_what_does_not_fit_later_ends_the_connection(loop_thread, sink_to, accept, said):
    sink = sink_to()
    sock = accept(kept_line(0) + kept_line(0))
    loop_thread.call(sink.write, [b"one\n"])
    assert read_exactly(sock, 4) == b"one\n"
    sock.sendall(kept_line(2) + said)
    again = accept(kept_line(2))
    assert read_exactly(again, 2) == b"e\n"


def test_sink_9_what_a_peer_has_already_is_made_again_and_not_sent(
    loop_thread, sink_to, accept, eventually
):
    sink = sink_to(Stream(4, b"two\n"))
    sock = accept(kept_line(13))
    eventually(lambda: sink.connected)
    loop_thread.call(sink.write, [b"three\n"])
    loop_thread.run(sink.drain(), 60)
    assert sink.written == 1
    assert loop_thread.call(lambda: sink.stream(14)) == Stream(8, b"three\n")
    loop_thread.call(sink.complete)
    loop_thread.call(sink.write, [b"four\n"])
    assert read_exactly(sock, 6) == b"\nfour\n"


def test_sink_9_a_peer_of_another_stream_is_refused_once_all_is_made_again(
    loop_thread, sink_to, accept, caplog, eventually
):
    sink = sink_to()
    sock = accept(kept_line(100))
    eventually(lambda: sink.connected)
    loop_thread.call(sink.write, [b"one\n"])
    loop_thread.call(sink.complete)
    assert sock.recv(1) == b""
    assert "it has kept 100 bytes, and 4 of the sink's stream have been sent" in caplog.text


def test_sink_9_a_peer_of_another_stream_is_refused_also_when_the_stream_has_as_much(
    loop_thread, sink_to, accept
):
    sink = sink_to()
    loop_thread.call(sink.complete)
    assert accept(kept_line(6)).recv(1) == b""
    loop_thread.call(sink.write, [b"one\n", b"two\n"])
    assert accept(kept_line(6)).recv(1) == b"", "it would lack the first six bytes"
    sock = accept(kept_line(0))
    assert read_exactly(sock, 8) == b"one\ntwo\n"
    sock.close()
    loop_thread.call(sink.write, [b"three\n"])
    assert read_exactly(accept(kept_line(6)), 8) == b"o\nthree\n"


class Exchange:
    """Runs of a sink that a seed starts anew, and a peer whose connections it breaks at any byte.

    Attributes:
        kept: what the peer has kept.
        made: number of outputs that this run has written, from those before its checkpoint on.
    """

    def __init__(self, seed, loop_thread):
        self.kept = b""
        self.made = 0
        self._chance = random.Random(seed)
        self._tells = self._chance.random() < 0.5
        self._call = loop_thread.call
        self._outputs = [b"%d" % n * self._chance.randint(1, 9) + b"\n" for n in range(60)]
        self._most = 0  # outputs that any run has written
        self._stored = (0, NEW)  # a checkpoint: outputs, and the stream then
        self._sock = None
        self._begin()

    @property
    def wanted(self):
        """The stream, as far as this run has made it."""
        return b"".join(self._outputs[: self.made])

    def play(self):
        """Do one thing after the other until all is made, then let the peer get the rest."""
        does = (self.write, self.write, self.connect, self.read, self.break_off)
        while self.made < len(self._outputs):
            self._chance.choice((*does, *does, self.store, self.begin_anew))()
        self.connect()
        self.read(all_of_it=True)

    def write(self):
        stop = self.made + self._chance.randint(1, 4)
        if self.made < self._most:
            stop = min(stop, self._most)
        self._call(self._sink.write, self._outputs[self.made : stop])
        self.made = min(stop, len(self._outputs))
        self._most = max(self._most, self.made)
        self._complete_if_all_is_made_again()

    def connect(self):
        if self._sock is None:
            self._sock, _ = self._listener.accept()
            self._sock.settimeout(20)
            self._sock.sendall(kept_line(len(self.kept)) * (1 + self._tells))
            eventually(lambda: self._call(lambda: self._sink.connected))

    def read(self, all_of_it=False):
        if self._sock is None:
            return
        waits = max(0, len(self.wanted) - len(self.kept))
        self.kept += read_exactly(
            self._sock, waits if all_of_it else self._chance.randint(0, waits)
        )
        if self._tells:
            self._sock.sendall(kept_line(len(self.kept)))

    def break_off(self):
        if self._sock is not None:
            reset(self._sock)
            self._sock = None
            eventually(lambda: not self._call(lambda: self._sink.connected))

    def store(self):
        """Make a checkpoint, if all outputs are delivered."""
        self._call(self._sink.look)
        if not self._sink.pending:
            self._stored = self.made, self._call(lambda: self._sink.stream(self._sink.end))

    def begin_anew(self):
        """Let the run die, and another one go on from the checkpoint."""
        self.break_off()
        self.end()
        self._begin()

    def end(self):
        self._call(self._sink.close)
        self._listener.close()

    def _begin(self):
        self.made, stream = self._stored
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(20)
        backoff = Backoff(0.001, 0.002, random.Random(1))
        self._sink = ResumingSink(ID, *self._listener.getsockname(), stream, backoff=backoff)
        self._call(self._sink.start)
        self._complete_if_all_is_made_again()

    def _complete_if_all_is_made_again(self):
        if self.made == self._most:
            self._call(self._sink.complete)


@pytest.mark.parametrize("seed", range(20))
def test_sink_9_a_peer_has_each_byte_once_wherever_runs_and_connections_end(loop_thread, seed):
    exchange = Exchange(seed, loop_thread)
    try:
        exchange.play()
        assert exchange.kept == exchange.wanted
    finally:
        exchange.break_off()
        exchange.end()


def test_a_stream_is_what_it_was_when_it_was_shorter():
    stream = Stream(4, b"two\nthree\n")
    assert stream.end == 14
    assert stream.up_to(8) == Stream(4, b"two\n")
    assert stream.up_to(3) == Stream(3, b"")
    assert Stream.from_form(*stream.form) == stream


@pytest.mark.parametrize("form", [(-1, ""), ("0", ""), (0, "!"), (0, 7), (True, "")])
def test_a_damaged_stream_is_refused(form):
    with pytest.raises((TypeError, ValueError)):
        Stream.from_form(*form)


def test_lines_come_in_pieces_and_one_without_an_end_is_bounded():
    lines = Lines()
    said = kept_line(12) + kept_line(13)
    assert [lines.feed(said[n : n + 1]) for n in range(len(said))].count([]) == len(said) - 2
    with pytest.raises(ResumptionError, match="wallaroo-resume 1 N"):
        lines.feed(b"w" * 65)
