"""The receiver's reading thread: it only takes bytes from sockets and notes the time."""

from __future__ import annotations

import errno
import selectors
import socket
import time
from collections import deque

_READ = 1 << 18  # bytes
_MOST_PENDING = 1 << 26  # bytes that are read and not yet fetched
_LOOK_SECONDS = 0.05  # between looks whether to stop
_ACCEPT_AGAIN_SECONDS = 0.5
_NOTHING_LEFT = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

Read = tuple[int, int, bytes]
"""Connection, monotonic time of the read in ns, bytes; no bytes mean that it ended."""


class Reader:
    """Reads every connection to a listener, until it is stopped.

    Args:
        listener: non-blocking.

    Attributes:
        accepted: how many connections there were.
        closed: how many of them have ended.
        held_up: how often the reading had to wait for `read_so_far`.
        accept_error: why a connection could not be accepted, once that has happened.
    """

    def __init__(self, listener: socket.socket) -> None:
        self.accepted = 0
        self.closed = 0
        self.held_up = 0
        self.accept_error: str | None = None
        self._reads: deque[Read] = deque()
        self._fetched = 0
        self._bytes = 0
        self._selector = selectors.DefaultSelector()
        self._listener = listener
        self._accept_from = 0.0  # the monotonic time at which the listener is looked at again
        self._stopping = False

    def read_so_far(self) -> list[Read]:
        """Return what was read since the last call."""
        fetched = [self._reads.popleft() for _ in range(len(self._reads))]
        self._fetched += sum(len(data) for _, _, data in fetched)
        return fetched

    def stop(self) -> None:
        """Let the thread end soon."""
        self._stopping = True

    def run(self) -> None:
        """Read until stopped; the body of the thread."""
        listening = False
        while not self._stopping:
            if not listening and time.monotonic() >= self._accept_from:
                self._selector.register(self._listener, selectors.EVENT_READ, None)
                listening = True
            for key, _ in self._selector.select(_LOOK_SECONDS):
                if key.data is not None:
                    self._receive(key)
                elif not self._accept():
                    self._selector.unregister(self._listener)
                    listening = False
            if self._bytes - self._fetched > _MOST_PENDING:
                self.held_up += 1
                while self._bytes - self._fetched > _MOST_PENDING and not self._stopping:
                    time.sleep(0.001)
        self._listener.close()
        for key in list(self._selector.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()

    def _receive(self, key: selectors.SelectorKey) -> None:
        sock = key.fileobj
        assert isinstance(sock, socket.socket)
        try:
            data = sock.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._reads.append((key.data, time.monotonic_ns(), data))
        if not data:
            self.closed += 1
            self._selector.unregister(sock)
            sock.close()
        self._bytes += len(data)

    def _accept(self) -> bool:
        """Accept a connection; return False when this process has no file or memory left for one.

        The connection then stays in the listener's queue, and the listener ready: to look at it
        again at once would take a whole processor from the connections that are being read.
        """
        try:
            sock, _ = self._listener.accept()
        except OSError as error:
            if error.errno not in _NOTHING_LEFT:
                return True  # the other side has gone already
            if self.accept_error is None:
                self.accept_error = f"the receiver could not accept a connection: {error.strerror}"
            self._accept_from = time.monotonic() + _ACCEPT_AGAIN_SECONDS
            return False
        sock.setblocking(False)
        self._selector.register(sock, selectors.EVENT_READ, self.accepted)
        self.accepted += 1
        return True
