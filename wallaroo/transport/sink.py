"""TCP out: one connection, made again whenever it is lost, without a gap (sink-3).

Outputs are kept until the peer's kernel has acknowledged their last byte. After a reconnect the
sink starts at the first byte of the first output that is not acknowledged whole: repeats are
possible, half an output is not, a gap is not.

The number of acknowledged bytes is the number given to the system less the number that it still
holds (``SIOCOUTQ`` on Linux, ``SO_NWRITE`` on macOS). On other systems, all bytes given to the
system count as acknowledged.

The outputs that are kept are bounded: from `limit` bytes on the sink is `full`, and the engine
writes no more until `on_room` is called.
"""

from __future__ import annotations

import array
import asyncio
import contextlib
import fcntl
import logging
import os
import random
import socket
import sys
import termios
from collections import deque
from collections.abc import Callable, Sequence

from wallaroo.config import format_address
from wallaroo.overriding import override
from wallaroo.text import reason
from wallaroo.topology import SinkId
from wallaroo.transport.byte_strings import ByteStrings
from wallaroo.transport.interfaces import OutputSink
from wallaroo.transport.rate_limit import RateLimited
from wallaroo.transport.threads import in_child

DEFAULT_LIMIT = 16 << 20
"""Bytes of outputs, with the memory to keep them, from which a sink is full."""

_BLOCK_COST = 512  # bytes of bookkeeping for outputs that were written together, roughly
_LOOK = 0.05  # seconds between checks of what was acknowledged
_HURRIED_LOOK = 0.002  # the same while `drain` waits
_CONNECT_TIMEOUT = 5.0  # seconds
_SO_NWRITE = 0x1024  # macOS; the socket module has no name for it

_log = logging.getLogger("wallaroo.sink")


class Backoff:
    """Growing pauses between attempts, with jitter so that many sinks do not retry together.

    Args:
        first: the first pause, in seconds.
        longest: the longest pause, in seconds.
        chance: the source of the jitter; `None`: the one that `random` keeps for the process.
    """

    def __init__(
        self, first: float = 0.05, longest: float = 2.0, chance: random.Random | None = None
    ) -> None:
        self._first = first
        self._longest = longest
        self._uniform = chance.uniform if chance else random.uniform
        self._next = first

    def pause(self) -> float:
        """Return how many seconds to wait now."""
        pause = self._next * self._uniform(0.75, 1.0)
        self._next = min(2 * self._next, self._longest)
        return pause

    def reset(self) -> None:
        """Begin again with the first pause."""
        self._next = self._first


def _cost(block: ByteStrings) -> int:
    """Return how many bytes of memory it takes, roughly."""
    return block.size + block.lengths.itemsize * len(block) + _BLOCK_COST


class TCPSink(OutputSink):
    """A sink's connection. Call all methods in the thread of the loop it is started in.

    An output is delivered once the peer's kernel has acknowledged it.

    Args:
        sink: the sink's id, for log messages.
        host: host to connect to.
        port: port to connect to.
        limit: bytes from which it is full.
        backoff: pauses between attempts to connect.
        on_room: called when it was full and has room again.
    """

    def __init__(
        self,
        sink: SinkId,
        host: str,
        port: int,
        *,
        limit: int = DEFAULT_LIMIT,
        backoff: Backoff | None = None,
        on_room: Callable[[], None] = lambda: None,
    ) -> None:
        self._name = f"sink {sink[0]}/{sink[1]}"
        self._host = host
        self._port = port
        self._limit = limit
        self._backoff = backoff or Backoff()
        self._on_room = on_room
        self._troubles = RateLimited(_log, burst=1)
        self._loop: asyncio.AbstractEventLoop
        self._connecting: asyncio.Task[None] | None = None
        self._look: asyncio.TimerHandle | None = None
        self._closed = False
        self._kept: deque[ByteStrings] = deque()  # not completely acknowledged, in order
        self._cost = 0
        # About the current connection:
        self._sock: socket.socket | None = None
        self._unsent: deque[memoryview] = deque()
        self._blocked = False  # the system takes no more; its writer callback is set
        self._handed = 0  # bytes given to the system
        self._released = 0  # bytes of blocks that are no longer kept

    @property
    @override
    def connected(self) -> bool:
        return self._sock is not None

    @override
    def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._connecting = self._loop.create_task(self._connect())

    @override
    def write(self, outputs: Sequence[bytes]) -> None:
        if self._kept:
            self._release()
        block = ByteStrings.of(outputs)
        self._kept.append(block)
        self._cost += _cost(block)
        self.pending += len(block)
        self.bytes_out += block.size
        if self._sock is not None:
            self._hand_over(block.data)
            if not self._blocked:
                self._send()
        if self._cost >= self._limit:
            self._release()
            self.full = self._cost >= self._limit
        if self._look is None and self._sock is not None:
            self._look = self._loop.call_later(_LOOK, self._on_look)

    @override
    def look(self) -> None:
        self._release()

    @override
    async def drain(self) -> None:
        while self._kept:
            await asyncio.sleep(_HURRIED_LOOK)
            self._release()

    @override
    def close(self) -> None:
        self._closed = True
        if self._connecting is not None:
            self._connecting.cancel()
        if self._look is not None:
            self._look.cancel()
        self._release()
        self._disconnect()

    async def _connect(self) -> None:
        while True:
            try:
                sock = await self._opened()
            except OSError as error:
                self._troubles.log(
                    logging.WARNING,
                    "connect",
                    "%s: cannot connect to %s: %s; trying again",
                    self._name,
                    self._address,
                    reason(error),
                )
                await asyncio.sleep(self._backoff.pause())
            else:
                break
        self._troubles.forget("connect")
        _log.info("%s: connected to %s", self._name, self._address)
        self._sock = sock
        self.connects += 1
        self._handed = 0
        self._released = self._begin()
        self._loop.add_reader(sock.fileno(), self._on_readable)
        self._send()
        self._on_look()

    @property
    def _address(self) -> str:
        return format_address(self._host, self._port)

    async def _opened(self) -> socket.socket:
        """Return a connected socket whose peer takes outputs.

        Raises:
            OSError: there is none.
        """
        async with asyncio.timeout(_CONNECT_TIMEOUT):
            return await self._connected_socket()

    async def _connected_socket(self) -> socket.socket:
        """Return a connected socket.

        Raises:
            OSError: no process listens there.
        """
        trouble = OSError(f"{self._host} has no address")
        for family, kind, protocol, _, address in await self._loop.getaddrinfo(
            self._host, self._port, type=socket.SOCK_STREAM
        ):
            sock = socket.socket(family, kind, protocol)
            in_child(sock.close)
            try:
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                await self._loop.sock_connect(sock, address)
                if sock.getsockname() == sock.getpeername():
                    # TCP lets a socket that connects to a free local port connect to itself.
                    raise ConnectionRefusedError(None, "nobody listens there")
            except OSError as error:
                sock.close()
                trouble = error
            except BaseException:
                sock.close()
                raise
            else:
                return sock
        raise trouble

    def _begin(self) -> int:
        """Put what a new connection begins with into `_unsent`.

        Returns:
            Number of bytes in it before the first block that is kept.
        """
        self._unsent = deque([memoryview(block.data) for block in self._kept])
        return 0

    def _hand_over(self, data: bytes) -> None:
        """Put further outputs into `_unsent`."""
        self._unsent.append(memoryview(data))

    def _send(self) -> None:
        """Give the system as many bytes as it takes."""
        sock = self._sock
        if sock is None:
            return
        unsent = self._unsent
        try:
            while unsent:
                view = unsent[0]
                sent = sock.send(view)
                self._handed += sent
                if sent < len(view):
                    unsent[0] = view[sent:]
                else:
                    unsent.popleft()
        except BlockingIOError:
            if not self._blocked:
                self._blocked = True
                self._loop.add_writer(sock.fileno(), self._on_writable)
        except OSError as error:
            self._lost(reason(error))
        else:
            if self._blocked:
                self._blocked = False
                self._loop.remove_writer(sock.fileno())

    def _on_writable(self) -> None:
        self._send()
        self._release()

    def _on_readable(self) -> None:
        assert self._sock is not None
        try:
            self._hear(self._sock.recv(65536))
        except BlockingIOError:
            pass
        except OSError as error:
            self._lost(reason(error))

    def _hear(self, data: bytes) -> None:
        """Discard what the peer sends; it may close its side and continue to read."""
        assert self._sock is not None
        if not data:
            self._loop.remove_reader(self._sock.fileno())

    def _on_look(self) -> None:
        """Check how much was acknowledged, and whether the connection is still up."""
        self._look = None
        if self._sock is None:
            return
        self._release()
        # A peer that closed its side is not read any more; only this check notices its end.
        error = self._sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if error:
            self._lost(os.strerror(error))
        elif self._kept:
            pause = _HURRIED_LOOK if self.full else _LOOK
            self._look = self._loop.call_later(pause, self._on_look)

    def _release(self) -> None:
        """Drop the blocks that are completely acknowledged."""
        if self._sock is None:
            return
        acknowledged = self._acknowledged(self._sock)
        kept = self._kept
        progress = False
        while kept and self._released + kept[0].size <= acknowledged:
            block = kept.popleft()
            self._released += block.size
            self._let_go(len(block), _cost(block))
            self._delivered(block)
            progress = True
        if progress:
            self._backoff.reset()
            if self.full and self._cost <= self._limit // 2:
                self.full = False
                self._loop.call_soon(self._on_room)

    def _acknowledged(self, sock: socket.socket) -> int:
        """Return how many bytes of the connection the peer has acknowledged."""
        return self._handed - unacknowledged(sock)

    def _delivered(self, block: ByteStrings) -> None:
        """A block is delivered, and is not kept any more."""

    def _let_go(self, outputs: int, cost: int) -> None:
        self._cost -= cost
        self.pending -= outputs
        self.written += outputs

    def _lost(self, why: str) -> None:
        """Give up the connection and make a new one."""
        self._release()
        assert self._sock is not None
        if self._kept:
            self._cut_first(self._acknowledged(self._sock) - self._released)
        self._disconnect()
        self._troubles.log(
            logging.WARNING,
            "lost",
            "%s: lost the connection to %s: %s; %d outputs are to be sent, perhaps again",
            self._name,
            self._address,
            why,
            self.pending,
        )
        if not self._closed:
            self._connecting = self._loop.create_task(self._reconnect())

    def _cut_first(self, acknowledged: int) -> None:
        """Cut the first block, which is partly acknowledged, at an output's first byte."""
        block = self._kept[0]
        count = block.within(acknowledged)
        rest = self._kept[0] = block[count:]
        self._let_go(count, _cost(block) - _cost(rest))

    async def _reconnect(self) -> None:
        await asyncio.sleep(self._backoff.pause())
        await self._connect()

    def _disconnect(self) -> None:
        if self._sock is None:
            return
        self._loop.remove_reader(self._sock.fileno())
        if self._blocked:
            self._loop.remove_writer(self._sock.fileno())
        self._blocked = False
        self._unsent.clear()
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_WR)
        self._sock.close()
        self._sock = None


def unacknowledged(sock: socket.socket) -> int:
    """Return how many bytes given to the system the peer's kernel has not acknowledged."""
    if sys.platform == "linux":
        count = array.array("i", [0])
        fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, count, True)  # SIOCOUTQ has the same number
        return count[0]
    if sys.platform == "darwin":
        return sock.getsockopt(socket.SOL_SOCKET, _SO_NWRITE)
    return 0
