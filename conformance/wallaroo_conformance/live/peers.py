"""The other ends of a live server's connections: senders, and sinks that can go away and return."""

from __future__ import annotations

import array
import contextlib
import ctypes
import fcntl
import select
import socket
import struct
import sys
import termios
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

from wallaroo_conformance.live.applications import Address

RECEIVE_BUFFER = 1 << 16
"""Bytes that the system is asked to keep for a sink that does not read."""

_LONGEST_READ = 1 << 16
_PIECES_APART = 6  # pieces that are sent so far apart that they are read one by one
_APART = 0.004  # seconds
_LOOK = 0.01  # seconds between looks while waiting for something
_SO_ATTACH_FILTER = 26  # of Linux; the standard library has no name for it
_DROP = struct.pack("HBBI", 0x06, 0, 0, 0)  # a packet filter of one instruction: return 0 bytes


def wait_until(reached: Callable[[], bool], patience: float) -> bool:
    """Wait until `reached()`, `patience` seconds at most; return whether it was."""
    end = time.monotonic() + patience
    while not reached():
        if time.monotonic() > end:
            return False
        time.sleep(_LOOK)
    return True


def header(decoder: Any, length: int) -> bytes:
    """Return a header that a decoder reads as `length`.

    Raises:
        OverflowError: its headers are too short for that.
    """
    size = decoder.header_length
    orders: tuple[Literal["big", "little"], ...] = ("big", "little")
    for order in orders:
        made = length.to_bytes(size, order)
        if decoder.payload_length(made) == length:
            return made
    raise OverflowError(f"no header of {size} bytes claims {length}")


class Sender:
    """A connection to a source.

    Args:
        source: the source's name.
        address: where the source listens.
        patience: seconds that connecting and sending may take.

    Attributes:
        source: the source's name.
        begun: the payload of a frame whose beginning has been sent.
        kept_back: the rest of that frame; empty: no frame is begun.
    """

    def __init__(self, source: str, address: Address, patience: float) -> None:
        self.source = source
        self.begun = b""
        self.kept_back = b""
        self._socket = socket.create_connection(address, timeout=patience)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes, pieces: Sequence[int] = ()) -> None:
        """Send bytes, in pieces of these sizes, over and over; empty: all at once."""
        position, number = 0, 0
        while position < len(data):
            size = pieces[number % len(pieces)] if pieces else len(data)
            self._socket.sendall(data[position : position + size])
            position += size
            number += 1
            if pieces and number <= _PIECES_APART:
                time.sleep(_APART)

    def finish(self) -> None:
        """Send no more, and stay to read (a half-close)."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)

    def end(self) -> Literal["in order", "reset", "none"]:
        """Wait for the connection's end; return how it ended, or that it did not end in time."""
        try:
            while self._socket.recv(_LONGEST_READ):
                pass
        except ConnectionError:
            return "reset"
        except TimeoutError:
            return "none"
        return "in order"

    def reset(self) -> None:
        """Reset the connection, as if this process had died."""
        _reset(self._socket)

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def _take_nothing_more(connection: socket.socket) -> None:
    """Have the system drop what comes from now on, without acknowledging it (Linux only)."""
    if sys.platform == "linux":
        program = ctypes.create_string_buffer(_DROP)
        place = struct.pack("HP", 1, ctypes.addressof(program))  # `struct sock_fprog`
        connection.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, place)


def _unread(connection: socket.socket) -> int:
    """Return how many bytes the system has received that have not been read."""
    count = array.array("i", [0])
    fcntl.ioctl(connection.fileno(), termios.FIONREAD, count, True)
    return count[0]


class SinkPeer:
    """Listens at a sink's address, and keeps what each of its connections brought.

    Args:
        remembers: it says at each connection how many bytes it has kept (sink-9), so that what
            comes must go on right behind them.
        tells: it also says so whenever it has kept more.
    """

    def __init__(self, *, remembers: bool = False, tells: bool = False) -> None:
        self._remembers, self._tells = remembers or tells, tells
        self._reading = threading.Event()
        self._reading.set()
        self._lock = threading.Lock()
        self._brought: list[bytearray] = []
        self._server: socket.socket | None = None
        self._connections: list[socket.socket] = []
        self._readers: list[threading.Thread] = []
        self._kept_back: socket.socket | None = None  # while it is away
        self._listen(self._bound(0))
        assert self._server is not None
        self.address: Address = self._server.getsockname()

    @property
    def brought(self) -> list[bytes]:
        """What each connection brought, in the order in which they came."""
        with self._lock:
            return [bytes(data) for data in self._brought if data]

    def missing(self, outputs: Sequence[bytes]) -> str:
        """Return what is wrong with how `outputs` came, or nothing: see `missing`."""
        if self._remembers:
            return not_once(b"".join(outputs), b"".join(self.brought))
        return missing(outputs, self.brought)

    @property
    def size(self) -> int:
        """Bytes that all connections brought."""
        with self._lock:
            return sum(map(len, self._brought))

    @property
    def connections(self) -> int:
        """Connections that are open."""
        with self._lock:
            return len(self._connections)

    @property
    def idle(self) -> bool:
        """Whether no connection is open, and none waits to be accepted: all is read."""
        with self._lock:
            waits = self._server is not None and select.select([self._server], [], [], 0)[0]
            return not waits and not self._connections

    def hold(self) -> None:
        """Read no more, so that the sender has to wait."""
        self._reading.clear()

    def read_on(self) -> None:
        """Read again."""
        self._reading.set()

    def unread(self) -> int:
        """Return how many bytes of its newest connection wait to be read."""
        with self._lock:
            return _unread(self._connections[-1]) if self._connections else 0

    def break_off(self) -> None:
        """Reset the newest connection, while outputs are coming, and go on listening.

        All bytes that the system has acknowledged count as brought, unless it remembers: then what
        was not read is lost, as if its process had been killed. It must not be reading (`hold`),
        and the system should take nothing more (`unread` does not grow). On a busy machine the
        sender may only have paused: on Linux, what it sends from now on is dropped before it is
        acknowledged; elsewhere, bytes that come during this call count, too.
        """
        with self._lock:
            if not self._connections:
                return
            connection, data = self._connections.pop(), self._brought[-1]
            if self._remembers:
                _reset(connection)
                return
            _take_nothing_more(connection)
            waiting = b""
            while len(waiting) < (size := _unread(connection)):
                # Look only: reading would make room for more.
                waiting = connection.recv(size, socket.MSG_PEEK)
            _reset(connection)
            data += waiting

    @property
    def present(self) -> bool:
        """Whether it listens."""
        return self._server is not None

    def go_away(self) -> None:
        """Stop listening and hang up."""
        server, self._server = self._server, None
        if server is not None:
            with contextlib.suppress(OSError):
                server.shutdown(socket.SHUT_RDWR)
            server.close()
            self._accepting.join()  # it may just have a new connection
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        readers, self._readers = self._readers, []
        for reader in readers:
            reader.join()
        if server is not None:
            self._kept_back = self._bound(self.address[1])

    def close(self) -> None:
        """Go away for good."""
        self.go_away()
        if self._kept_back is not None:
            self._kept_back.close()

    def come_back(self) -> None:
        """Listen again at the same address."""
        if self._server is None:
            assert self._kept_back is not None
            self._listen(self._kept_back)
            self._kept_back = None

    def _bound(self, port: int) -> socket.socket:
        """Return a socket that holds the port: nobody else gets it, and connections are refused."""
        server = socket.socket()
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Connections inherit it.
        server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        server.bind(("127.0.0.1", port))
        return server

    def _listen(self, server: socket.socket) -> None:
        server.listen()
        self._server = server
        self._accepting = threading.Thread(target=self._accept, args=[server], daemon=True)
        self._accepting.start()

    def _accept(self, server: socket.socket) -> None:
        while True:
            try:
                connection, _ = server.accept()
            except OSError:  # it has gone away
                return
            data = bytearray()
            with self._lock:
                if self._remembers:
                    self._connections.clear()  # what an older one brings from now on is not kept
                    self._tell(connection)
                self._brought.append(data)
                self._connections.append(connection)
            reader = threading.Thread(target=self._read, args=[connection, data], daemon=True)
            self._readers.append(reader)
            reader.start()

    def _read(self, connection: socket.socket, data: bytearray) -> None:
        with connection:
            while self._receive(connection, data):
                pass
        with self._lock:
            if connection in self._connections:
                self._connections.remove(connection)

    def _tell(self, connection: socket.socket) -> None:
        """Say how many bytes are kept; the lock is held."""
        with contextlib.suppress(OSError):  # the engine is gone
            connection.sendall(b"wallaroo-resume 1 %d\n" % sum(map(len, self._brought)))

    def _receive(self, connection: socket.socket, data: bytearray) -> bool:
        """Wait for bytes and add them to `data`; return whether more can come."""
        self._reading.wait()
        try:
            ready = select.poll()
            ready.register(connection, select.POLLIN)
            ready.poll()
            with self._lock:
                if not self._reading.is_set():
                    return True  # `hold` was called meanwhile, and nothing is taken after that
                if self._remembers and connection not in self._connections:
                    return False
                read = connection.recv(_LONGEST_READ)
                data += read
                if self._tells and read:
                    self._tell(connection)
        except (OSError, ValueError):  # another thread has closed it
            return False
        return bool(read)


def not_once(outputs: bytes, kept: bytes) -> str:
    """Return what is wrong with what a peer that remembers has kept, or nothing (sink-9)."""
    if kept == outputs:
        return ""
    pairs = enumerate(zip(outputs, kept, strict=False))
    same = next((n for n, (a, b) in pairs if a != b), min(len(outputs), len(kept)))
    return (
        f"{len(kept)} bytes are kept, of {len(outputs)}; from byte {same} on they are "
        f"{kept[same : same + 60]!r}, and must be {outputs[same : same + 60]!r}"
    )


def missing(outputs: Sequence[bytes], brought: Sequence[bytes]) -> str:
    """Return what is wrong with how `outputs` came, or nothing (sink-3, recover-2).

    Each connection begins at an output's first byte, no later than where the one before it ended;
    its last output may be cut off. All outputs must have come.

    Args:
        outputs: what must come.
        brought: what came, by connection.
    """
    reached = {0}
    for number, data in enumerate(brought):
        ends = {
            max(start, end)
            for start in range(max(reached) + 1)
            if (end := _end(outputs, start, data)) is not None
        }
        if not ends:
            got = f"{data[:60]!r}{'…' if len(data) > 60 else ''}"
            return f"connection {number} brought {got}, which is no part of what must come"
        reached = {max(before, end) for before in reached for end in ends}
    if len(outputs) in reached:
        return ""
    came = max(reached)
    return f"{came} of {len(outputs)} outputs came; the next is {outputs[came]!r}"


def _end(outputs: Sequence[bytes], start: int, data: bytes) -> int | None:
    """Return how far outputs are complete if `data` begins with number `start`."""
    position = 0
    for number in range(start, len(outputs)):
        if position == len(data):
            return number
        output = outputs[number]
        came = data[position : position + len(output)]
        position += len(came)
        if came != output:
            cut_off = position == len(data) and output.startswith(came)
            return number if cut_off else None
    return len(outputs) if position == len(data) else None
