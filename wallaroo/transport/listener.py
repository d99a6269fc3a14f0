"""TCP in: frames of many connections, delivered in batches to one callback.

`deliver(source, payloads)` is called in the loop's thread with all the frames that one read
completed, in the order of the bytes (frame-1, frame-5). A refused header closes its connection and
no other (frame-3). An incomplete frame at a connection's end is dropped and counted (frame-4).

An orderly close tells a sender that everything it sent before is sequenced. Every other end is a
reset, also when the whole process ends (frame-4, `sockets`).

The listener keeps one incomplete frame per connection and nothing else. An engine that cannot take
more calls `pause`, and TCP's flow control slows the senders down.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import logging
import socket
from collections.abc import Callable, Mapping
from typing import IO, Any, TypeAlias

from wallaroo.config import GenSourceConfig, TCPSourceConfig, format_address
from wallaroo.engine import MAX_CONNECTIONS
from wallaroo.errors import UnsupportedTopology, WallarooError
from wallaroo.text import reason
from wallaroo.topology import Source
from wallaroo.transport.connection import Connection
from wallaroo.transport.limits import ConnectionLimit, IdleSweep
from wallaroo.transport.rate_limit import RateLimited
from wallaroo.transport.sockets import listening
from wallaroo.transport.threads import in_child

Deliver: TypeAlias = Callable[[str, list[bytes]], None]
Address: TypeAlias = tuple[str, int]

_READ = 64 * 1024  # bytes at a time
_WITHOUT_ACCEPTING = 0.5  # seconds to wait when there are no file descriptors left

_log = logging.getLogger("wallaroo.listener")


class ListenError(WallarooError):
    """The engine cannot listen on a source's address; says which and why."""


def listening_sources(sources: Mapping[str, Source]) -> dict[str, TCPSourceConfig]:
    """Return the configurations of the sources that listen: all but generators.

    Raises:
        UnsupportedTopology: a source is of another kind.
    """
    configs: dict[str, TCPSourceConfig] = {}
    for name, source in sources.items():
        if isinstance(source.config, GenSourceConfig):
            continue
        if not isinstance(source.config, TCPSourceConfig):
            kind = type(source.config).__name__
            raise UnsupportedTopology("build-2", name, f"there is no listener for a {kind}")
        configs[name] = source.config
    return configs


class Listener:
    """Listens on the addresses of sources: bound when it is made, accepting once it is started.

    Call all methods in the thread of the loop it is started in (other threads use
    `LoopThread.call`); the counts may be read in any thread.

    Args:
        sources: the sources by name.
        deliver: called with a source's name and frames; it must not raise.
        when_sequenced: called with a function `close`. It must call `close`, in the loop's thread,
            once everything delivered before is sequenced. `close` then closes, in order, the
            connection of a sender that has half-closed (frame-4). By default it is called at once.
            If it is never called, the connection is reset at the end.
        addresses: addresses to listen on instead of the configured ones, for a restart.
        max_connections: connections at the same time, of all sources together; others are reset,
            logged and counted. The limit of open files may allow fewer.
        idle_timeout: seconds without a byte after which a connection is closed; `None`: never.

    Attributes:
        addresses: where each source listens.
        received: number of frames per source.
        bytes_in: number of bytes per source, headers included.
        open: number of connections per source, as of now.
        dropped: number of incomplete and refused frames per source.
        refused: number of refused connections per source.

    Raises:
        ListenError: it cannot listen on one of the addresses; then it listens on none.
    """

    def __init__(
        self,
        sources: Mapping[str, TCPSourceConfig],
        deliver: Deliver,
        *,
        when_sequenced: Callable[[Callable[[], None]], None] | None = None,
        addresses: Mapping[str, Address] | None = None,
        max_connections: int = MAX_CONNECTIONS,
        idle_timeout: float | None = None,
    ) -> None:
        self.deliver = deliver
        self.when_sequenced = when_sequenced or (lambda close: close())
        self.addresses: dict[str, Address] = {}
        self.received = dict.fromkeys(sources, 0)
        self.bytes_in = dict.fromkeys(sources, 0)
        self.open = dict.fromkeys(sources, 0)
        self.dropped = dict.fromkeys(sources, 0)
        self.refused = dict.fromkeys(sources, 0)
        self.paused = False
        self.troubles = RateLimited(_log)
        # One buffer for all connections, as only one reads at a time: a new buffer for each small
        # read would cost more than everything else.
        self.buffer = memoryview(bytearray(_READ))
        self._sources = sources
        self._sockets: dict[str, socket.socket] = {}
        # In the order in which they came, which a set would not keep: the same run, the same way.
        self._connections: dict[Connection, None] = {}
        self._opening: dict[asyncio.Task[Any], None] = {}
        self._all_closed: asyncio.Future[None] | None = None
        self._limit = ConnectionLimit(max_connections)
        self._sweep = IdleSweep(self._connections, idle_timeout)
        try:
            for name, source in sources.items():
                host, port = (addresses or {}).get(name, (source.host, source.port))
                sock = self._sockets[name] = _bound(name, host, port)
                self.addresses[name] = sock.getsockname()[:2]
        except BaseException:
            self._stop_listening()
            raise

    def announce(self, stream: IO[str]) -> None:
        """Print ``source NAME listening on HOST:PORT`` for each source."""
        for name, address in self.addresses.items():
            # One write per line: print makes two, and another thread's log could come between them.
            stream.write(f"source {name} listening on {format_address(*address)}\n")
        stream.flush()

    def start(self) -> None:
        """Accept connections, in the running loop."""
        for name in self._sockets:
            self._start_accepting(name)
        self._sweep.start()

    def pause(self) -> None:
        """Read nothing more from any connection until `resume`; `deliver` may call this."""
        self.paused = True
        for connection in self._connections:
            connection.update_reading()

    def resume(self) -> None:
        """Read again."""
        self.paused = False
        for connection in self._connections:
            connection.update_reading()

    async def stop(self) -> None:
        """Stop listening, read what senders have sent by now, and close all connections in order.

        Bytes in the system's buffers count as received, because TCP has acknowledged them. They are
        still delivered, later if `paused`; this returns when all of them are sequenced.
        """
        loop = asyncio.get_running_loop()
        for name, sock in self._sockets.items():
            loop.remove_reader(sock.fileno())
            self._accept(name, sock)
        self._stop_listening()
        if self._opening:
            await asyncio.gather(*self._opening, return_exceptions=True)
        for connection in list(self._connections):
            connection.finish()
        if self._connections:
            self._all_closed = loop.create_future()
            await self._all_closed

    def close(self) -> None:
        """Stop listening and reset all connections; bytes not yet delivered are dropped."""
        loop = asyncio.get_running_loop()
        for sock in self._sockets.values():
            loop.remove_reader(sock.fileno())
        self._stop_listening()
        for task in self._opening:
            task.cancel()
        for connection in list(self._connections):
            connection.abort()
        self.troubles.flush()

    def opened(self, connection: Connection) -> None:
        """Note a connection."""
        self._connections[connection] = None
        self.open[connection.source] += 1

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        self._connections.pop(connection, None)
        self.open[connection.source] -= 1
        if self._all_closed and not self._connections and not self._all_closed.done():
            self._all_closed.set_result(None)

    def _start_accepting(self, name: str) -> None:
        if (sock := self._sockets.get(name)) is not None:
            asyncio.get_running_loop().add_reader(sock.fileno(), self._accept, name, sock)

    def _accept(self, name: str, sock: socket.socket) -> None:
        """Accept all waiting connections.

        asyncio's own server would close its socket while connections still wait.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = sock.accept()
            except (BlockingIOError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    raise
                text = "source %s: cannot accept another connection: %s"
                self.troubles.log(logging.ERROR, ("accept", name), text, name, reason(error))
                loop.remove_reader(sock.fileno())
                loop.call_later(_WITHOUT_ACCEPTING, self._start_accepting, name)
                return
            if not self._limit.admit(accepted):
                self._refuse(name, accepted)
                continue
            in_child(accepted.close)
            accepted.setblocking(False)
            opening = loop.create_task(self._open(name, accepted))
            self._opening[opening] = None
            opening.add_done_callback(functools.partial(self._opened, accepted))

    def _refuse(self, name: str, accepted: socket.socket) -> None:
        """Reset a connection beyond the limit."""
        accepted.close()
        self.refused[name] += 1
        self.troubles.log(
            logging.ERROR,
            ("too many", name),
            "source %s: a connection is refused: %d are open, %s",
            name,
            self._limit.most,
            self._limit.reason,
        )

    def _opened(self, sock: socket.socket, opening: asyncio.Task[Any]) -> None:
        self._opening.pop(opening, None)
        if opening.cancelled():  # no transport owns the socket yet
            sock.close()

    async def _open(self, name: str, sock: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        config = self._sources[name]
        await loop.connect_accepted_socket(lambda: Connection(self, name, config), sock)

    def _stop_listening(self) -> None:
        self._sweep.stop()
        for sock in self._sockets.values():
            sock.close()
        self._sockets.clear()


def _bound(source: str, host: str, port: int) -> socket.socket:
    try:
        return listening(host, port)
    except OSError as error:
        raise ListenError(
            f"source {source} cannot listen on {format_address(host, port)}: {reason(error)}"
        ) from error
