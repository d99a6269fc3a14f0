"""``wallaroo receive --resume FILE``: a sink's peer that remembers (sink-9).

What comes is appended to the file as it is, so the file's length is how much of the sink's stream
is kept. The sink is told that at the beginning, and again once more is on the disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from wallaroo.cli.receiving import Receiver
from wallaroo.errors import UsageError
from wallaroo.overriding import override
from wallaroo.text import reason
from wallaroo.transport.listener import keep_alive
from wallaroo.transport.private import sync_directory
from wallaroo.transport.resumption import kept_line

_SYNC = 0.02  # seconds of what comes that are synced to the disk together
_CHUNK = 1 << 20  # bytes of the file that are looked through at a time


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file to append to it; it is made if it is missing.

    Args:
        path: the file; no other process may have it open this way.

    Raises:
        UsageError: it cannot be opened, is no regular file, or another process has it.
    """
    try:
        file = path.open("ab+", buffering=0)
        sync_directory(path.absolute().parent)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {reason(error)}") from error
    with file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UsageError(f"{path} is no regular file: its length does not tell what is kept")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"{path} is in use by another process") from None
        yield file


class StoringReceiver(Receiver):
    """Appends what one sink sends to a file, and tells it how much is there.

    What the file has already counts as received. A message is a line.

    Args:
        file: the file, opened with `opened`.
        unit: what is counted: ``messages``, or ``bytes``.
        expected: number of these after which to end; `None`: never.
    """

    def __init__(self, file: BinaryIO, unit: str, expected: int | None) -> None:
        super().__init__(file, unit, expected)
        self._counts_bytes = unit == "bytes"
        file.seek(0)
        chunks = iter(lambda: file.read(_CHUNK), b"")
        self.received = sum([self._count(chunk) for chunk in chunks])

    @override
    def connection(self) -> asyncio.Protocol:
        return _Connection(self)

    def keep(self, data: bytes) -> None:
        """Append what has come, up to the last message that is expected."""
        if self.ended:
            return
        if self.expected is not None and self.received + self._count(data) >= self.expected:
            data = self._first(data, self.expected - self.received)
        self.received += self._count(data)
        try:
            while data:
                data = data[self.output.write(data) :]
        except OSError as error:
            self.end(error)

    def said(self) -> bytes:
        """Have on the disk what has come, and return the line that says how much that is.

        Returns:
            The line; empty if the system cannot write to the disk, which ends the run.
        """
        try:
            os.fsync(self.output.fileno())
        except OSError as error:
            self.end(error)
            return b""
        return kept_line(os.fstat(self.output.fileno()).st_size)

    def _count(self, data: bytes) -> int:
        return len(data) if self._counts_bytes else data.count(b"\n")

    def _first(self, data: bytes, number: int) -> bytes:
        """Return the first messages that end in `data`."""
        if self._counts_bytes:
            return data[:number]
        return b"".join([line + b"\n" for line in data.split(b"\n")[:number]])


class _Connection(asyncio.Protocol):
    def __init__(self, receiver: StoringReceiver) -> None:
        self._receiver = receiver
        self._telling: asyncio.TimerHandle | None = None
        self._refused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._refused = self._receiver.open > 0
        if self._refused:
            self._receiver.refuse(transport, "another sink is connected; it is refused")
            return
        self._receiver.open += 1
        keep_alive(transport.get_extra_info("socket"))
        # Twice: it will be said again, so the sink need not guess.
        transport.write(2 * self._receiver.said())

    def data_received(self, data: bytes) -> None:
        if self._refused:
            return
        self._receiver.keep(data)
        if self._receiver.received == self._receiver.expected:
            self._tell()  # there is no later
            self._receiver.end(None)
        elif self._telling is None:
            self._telling = asyncio.get_running_loop().call_later(_SYNC, self._tell)

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._refused:
            self._receiver.open -= 1
            if self._telling is not None:
                self._telling.cancel()

    def _tell(self) -> None:
        self._telling = None
        self._transport.write(self._receiver.said())
