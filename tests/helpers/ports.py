"""Ports: those that a process under test is told before it takes them, and who listens."""

from __future__ import annotations

import contextlib
import os
import random
import socket

import psutil

_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw15").removeprefix("gw")) % 16
# Below those that systems give to whoever asks for any port. A process of the tests has its own.
_PORTS = range(20_000 + _WORKER, 32_000, 16)
_untried = random.SystemRandom().sample(_PORTS, len(_PORTS))


def free_port() -> int:
    """Return a port of 127.0.0.1 where nobody listens, and that no other socket gets by chance.

    A port that the system chose is not that: once closed here, it may be given to another test
    before the process under test takes it.
    """
    while _untried:
        port = _untried.pop()
        with socket.socket() as one, contextlib.suppress(OSError):
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(("127.0.0.1", port))
            return port
    raise OSError(f"no port is free from {_PORTS.start} to {_PORTS.stop - 1}")


def listening(port: int) -> list[str]:
    """Return the addresses at which somebody listens to a port."""
    return [
        connection.laddr.ip
        for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == port
    ]
