"""A connection to one of the application's sources."""

from __future__ import annotations

import socket
import time

from wallaroo_loadgen.common.config import Address

_AGAIN_SECONDS = 0.1


def connect(to: Address, wait: float) -> socket.socket:
    """Connect, trying again for `wait` seconds while nobody listens.

    Raises:
        ConnectionError: when nobody listens in that time.
    """
    deadline = time.monotonic() + wait
    while True:
        try:
            sock = socket.create_connection(to, timeout=max(0.1, deadline - time.monotonic()))
        except OSError as error:
            if time.monotonic() >= deadline:
                host, port = to
                reason = error.strerror or str(error)
                message = f"nobody listens at {host}:{port} (waited {wait:g} s): {reason}"
                raise ConnectionError(message) from None
            time.sleep(_AGAIN_SECONDS)
        else:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(None)
            return sock
