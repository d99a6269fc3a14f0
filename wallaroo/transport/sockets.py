"""The sockets that sources listen on, and the options that accepted connections inherit.

A connection ends with a reset, however the process ends, unless `end_in_order` was called for it:
only that lets its sender see an orderly close, which means that everything was taken (frame-4).
The options are set on the listening socket and inherited, so every connection has them from its
first moment.
"""

from __future__ import annotations

import math
import resource
import socket
import struct
from collections.abc import Sequence
from typing import Any

from wallaroo.transport.threads import in_child

_BACKLOG = 1024  # connections that may wait to be accepted
_KEEPALIVE = (  # a sender whose machine is gone is noticed after about two minutes
    ("TCP_KEEPIDLE", 60),  # seconds without a byte until the first probe
    ("TCP_KEEPALIVE", 60),  # the same on macOS
    ("TCP_KEEPINTVL", 15),  # seconds between probes
    ("TCP_KEEPCNT", 4),  # probes without an answer
)

_KEPT_FILES = 64  # open files reserved for other uses; half of the limit if that is less


def room_for_connections() -> float:
    """Return how many connections the limit of open files allows."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return math.inf
    return max(1, limit - min(_KEPT_FILES, limit // 2))


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens, does not block, and is closed in a forked child.

    Raises:
        OSError: the system refuses to listen on that address.
    """
    family, kind, protocol, _, address = _resolved(host, port)[0]
    sock = socket.socket(family, kind, protocol)
    in_child(sock.close)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        _linger(sock, reset=True)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEPALIVE:
            if hasattr(socket, name):
                sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        sock.bind(address)
        sock.listen(_BACKLOG)  # last: connections inherit the options set before this
    except BaseException:
        sock.close()
        raise
    return sock


def end_in_order(sock: Any) -> None:
    """Make closing an accepted socket an orderly close: everything was taken (frame-4)."""
    _linger(sock, reset=False)


def _linger(sock: Any, *, reset: bool) -> None:
    """Set whether closing a socket resets its connection."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", reset, 0))


def _resolved(host: str, port: int) -> Sequence[Any]:
    """Return the host's addresses, IPv4 first: what is printed is one address."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return sorted(found, key=lambda info: info[0] != socket.AF_INET)
