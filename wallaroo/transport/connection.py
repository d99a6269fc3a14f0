"""One sender's connection: from bytes to frames, closed in order or reset (frame-4)."""

from __future__ import annotations

import array
import asyncio
import fcntl
import logging
import termios
import time
from typing import TYPE_CHECKING

from wallaroo.config import TCPSourceConfig, format_address
from wallaroo.frames import FrameParser
from wallaroo.transport.sockets import end_in_order

if TYPE_CHECKING:
    from wallaroo.transport.listener import Listener

_log = logging.getLogger("wallaroo.listener")


class Connection(asyncio.BufferedProtocol):
    """A connection that a listener has accepted.

    Args:
        listener: gets the frames, and is told when the connection opens and closes.
        source: the source's name.
        config: the source's configuration.
    """

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
