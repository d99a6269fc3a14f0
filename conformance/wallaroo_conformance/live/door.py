"""Brokers that cannot be reached until an engine has said so."""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import socketserver
import threading
from collections.abc import Callable

from wallaroo.overriding import override


class Door(socketserver.ThreadingTCPServer):
    """An address at which brokers cannot be reached until it is `open`; then they are, from there.

    A client asks there who the brokers are, and goes on to the addresses that they say.

    Args:
        brokers: the address of one of them; of several, the first counts.
    """

    daemon_threads = True

    def __init__(self, brokers: str) -> None:
        host, _, port = brokers.partition(",")[0].rpartition(":")
        self.brokers = host, int(port)
        self._is_open = False
        super().__init__(("127.0.0.1", 0), _PassOn, bind_and_activate=False)
        self.server_bind()  # nobody else gets the port, and nobody listens
        self.address = f"127.0.0.1:{self.server_address[1]}"

    def __exit__(self, *_: object) -> None:
        if self._is_open:
            self.shutdown()
        self.server_close()

    def open(self) -> None:
        """Let everybody in."""
        self._is_open = True
        self.server_activate()
        threading.Thread(target=self.serve_forever, name="door", daemon=True).start()


class _PassOn(socketserver.BaseRequestHandler):
    """Passes on what comes from either side, until one of them ends."""

    server: Door

    @override
    def handle(self) -> None:
        with contextlib.suppress(OSError), socket.create_connection(self.server.brokers) as there:
            other_side = {self.request: there, there: self.request}
            while True:
                for came in select.select([*other_side], [], [])[0]:
                    if not (some := came.recv(65_536)):
                        return
                    other_side[came].sendall(some)


class Told(logging.Handler):
    """Calls a function once, when something is logged that contains some words.

    Attributes:
        said: whether it was.
    """

    def __init__(self, words: str, call: Callable[[], None]) -> None:
        super().__init__()
        self._words = words
        self._call = call
        self.said = threading.Event()

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if self._words in record.getMessage() and not self.said.is_set():
            self.said.set()
            self._call()
