"""The receiver's reading: a thread for each connection only takes bytes and notes the time."""

from __future__ import annotations

import errno
import socket
import threading
import time
from collections import deque

_READ = 1 << 18  # bytes
_MOST_PENDING = 1 << 26  # bytes that are read and not yet fetched
_NOTHING_LEFT = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

Read = tuple[int, int, bytes]
"""Connection, monotonic time of the read in ns, bytes."""


class Reader:
    """Reads every connection to a listener, until the process ends.

    Attributes:
        accepted: how many connections there were.
        closed: how many of them have ended.
        held_up: how often the reading had to wait for `read_so_far`.
        problem: why no connection can be accepted any more, once that is so.
    """

    def __init__(self, listener: socket.socket) -> None:
        self.accepted = 0
        self.closed = 0
        self.held_up = 0
        self.problem: str | None = None
        self._reads: deque[Read] = deque()
        self._pending = 0
        self._counting = threading.Lock()
        self._listener = listener

    def start(self) -> None:
        """Begin to accept connections."""
        threading.Thread(target=self._accept, daemon=True).start()

    def read_so_far(self) -> list[Read]:
        """Return what was read since the last call."""
        fetched = [self._reads.popleft() for _ in range(len(self._reads))]
        with self._counting:
            self._pending -= sum(len(data) for _, _, data in fetched)
        return fetched

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError as error:
                if error.errno in _NOTHING_LEFT:
                    self.problem = f"the receiver cannot accept a connection: {error.strerror}"
                    return
                continue  # the other side has gone already
            threading.Thread(target=self._read, args=(sock, self.accepted), daemon=True).start()
            self.accepted += 1

    def _read(self, sock: socket.socket, number: int) -> None:
        with sock:
            while data := _received(sock):
                self._reads.append((number, time.monotonic_ns(), data))
                with self._counting:
                    self._pending += len(data)
                    full = self._pending > _MOST_PENDING
                    self.held_up += full
                while full:
                    time.sleep(0.001)
                    full = self._pending > _MOST_PENDING
        with self._counting:
            self.closed += 1


def _received(sock: socket.socket) -> bytes:
    """Return the next bytes; none once the other side has closed, in order or not."""
    try:
        return sock.recv(_READ)
    except OSError:
        return b""
