"""The demo's sender and receiver: plain sockets, independent of the engine's own code."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence

from wallaroo.frames import frames

_LINES_PER_SEND = 500
_READ = 1 << 18


class Receiver:
    """Listens as a sink's peer and keeps all that comes."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._chunks: list[bytes] = []
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()
        self.lines = 0  # received so far

    @property
    def address(self) -> str:
        """Where it listens, as ``HOST:PORT``."""
        host, port = self._listener.getsockname()
        return f"{host}:{port}"

    def received(self) -> bytes:
        """Return all that has come."""
        return b"".join(self._chunks)

    def wait(self, seconds: float) -> None:
        """Wait until the other side has closed the connection."""
        self._thread.join(seconds)

    def close(self) -> None:
        """Stop listening; what is connected is read until its other side closes."""
        self._listener.close()

    def _receive(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return  # closed before the sink connected
        with connection:
            while chunk := _read(connection):
                self._chunks.append(chunk)
                self.lines += chunk.count(b"\n")


class Sender:
    """Sends lines as frames, as fast as they are taken."""

    def __init__(self, address: tuple[str, int], lines: Sequence[str]) -> None:
        self.error: OSError | None = None
        self._connection = socket.create_connection(address, timeout=10.0)
        self._connection.settimeout(None)
        self._lines = lines
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Wait until all is sent, and the source has closed its side."""
        self._thread.join(seconds)

    def _send(self) -> None:
        try:
            with self._connection as connection:
                for start in range(0, len(self._lines), _LINES_PER_SEND):
                    lines = self._lines[start : start + _LINES_PER_SEND]
                    connection.sendall(frames([line.encode() for line in lines]))
                connection.shutdown(socket.SHUT_WR)
                connection.recv(1)  # the source closes its side once it has everything (frame-4)
        except OSError as error:
            self.error = error


def _read(connection: socket.socket) -> bytes:
    try:
        return connection.recv(_READ)
    except ConnectionResetError:  # the engine was killed
        return b""
