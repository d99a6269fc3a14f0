"""The limits of a listener: how many connections are open, and how long one may send nothing."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable
from typing import Protocol

from wallaroo.transport.sockets import room_for_connections


class ConnectionLimit:
    """How many connections may be open at the same time.

    Args:
        most: what was asked for; the limit of open files may allow fewer.

    Attributes:
        most: the limit.
        reason: why it is this number, for a log.
    """

    def __init__(self, most: int) -> None:
        self.most = min(most, room_for_connections())
        self.reason = (
            "the most it takes (--max-connections)"
            if self.most == most
            else "as many as the limit of open files leaves room for (ulimit -n)"
        )
        self._open: list[socket.socket] = []  # some may be closed by now

    def admit(self, sock: socket.socket) -> bool:
        """Count a connection until its socket is closed; `False` if there is no room for it."""
        if len(self._open) >= self.most:
            self._open = [one for one in self._open if one.fileno() >= 0]
        if len(self._open) >= self.most:
            return False
        self._open.append(sock)
        return True


class MayBeIdle(Protocol):
    """A connection that knows when a byte last came."""

    def close_if_idle(self, timeout: float) -> None:
        """Close if nothing came for `timeout` seconds."""


class IdleSweep:
    """Closes idle connections from time to time.

    Args:
        connections: those that are open; read again at each check.
        timeout: seconds without a byte after which a connection is closed; `None`: never.
    """

    def __init__(self, connections: Iterable[MayBeIdle], timeout: float | None) -> None:
        self._connections = connections
        self._timeout = timeout
        self._next: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Check now, and from time to time, in the running loop."""
        if self._timeout is None:
            return
        for connection in list(self._connections):
            connection.close_if_idle(self._timeout)
        self._next = asyncio.get_running_loop().call_later(self._timeout / 4, self.start)

    def stop(self) -> None:
        """Check no more."""
        if self._next is not None:
            self._next.cancel()
