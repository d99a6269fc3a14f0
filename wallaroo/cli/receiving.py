"""Listening until enough has come: what all forms of ``wallaroo receive`` do."""

from __future__ import annotations

import abc
import asyncio
import contextlib
import signal
import sys
from dataclasses import dataclass
from typing import IO

from wallaroo.config import format_address
from wallaroo.errors import WallarooError
from wallaroo.text import reason


@dataclass
class Receiver(abc.ABC):
    """Takes connections, and writes what comes on them.

    Args:
        output: the stream to write to. If writing blocks, the senders have to wait.
        unit: what is counted: messages, or bytes.
        expected: number of these after which to end; `None`: never.
        received: how many there are.
        open: number of connections.
        refused: number of connections for which there was no room.
        broken: number of connections whose bytes were wrong.
    """

    output: IO[bytes]
    unit: str
    expected: int | None
    received: int = 0
    open: int = 0
    refused: int = 0
    broken: int = 0

    @abc.abstractmethod
    def connection(self) -> asyncio.Protocol:
        """Return what takes one connection."""

    async def run(self, listen: tuple[str, int], timeout: float | None) -> int:
        """Listen until enough came, `timeout` seconds passed, or a signal; return the exit code."""
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = loop.create_future()
        try:
            server = await loop.create_server(self.connection, *listen)
        except OSError as error:
            where = format_address(*listen)
            raise WallarooError(f"cannot listen on {where}: {reason(error)}") from error
        for listener in server.sockets:  # a name may stand for several addresses
            where = format_address(*listener.getsockname()[:2])
            print(f"listening on {where}", file=sys.stderr, flush=True)
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.end, None)
        if self.expected is not None and self.received >= self.expected:
            self.end(None)
        try:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._ended, timeout)
        finally:
            server.close()
        self.output.flush()
        enough = self.expected is None or self.received >= self.expected
        of = "" if self.expected is None else f" of {self.expected:,}"
        print(f"received {self.received:,}{of} {self.unit}", file=sys.stderr)
        if self.refused:
            print(f"refused {self.refused:,} connections", file=sys.stderr)
        return 0 if enough and not self.broken else 1

    @property
    def ended(self) -> bool:
        """Whether nothing more is written."""
        return self._ended.done()

    def end(self, error: Exception | None) -> None:
        """End the run."""
        if self.ended:
            return
        if error is None:
            self._ended.set_result(None)
        else:
            self._ended.set_exception(error)

    def refuse(self, transport: asyncio.Transport, why: str) -> None:
        """Refuse a connection; `why` is said of the first one."""
        if not self.refused:
            say(peer_of(transport), why)
        self.refused += 1
        transport.abort()


def peer_of(transport: asyncio.Transport) -> str:
    """Return the address of a connection's other side, for people."""
    peer = transport.get_extra_info("peername")  # None if it has gone already
    return format_address(*peer[:2]) if peer else "a sink that is gone"


def say(peer: str, text: str) -> None:
    """Say something about a connection."""
    print(f"connection from {peer}: {text}", file=sys.stderr, flush=True)
