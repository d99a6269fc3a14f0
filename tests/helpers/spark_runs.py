"""What tests of live runs on Spark share: a sink's peer, patience, and whose process a JVM is."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import psutil


class Receiver:
    """Takes what comes on any number of connections."""

    def __init__(self):
        self.data = b""
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()
        self._open = []

    def _accept(self):
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self._open.append(connection)
            thread = threading.Thread(target=self._read, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _read(self, connection):
        while data := connection.recv(65536):
            self.data += data

    def close(self):
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        for connection in self._open:
            connection.close()


def until(condition, seconds=300.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def child_of(pid):
    with contextlib.suppress(psutil.NoSuchProcess):  # it, or the child, has just ended
        for child in psutil.Process(pid).children():
            if any("SparkSubmit" in word for word in child.cmdline()):
                return child.pid
    return None
