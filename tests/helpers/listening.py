"""A listener that runs, and what it has delivered."""

from __future__ import annotations

import socket

import wallaroo
from wallaroo.frames import frames
from wallaroo.transport.listener import Listener

PAYLOADS = [b"one", b"", b"three", bytes(300), b"", b"x"]
STREAM = frames(PAYLOADS)


@wallaroo.decoder(header_length=4, length_fmt=">I")
def decode(payload):
    return payload


def source(**options):
    return wallaroo.TCPSourceConfig("127.0.0.1", 0, decode, **options)


class Edge:
    """A listener, running, and what it has delivered."""

    def __init__(self, loop_thread, *names, **options):
        self.thread = loop_thread
        self.delivered: dict[str, list[bytes]] = {name: [] for name in names}
        self.order: list[tuple[str, bytes]] = []
        sources = {name: source() for name in names}
        self.listener = Listener(sources, self.deliver, **options)
        loop_thread.call(self.listener.start)

    def deliver(self, name, payloads):
        self.delivered[name] += payloads
        self.order += [(name, payload) for payload in payloads]

    def connect(self, name="a"):
        return socket.create_connection(self.listener.addresses[name], timeout=20)

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
