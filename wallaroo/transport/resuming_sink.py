"""TCP out to a peer that remembers: each byte of the stream once, whoever was killed (sink-9).

Outputs are delivered once the peer says that it has kept them. A peer may say that at its
connections only. Then they are delivered once its kernel has acknowledged them, as for every TCP
sink, and the last `SILENT` bytes of these are kept all the same: so many may have been on their way
from its kernel to its disk when it was killed.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Callable

from wallaroo.overriding import override
from wallaroo.topology import SinkId
from wallaroo.transport.byte_strings import ByteStrings
from wallaroo.transport.resumption import LONGEST_LINE, NEW, Lines, ResumptionError, Stream
from wallaroo.transport.sink import DEFAULT_LIMIT, Backoff, TCPSink

SILENT = 8 << 20
"""Bytes that are kept behind for a peer that says at its connections only what it has."""

_LOOK = 0.01  # seconds between looks at what the peer has, while a stop waits
_TIMEOUT = 5.0  # seconds until a peer must have said what it has (sink-9)


class ResumingSink(TCPSink):
    """A sink's connection to a peer that remembers.

    Args:
        sink: see `TCPSink`.
        host: see `TCPSink`.
        port: see `TCPSink`.
        stream: the stream as an earlier run on the checkpoint has left it.
        limit: see `TCPSink`.
        backoff: see `TCPSink`.
        on_room: see `TCPSink`.
    """

    def __init__(
        self,
        sink: SinkId,
        host: str,
        port: int,
        stream: Stream = NEW,
        *,
        limit: int = DEFAULT_LIMIT,
        backoff: Backoff | None = None,
        on_room: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(sink, host, port, limit=limit, backoff=backoff, on_room=on_room)
        self._behind = deque([stream.data])  # delivered, and the peer may lack it
        self._first = stream.first  # number of the first byte of that
        self._following = stream.end  # number of the first byte that is not delivered
        self._told = 0  # the peer has kept the bytes before this one
        self._complete = False  # all that earlier runs have sent has been written again
        self._sent = 0  # then: no peer can have more bytes than these
        # About the current connection:
        self._origin = 0  # number of its first byte
        self._tells = False  # the peer says not only at its beginning what it has kept
        self._ahead = 0  # bytes that the peer has, and this run has not written again so far
        self._lines = Lines()

    @property
    def end(self) -> int:
        """Number of bytes of the stream so far."""
        return self._following + sum([block.size for block in self._kept])

    def stream(self, end: int) -> Stream:
        """Return the stream as it was when it had `end` bytes, for the checkpoint."""
        first = self._first  # a write may be much longer than what is to be kept
        if not self._tells:
            first = max(first, self._following - SILENT)
        return Stream(first, self._from(first)).up_to(end)

    def complete(self) -> None:
        """Refuse from now on a peer that has more: all that earlier runs have sent is written."""
        if self._complete:
            return
        self._complete, self._sent = True, self.end
        if self._sock is not None and self._ahead:
            self._lost(self._too_much(self._told))

    async def kept_by_peer(self) -> None:
        """Wait until the peer has the whole stream, as far as it says that or its kernel does.

        What an earlier connection or run has delivered may have been lost with the peer's process.
        """
        while self._told < self.end and (
            self._sock is None or self._origin + self._acknowledged(self._sock) < self.end
        ):
            await asyncio.sleep(_LOOK)

    @override
    async def _opened(self) -> socket.socket:
        sock = await super()._opened()
        self._lines = Lines()
        try:
            said = await self._said(sock)
        except BaseException:
            sock.close()
            raise
        self._told = self._origin = said[-1]
        self._tells = len(said) > 1
        return sock

    async def _said(self, sock: socket.socket) -> list[int]:
        """Return how many bytes of the stream the peer has kept, of each line that it said.

        Raises:
            OSError: it does not say that, or the stream has other bytes here.
        """
        said: list[int] = []
        try:
            async with asyncio.timeout(_TIMEOUT):
                while not said:
                    if not (data := await self._loop.sock_recv(sock, LONGEST_LINE)):
                        raise ConnectionAbortedError(None, "it has closed the connection")
                    said = self._lines.feed(data)
        except TimeoutError:
            raise ConnectionAbortedError(
                None, f"it has not said within {_TIMEOUT:g} s how many bytes it has kept"
            ) from None
        except ResumptionError as error:
            raise ConnectionAbortedError(None, str(error)) from None
        kept = said[-1]
        if kept < self._first:
            raise ConnectionAbortedError(
                None,
                f"it has kept {kept:,} bytes of the sink's stream, and those before byte "
                f"{self._first:,} are gone here",
            )
        if self._complete and kept > self._sent:
            raise ConnectionAbortedError(None, self._too_much(kept))
        return said

    def _too_much(self, kept: int) -> str:
        return (
            f"it has kept {kept:,} bytes, and {self._sent:,} of the sink's stream have been sent: "
            "what it has is of another stream, which began with another checkpoint or run"
        )

    @override
    def _begin(self) -> int:
        self._ahead = max(0, self._origin - self.end)
        rest = self._from(self._origin)
        self._unsent = deque([memoryview(rest)] if rest else [])
        return self._following - self._origin

    def _from(self, number: int) -> bytes:
        """Return the stream from a byte on, if there is any of it."""
        outputs = [block.data for block in self._kept]
        return b"".join([*self._behind, *outputs])[number - self._first :]

    @override
    def _hand_over(self, data: bytes) -> None:
        known = min(len(data), self._ahead)
        self._ahead -= known
        if known < len(data):
            self._unsent.append(memoryview(data)[known:])

    @override
    def _send(self) -> None:
        super()._send()
        self._sent = max(self._sent, self._origin + self._handed)

    @override
    def _hear(self, data: bytes) -> None:
        if not data and self._tells:
            self._lost("it has closed the connection")
            return
        super()._hear(data)
        try:
            said = self._lines.feed(data)
        except ResumptionError as error:
            self._lost(str(error))
            return
        for kept in said:
            if not self._told <= kept <= self._origin + self._handed:
                self._lost(
                    f"it said that it has kept {kept:,} bytes, and not between {self._told:,} and "
                    f"{self._origin + self._handed:,}"
                )
                return
            self._told, self._tells = kept, True
        self._release()

    @override
    def _acknowledged(self, sock: socket.socket) -> int:
        return self._told - self._origin if self._tells else super()._acknowledged(sock)

    @override
    def _release(self) -> None:
        super()._release()
        behind, following = self._behind, self._following
        while behind and (
            self._first + len(behind[0]) <= self._told
            or (not self._tells and following - self._first - len(behind[0]) >= SILENT)
        ):
            self._first += len(behind.popleft())

    @override
    def _delivered(self, block: ByteStrings) -> None:
        self._behind.append(block.data)
        self._following += block.size

    @override
    def _cut_first(self, acknowledged: int) -> None:
        """Keep it: the peer says at the next connection what it has."""
