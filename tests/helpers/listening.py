"""A listener that runs, and what was received over it."""

from __future__ import annotations

import socket
import threading

from small_steps import decode

import wallaroo
from wallaroo.frames import frames
from wallaroo.transport.interfaces import Receiver
from wallaroo.transport.listener import Listener

PAYLOADS = [b"one", b"", b"three", bytes(300), b"", b"x"]
STREAM = frames(PAYLOADS)


def source(**options):
    return wallaroo.TCPSourceConfig("127.0.0.1", 0, decode, **options)


class Received(Receiver):
    """An engine's part that keeps what it receives.

    Args:
        sequenced: called with what closes a connection in order; by default it does at once.
    """

    def __init__(self, sequenced=None):
        self.order: list[tuple[str, bytes]] = []
        self.problem = None
        self.ended = threading.Event()
        self._sequenced = sequenced or (lambda close: close())

    @property
    def payloads(self):
        return [payload for _, payload in self.order]

    def receive(self, source, payloads):
        self.order += [(source, payload) for payload in payloads]

    def receive_records(self, records):
        raise AssertionError(records)

    def receive_run(self, source, run, at):
        raise AssertionError(run)

    def when_sequenced(self, close):
        self._sequenced(close)

    def sinks_have_room(self):
        raise AssertionError

    def input_ended(self, problem):
        self.problem = problem
        self.ended.set()

    def input_failed(self, problem):
        raise AssertionError(problem)

    def outputs_broken(self, problem):
        raise AssertionError(problem)


class Edge(Received):
    """A listener, running, and what was received over it."""

    def __init__(self, loop_thread, *names, when_sequenced=None, **options):
        super().__init__(when_sequenced)
        self.thread = loop_thread
        self.listener = Listener({name: source() for name in names}, self, **options)
        loop_thread.call(self.listener.start)

    @property
    def received(self):
        return self.listener.received

    @property
    def dropped(self):
        return self.listener.connections.dropped

    def of(self, name):
        return [payload for source, payload in self.order if source == name]

    def connect(self, name="a"):
        return socket.create_connection(self.listener.addresses[name], timeout=60)

    def close(self):
        self.thread.call(self.listener.close)


def closed_by_peer(sock):
    """Wait for the other side to close; whether it says so by FIN or RST is its affair."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def told_that_all_is_taken(sock):
    """Whether the other side closes in order, and does not reset the connection."""
    try:
        return sock.recv(1) == b""
    except ConnectionResetError:
        return False
