"""How a streaming query gets its input: a feed in the driver, asked over a Unix socket.

Spark plans micro-batches in a Python process of its own. That process asks the driver, which holds
the input, how much input there is and what lies between two offsets. So the input log has one
owner, an answer comes as soon as there is input, and the frames travel inside Spark's input
partitions: executors need no file of this engine. Offsets are integers; Spark may keep more with
them.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import socket
import threading
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Any, Protocol

_numbers = itertools.count()


class Feed(Protocol):
    """The questions Spark asks; the methods are called from the server's threads."""

    def first(self) -> int:
        """Return the offset at which a new query begins."""

    def latest(self, start: int) -> int:
        """Return where a batch that begins at `start` should end; `start` if there is nothing.

        Input before `start` will not be asked for again: Spark has committed it. May wait for
        input; a query that is stopped ends after the answer.
        """

    def kept(self, start: int, end: int) -> dict[str, Any]:
        """Return what Spark is to keep, as JSON, with the end of a batch that it begins now."""
        del start, end
        return {}

    def blocks(self, start: int, end: int) -> list[bytes]:
        """Return the input between two offsets, a block for each task; the same every time."""


class FeedServer:
    """Serves a feed until closed; a context manager.

    Args:
        feed: what to serve.
        directory: directory of the socket. Only its owner may use it: a process that can connect
            can read the input log.

    Attributes:
        address: of the socket.
    """

    def __init__(self, feed: Feed, directory: Path) -> None:
        self._feed = feed
        self.address = str(directory / f"feed{next(_numbers)}")
        self._listener = Listener(self.address, "AF_UNIX")
        self._open: set[Connection] = set()
        self._closed = False
        self._lock = threading.Lock()  # guards `_open` and `_closed`
        threading.Thread(target=self._accept, name="feed", daemon=True).start()

    def __enter__(self) -> FeedServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop serving."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for connection in self._open:
                _hang_up(connection)
        with contextlib.suppress(OSError), Client(self.address, "AF_UNIX"):
            pass  # wakes the thread that accepts
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._open.add(connection)
                if self._closed:
                    _hang_up(connection)
            threading.Thread(
                target=self._serve, args=(connection,), name="feed", daemon=True
            ).start()

    def _serve(self, connection: Connection) -> None:
        with contextlib.suppress(OSError, EOFError):
            while True:
                for part in self._answer(json.loads(connection.recv_bytes())):
                    connection.send_bytes(part)
        with self._lock:
            self._open.remove(connection)
            connection.close()

    def _answer(self, request: dict[str, Any]) -> list[bytes]:
        match request:
            case {"ask": "first"}:
                return [b"%d" % self._feed.first()]
            case {"ask": "latest", "start": start}:
                end = self._feed.latest(start)
                kept = self._feed.kept(start, end) if end > start else {}
                return [json.dumps({"next": end, **kept}).encode()]
            case {"ask": "blocks", "start": start, "end": end}:
                blocks = self._feed.blocks(start, end)
                return [b"%d" % len(blocks), *blocks]
        raise ValueError(f"a feed cannot be asked {request}")


def _hang_up(connection: Connection) -> None:
    """End a connection that another thread reads or writes; that thread closes it.

    Closing it here would take the descriptor from under a call, and the next file that is opened
    could get its number.
    """
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as ended:
        ended.shutdown(socket.SHUT_RDWR)


class FeedClient:
    """Asks a `Feed`; connects when first asked."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._connection: Connection | None = None

    def first(self) -> int:
        """Return the offset at which a new query begins."""
        return int(self._ask(ask="first"))

    def offset(self, start: int) -> dict[str, Any]:
        """Return where a batch that begins at `start` should end, with what Spark is to keep."""
        offset: dict[str, Any] = self._ask(ask="latest", start=start)
        return offset

    def blocks(self, start: int, end: int) -> list[bytes]:
        """Return the input between two offsets, a block for each task."""
        count = self._ask(ask="blocks", start=start, end=end)
        assert self._connection is not None
        return [self._connection.recv_bytes() for _ in range(count)]

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _ask(self, **request: Any) -> Any:
        if self._connection is None:
            self._connection = Client(self._address, "AF_UNIX")
        self._connection.send_bytes(json.dumps(request).encode())
        return json.loads(self._connection.recv_bytes())
