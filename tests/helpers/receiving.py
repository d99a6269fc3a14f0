"""The peers of served applications: what a sink's peer gets, and how a source's hands over."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable


def eventually(
    condition: Callable[[], object],
    seconds: float = 60.0,
    why: Callable[[], object] = lambda: "it did not come about",
) -> None:
    """Wait until a condition holds; looked at often first, and less often the longer it takes.

    Args:
        condition: what must hold.
        seconds: how long it may take.
        why: what to say if it does not.
    """
    begun = time.monotonic()
    while not condition():
        waited = time.monotonic() - begun
        assert waited < seconds, why()
        time.sleep(min(max(0.002, waited / 20), 0.1))


def hand_over(address: tuple[str, int], data: bytes) -> None:
    """Send, half-close, and wait until the source has closed its side: all is taken (frame-4)."""
    with socket.create_connection(address, timeout=300) as sock:
        sock.sendall(data)
        with contextlib.suppress(OSError):  # it is reset already: recv says so
            sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""


def reset(sock: socket.socket) -> None:
    """Close a connection so that the other side learns of it by a reset."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def read_exactly(sock: socket.socket, count: int) -> bytes:
    """Return the next `count` bytes of a connection."""
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        assert piece, "closed too early"
        data += piece
    return data


class Receiver:
    """What a sink's peer has got, over all its connections."""

    def __init__(self, port: int = 0) -> None:
        self.listener = socket.create_server(("127.0.0.1", port))
        self.port = self.listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self._got: list[bytearray] = []
        self._readers: list[threading.Thread] = []
        self._socks: list[socket.socket] = []
        self._names: list[object] = []  # of the peers; a socket that was reset tells none
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def got(self, connections: int) -> list[bytes]:
        """What each of so many connections brought, once they have ended."""
        eventually(lambda: len(self._readers) == connections)
        for reader in self._readers:
            reader.join(60)
        return [bytes(got) for got in self._got]

    @property
    def so_far(self) -> list[bytes]:
        """What each connection has brought by now."""
        return [bytes(got) for got in self._got]

    def everything(self) -> bytes:
        """All that was brought, once the connections that were made until now have ended."""
        with socket.create_connection(("127.0.0.1", self.port), 60) as last:  # behind all others
            name = last.getsockname()
            eventually(lambda: name in self._names)
        for reader in [*self._readers]:
            reader.join(60)
        return b"".join(self.so_far)

    @property
    def data(self) -> bytes:
        """What the only connection brought."""
        (data,) = self.got(1)
        return data

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, name = self.listener.accept()
                self._socks.append(sock)
                self._got.append(bytearray())
                reader = threading.Thread(target=self._read, args=(sock, self._got[-1]))
                reader.start()
                self._readers.append(reader)
                self._names.append(name)

    def _read(self, sock: socket.socket, got: bytearray) -> None:
        with sock, contextlib.suppress(OSError):
            while data := sock.recv(65536):
                got += data

    def close(self) -> None:
        """End all connections."""
        # Closing alone does not wake a thread that accepts or reads.
        _shut(self.listener)
        self._thread.join(60)
        for sock in self._socks:
            _shut(sock)
        for reader in self._readers:
            reader.join(60)


def read_all(peer: socket.socket) -> None:
    """Read what a peer sends, to its end."""
    while peer.recv(1 << 20):
        pass


def _shut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
    sock.close()
