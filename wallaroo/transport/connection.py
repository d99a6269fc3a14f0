"""The connections of senders: from bytes to frames, closed in order or reset (frame-4).

A connection ends with a reset, however the process ends, unless its end was made an orderly one:
only that tells its sender that everything it sent before is sequenced.
"""

from __future__ import annotations

import array
import asyncio
import fcntl
import logging
import socket
import struct
import termios
import time
from collections.abc import Iterable, Iterator
from typing import Any

from wallaroo.config import TCPSourceConfig, format_address
from wallaroo.frames import FrameParser
from wallaroo.transport.interfaces import Receiver
from wallaroo.transport.rate_limit import RateLimited

_READ = 64 * 1024  # bytes at a time

_log = logging.getLogger("wallaroo.listener")


class Connections:
    """The open connections of a listener, and what they share.

    Args:
        sources: names of the sources.
        receiver: gets the frames.
        idle_timeout: seconds without a byte after which a connection is closed; `None`: never.

    Attributes:
        receiver: gets the frames.
        received: number of frames per source.
        bytes_in: number of bytes per source, headers included.
        open: number of connections per source, as of now.
        dropped: number of incomplete and refused frames per source.
        paused: nothing is read.
        buffer: what a connection reads into.
        troubles: logs what goes wrong.
    """

    def __init__(
        self, sources: Iterable[str], receiver: Receiver, idle_timeout: float | None
    ) -> None:
        self.receiver = receiver
        self.received = dict.fromkeys(sources, 0)
        self.bytes_in = dict.fromkeys(self.received, 0)
        self.open = dict.fromkeys(self.received, 0)
        self.dropped = dict.fromkeys(self.received, 0)
        self.paused = False
        self.troubles = RateLimited(_log)
        # One buffer for all connections, as only one reads at a time: a new buffer for each small
        # read would cost more than everything else.
        self.buffer = memoryview(bytearray(_READ))
        self._idle_timeout = idle_timeout
        self._next_sweep: asyncio.TimerHandle | None = None
        # In the order in which they came, which a set would not keep: the same run, the same way.
        self._connections: dict[Connection, None] = {}
        self._all_closed: asyncio.Future[None] | None = None

    def __len__(self) -> int:
        return len(self._connections)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._connections))

    def add(self, connection: Connection) -> None:
        """Note a connection."""
        self._connections[connection] = None
        self.open[connection.source] += 1

    def remove(self, connection: Connection) -> None:
        """Forget a connection."""
        self._connections.pop(connection, None)
        self.open[connection.source] -= 1
        if self._all_closed and not self._connections and not self._all_closed.done():
            self._all_closed.set_result(None)

    def pause(self, *, paused: bool) -> None:
        """Read nothing more from any connection, or read again."""
        self.paused = paused
        for connection in self._connections:
            connection.update_reading()

    def sweep(self) -> None:
        """Close idle connections now, and from time to time, in the running loop."""
        if self._idle_timeout is None:
            return
        for connection in self:
            connection.close_if_idle(self._idle_timeout)
        loop = asyncio.get_running_loop()
        self._next_sweep = loop.call_later(self._idle_timeout / 4, self.sweep)

    def stop_sweeping(self) -> None:
        """Close no more idle connections."""
        if self._next_sweep is not None:
            self._next_sweep.cancel()

    async def finish(self) -> None:
        """Close all in order once what has arrived by now is sequenced, and wait for it."""
        for connection in self:
            connection.finish()
        if self._connections:
            self._all_closed = asyncio.get_running_loop().create_future()
            await self._all_closed

    def abort(self) -> None:
        """Reset all."""
        for connection in self:
            connection.abort()
        self.troubles.flush()


class Connection(asyncio.BufferedProtocol):
    """A connection that a listener has accepted.

    Args:
        shared: the listener's connections.
        source: the source's name.
        config: the source's configuration.
    """

    def __init__(self, shared: Connections, source: str, config: TCPSourceConfig) -> None:
        self._shared = shared
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
        self._shared.add(self)
        self._heard = time.monotonic()
        # Not at once: Python 3.11 starts to read right after this, even if paused.
        asyncio.get_running_loop().call_soon(self.update_reading)
        _log.debug("source %s: %s connected", self.source, self._peer)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer to read into; asyncio calls this."""
        return self._shared.buffer

    def buffer_updated(self, nbytes: int) -> None:
        """Give the frames that are now complete to the engine; asyncio calls this."""
        self._heard = time.monotonic()
        self._shared.bytes_in[self.source] += nbytes
        payloads = self._parser.feed(bytes(self._shared.buffer[:nbytes]))
        if payloads:
            self._shared.received[self.source] += len(payloads)
            self._shared.receiver.receive(self.source, payloads)
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
            self._shared.dropped[self.source] += 1
            self._shared.troubles.log(
                logging.WARNING,
                ("incomplete", self.source),
                "source %s: the connection of %s ended inside a frame; "
                "its %d bytes are dropped (frame-4)",
                self.source,
                self._peer,
                self._parser.pending,
            )
        _log.debug("source %s: %s is gone%s", self.source, self._peer, f" ({exc})" if exc else "")
        self._shared.remove(self)

    def update_reading(self) -> None:
        """Pause or resume reading, as the listener is paused or not."""
        if self._ended or self._transport.is_closing():
            return
        if self._shared.paused:
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
        if self._shared.paused or self._ended or self._transport.is_closing():
            return
        if time.monotonic() - self._heard < timeout or self._unread():
            return
        self._shared.troubles.log(
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
        self._shared.receiver.when_sequenced(self._close)

    def _close(self) -> None:
        if not self._transport.is_closing():
            linger(self._transport.get_extra_info("socket"), reset=False)
            self._transport.close()

    def _unread(self) -> int:
        """Return how many received bytes are unread in the system's buffer."""
        count = array.array("i", [0])
        sock = self._transport.get_extra_info("socket")
        fcntl.ioctl(sock.fileno(), termios.FIONREAD, count, True)
        return count[0]

    def _refuse(self) -> None:
        self._shared.dropped[self.source] += 1
        self._shared.troubles.log(
            logging.ERROR,
            ("refused", self.source),
            "source %s: %s from %s; the connection is closed (frame-3)",
            self.source,
            self._parser.error,
            self._peer,
        )
        self._transport.abort()


def linger(sock: Any, *, reset: bool) -> None:
    """Set whether closing a socket resets its connection, or is an orderly close (frame-4)."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", reset, 0))
