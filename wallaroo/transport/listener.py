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

import array
import asyncio
import errno
import fcntl
import functools
import logging
import socket
import termios
import time
from collections.abc import Callable, Mapping
from typing import IO, Any, TypeAlias

from wallaroo.config import GenSourceConfig, TCPSourceConfig, format_address
from wallaroo.engine import MAX_CONNECTIONS
from wallaroo.errors import UnsupportedTopology, WallarooError
from wallaroo.frames import FrameParser
from wallaroo.text import reason
from wallaroo.topology import Source
from wallaroo.transport.forks import in_child
from wallaroo.transport.limits import ConnectionLimit, IdleSweep
from wallaroo.transport.rate_limit import RateLimited
from wallaroo.transport.sockets import end_in_order, listening

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


class Connection(asyncio.BufferedProtocol):
    """One sender's connection."""

    def __init__(self, listener: Listener, source: str, config: TCPSourceConfig) -> None:
        self._listener = listener
        self.source = source
        self._peer = ""
        self._transport: asyncio.Transport
        decoder = config.decoder
        self._parser = FrameParser(decoder.header_length, decoder.payload_length, config.max_size)
        self._ended = False
        self._heard = 0.0  # the last time a byte came or reading was resumed
        self._to_read: int | None = None  # while stopping: bytes sent before the stop, not yet read

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; asyncio calls this."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        peer = transport.get_extra_info("peername")  # None if it has gone already
        self._peer = format_address(*peer[:2]) if peer else "a sender that is gone"
        self._listener.opened(self)
        self._heard = time.monotonic()
        # Not at once: Python 3.11 starts to read right after this, even if paused.
        asyncio.get_running_loop().call_soon(self.update_reading)
        _log.debug("source %s: %s connected", self.source, self._peer)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer to read into; asyncio calls this."""
        return self._listener.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Deliver the frames that are now complete; asyncio calls this."""
        self._heard = time.monotonic()
        self._listener.bytes_in[self.source] += nbytes
        payloads = self._parser.feed(bytes(self._listener.buffer[:nbytes]))
        if payloads:
            self._listener.received[self.source] += len(payloads)
            self._listener.deliver(self.source, payloads)
        if self._parser.error is not None:
            self._refuse()
        elif self._to_read is not None:
            self._to_read -= nbytes
            if self._to_read <= 0:
                self._end()

    def eof_received(self) -> bool:
        """Close this side too once everything before is sequenced (frame-4); asyncio calls this."""
        self._end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Count an incomplete frame as dropped; asyncio calls this."""
        if self._parser.pending:
            self._listener.dropped[self.source] += 1
            self._listener.troubles.log(
                logging.WARNING,
                ("incomplete", self.source),
                "source %s: the connection of %s ended inside a frame; "
                "its %d bytes are dropped (frame-4)",
                self.source,
                self._peer,
                self._parser.pending,
            )
        _log.debug("source %s: %s is gone%s", self.source, self._peer, f" ({exc})" if exc else "")
        self._listener.closed(self)

    def update_reading(self) -> None:
        """Pause or resume reading, as the listener is paused or not."""
        if self._ended or self._transport.is_closing():
            return
        if self._listener.paused:
            self._transport.pause_reading()
        elif not self._transport.is_reading():
            self._heard = time.monotonic()
            self._transport.resume_reading()

    def finish(self) -> None:
        """Close in order once all bytes that have arrived by now are read and sequenced."""
        if self._ended or self._transport.is_closing():
            return
        self._to_read = self._unread()
        if not self._to_read:
            self._end()

    def close_if_idle(self, timeout: float) -> None:
        """Close in order if nothing came for `timeout` seconds of reading."""
        if self._listener.paused or self._ended or self._transport.is_closing():
            return
        if time.monotonic() - self._heard < timeout or self._unread():
            return
        self._listener.troubles.log(
            logging.WARNING,
            ("idle", self.source),
            "source %s: %s has sent nothing for %g s; the connection is closed (--idle-timeout)",
            self.source,
            self._peer,
            timeout,
        )
        self._end()

    def abort(self) -> None:
        """Reset it at once, unless it has been closed in order."""
        self._transport.abort()

    def _end(self) -> None:
        """Read nothing more, and close in order once everything before is sequenced."""
        self._ended = True
        self._transport.pause_reading()
        self._listener.when_sequenced(self._close)

    def _close(self) -> None:
        if not self._transport.is_closing():
            end_in_order(self._transport.get_extra_info("socket"))
            self._transport.close()

    def _unread(self) -> int:
        """Return how many received bytes are unread in the system's buffer."""
        count = array.array("i", [0])
        sock = self._transport.get_extra_info("socket")
        fcntl.ioctl(sock.fileno(), termios.FIONREAD, count, True)
        return count[0]

    def _refuse(self) -> None:
        self._listener.dropped[self.source] += 1
        self._listener.troubles.log(
            logging.ERROR,
            ("refused", self.source),
            "source %s: %s from %s; the connection is closed (frame-3)",
            self.source,
            self._parser.error,
            self._peer,
        )
        self._transport.abort()


def _bound(source: str, host: str, port: int) -> socket.socket:
    try:
        return listening(host, port)
    except OSError as error:
        raise ListenError(
            f"source {source} cannot listen on {format_address(host, port)}: {reason(error)}"
        ) from error
