"""TCP: connections of the engine with peers that are no processes but part of the simulation.

What a sender sends has arrived at once; how much a `recv` returns is chance. What the engine gives
to the system leaves in pieces, arrives at the receiver's kernel, and is acknowledged a moment
later. A connection that breaks loses what has not arrived. An accepted socket is closed as its
`SO_LINGER` says, and with a reset if it holds bytes that nobody has read.
"""

from __future__ import annotations

import errno
import itertools
import os
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from simulation.world import World

Address: TypeAlias = tuple[str, int]

_SEND_BUFFERS = (20, 100, 600, 600)  # bytes that the system keeps for a receiver
_RECEIVE_BUFFERS = (100, 4000, 4000)  # and of a sender
_LATENCY = 0.0005  # seconds, at most, until a piece arrives, and until it is acknowledged


class Peer(Protocol):
    """The other end of a connection."""

    def got(self, data: bytes) -> None:
        """Take bytes that have arrived."""

    def ended(self, *, in_order: bool) -> None:
        """Notice that the engine has closed the connection, or that it was reset."""


class Receiving(Peer, Protocol):
    """The other end of a connection that the engine makes."""

    link: Link


class Link:
    """A connection as the engine's system sees it.

    Attributes:
        life: number of the process whose it is.
        arrived: bytes from the peer that the engine has not read.
    """

    def __init__(self, world: World, peer: Peer, number: int) -> None:
        self.life = world.life
        self.arrived = bytearray()
        self.peer_ended = False  # nothing more comes
        self.broken = False
        self.closed = False  # the engine has closed it
        self.stalled = False  # the receiver's buffer is full
        self._world = world
        self._peer = peer
        self._chance = world.chance("link", number)
        sizes = world.chance("buffers")  # the same in all of a run
        self._send_buffer = sizes.choice(_SEND_BUFFERS)
        self._receive_buffer = sizes.choice(_RECEIVE_BUFFERS)
        self._leaving = bytearray()  # given to the system, not arrived
        self._unacknowledged = 0  # bytes that have arrived, and nobody knows it yet
        self._moving = False

    # -- the peer's side ---------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many bytes the peer may send now."""
        return 0 if self.gone else self._receive_buffer - len(self.arrived)

    @property
    def gone(self) -> bool:
        """Whether nothing that is sent arrives."""
        return self.broken or self.closed

    def send(self, data: bytes) -> None:
        """Let bytes arrive."""
        if not self.gone:
            self.arrived += data

    def stall(self, seconds: float) -> None:
        """Let nothing arrive for some time."""
        self.stalled = True

        def go_on() -> None:
            self.stalled = False
            self._move_on()

        self._world.beside(seconds, go_on)

    def half_close(self) -> None:
        """Send nothing more."""
        self.peer_ended = True

    def reset(self) -> None:
        """Break the connection; the engine has yet to notice."""
        if not self.broken:
            self._break()
            if self._chance.random() < 0.5:
                self.arrived.clear()

    # -- the engine's side -------------------------------------------------------------------------

    @property
    def readable(self) -> bool:
        """Whether `recv` would return or raise."""
        return bool(self.arrived) or self.peer_ended or self.broken

    @property
    def writable(self) -> bool:
        """Whether `send` would take something or raise."""
        return self.broken or len(self._leaving) < self._send_buffer

    @property
    def unacknowledged(self) -> int:
        """Bytes given to the system of which it does not know whether they have arrived."""
        return len(self._leaving) + self._unacknowledged

    def take(self, most: int) -> bytes:
        """Return bytes that have arrived.

        Raises:
            OSError: there are none now, or never again.
        """
        if not self.arrived:
            if self.broken:
                raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
            if self.peer_ended:
                return b""
            raise BlockingIOError(errno.EAGAIN, "nothing has arrived")
        size = min(most, len(self.arrived))
        if self._chance.random() < 0.3:
            size = self._chance.randint(1, size)
        data = bytes(self.arrived[:size])
        del self.arrived[:size]
        return data

    def give(self, data: bytes) -> int:
        """Take bytes for the peer, and return how many.

        Raises:
            OSError: none now, or never again.
        """
        if self.broken:
            raise ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET))
        size = min(self._send_buffer - len(self._leaving), len(data))
        if size <= 0:
            raise BlockingIOError(errno.EAGAIN, "no room")
        if self._chance.random() < 0.3:
            size = self._chance.randint(1, size)
        self._leaving += data[:size]
        self._move_on()
        return size

    def close(self, *, in_order: bool) -> None:
        """Close the connection, or reset it."""
        if self.closed:
            return
        self.closed = True
        if self.broken:
            return
        if not in_order or self.arrived:
            self._break()
            self._peer.ended(in_order=False)
        elif not self._leaving:
            self._peer.ended(in_order=True)
        # else: the system sends what it has, and then closes

    def lose_power(self) -> None:
        """Vanish: the peer's system notices at some time."""
        if not self.broken:
            self.closed = True
            self._break()
            self._peer.ended(in_order=False)

    def _break(self) -> None:
        """Let nothing more arrive; what has not arrived stays unacknowledged."""
        self.broken = True
        self._unacknowledged += len(self._leaving)
        self._leaving.clear()

    def _move_on(self) -> None:
        if not self._moving:
            self._moving = True
            self._world.beside(self._chance.uniform(0, _LATENCY), self._move)

    def _move(self) -> None:
        """Let a piece arrive."""
        self._moving = False
        if self.broken or self.stalled or not self._leaving:
            return
        size = len(self._leaving)
        if self._chance.random() < 0.5:
            size = self._chance.randint(1, size)
        data = bytes(self._leaving[:size])
        del self._leaving[:size]
        self._unacknowledged += size

        def acknowledge() -> None:
            if not self.broken:  # else the engine's system never knows
                self._unacknowledged -= size

        self._world.beside(self._chance.uniform(0, _LATENCY), acknowledge)
        self._peer.got(data)
        if self._leaving:
            self._move_on()
        elif self.closed and not self.broken:
            self._peer.ended(in_order=True)


class Network:
    """The simulated sockets of the engine, and the receivers that it may connect to.

    Attributes:
        sockets: by descriptor.
        receivers: what takes a connection, by address; it returns the peer, or `None` to refuse.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.sockets: dict[int, Socket] = {}
        self.receivers: dict[Address, Callable[[], Receiving | None]] = {}
        self.links = itertools.count()
        self.accept_fails = 0  # that many times there are no descriptors left
        self._open: dict[int, Link] = {}

    def connect(self, address: Address, peer: Peer) -> Link | None:
        """Connect a sender with the engine; `None`: nobody listens."""
        for sock in self.sockets.values():
            if sock.listens and sock.getsockname() == address:
                link = self.link(peer)
                sock.waiting.append(link)
                return link
        return None

    def link(self, peer: Peer) -> Link:
        """Return a new connection."""
        number = next(self.links)
        link = self._open[number] = Link(self.world, peer, number)
        return link

    def crash(self, *, power: bool) -> None:
        """End the process: its system closes its sockets, or has no power either."""
        for sock in list(self.sockets.values()):
            sock.abandon()
        self.sockets.clear()
        for link in self._open.values():
            if power:
                link.lose_power()
        self._open = {number: link for number, link in self._open.items() if not link.gone}


class Socket:
    """A socket of the engine, with the methods of `socket.socket` that it uses."""

    family = socket.AF_INET
    type = socket.SOCK_STREAM
    proto = 0

    def __init__(self, network: Network, link: Link | None = None, lingers: bool = False) -> None:
        self._network = network
        self._world = network.world
        self._fd = network.world.descriptor()
        self.link = link
        self.waiting: deque[Link] = deque()  # connections not accepted
        self.listens = False
        self._address: Address = ("127.0.0.1", 0)
        self._resets = lingers  # closing resets
        self._error = 0
        self._connecting = False
        network.sockets[self._fd] = self

    # -- for the selector --------------------------------------------------------------------------

    @property
    def readable(self) -> bool:
        """Whether an event loop calls its reader."""
        if self.listens:
            return bool(self.waiting)
        return self.link is not None and self.link.readable

    @property
    def writable(self) -> bool:
        """Whether an event loop calls its writer."""
        if self._connecting:
            return False
        return self._error != 0 or (self.link is not None and self.link.writable)

    # -- as socket.socket --------------------------------------------------------------------------

    def fileno(self) -> int:
        return self._fd

    def setblocking(self, flag: bool) -> None:
        assert not flag

    def gettimeout(self) -> float:
        return 0.0

    def getsockname(self) -> Address:
        return self._address

    def getpeername(self) -> Address:
        if self.link is None or self.link.broken:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return ("127.0.0.1", 4)

    def setsockopt(self, level: int, option: int, value: Any) -> None:
        self._world.call("setsockopt")
        if (level, option) == (socket.SOL_SOCKET, socket.SO_LINGER):
            on, seconds = struct.unpack("ii", value)
            self._resets = bool(on) and seconds == 0

    def getsockopt(self, level: int, option: int) -> int:
        assert (level, option) == (socket.SOL_SOCKET, socket.SO_ERROR)
        self._world.call("getsockopt")
        if self.link is not None and self.link.broken:
            return errno.ECONNRESET
        return self._error

    def bind(self, address: Address) -> None:
        self._world.call("bind")
        self._address = address

    def listen(self, backlog: int) -> None:
        self._world.call("listen")
        self.listens = True

    def accept(self) -> tuple[Socket, Address]:
        self._world.call("accept")
        if not self.waiting:
            raise BlockingIOError(errno.EAGAIN, "nobody waits")
        if self._network.accept_fails:
            self._network.accept_fails -= 1
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        link = self.waiting.popleft()
        return Socket(self._network, link, self._resets), ("127.0.0.1", 4)

    def connect(self, address: Address) -> None:
        self._world.call("connect")
        self._connecting = True
        self._world.beside(_LATENCY, lambda: self._connected(address))
        raise BlockingIOError(errno.EINPROGRESS, os.strerror(errno.EINPROGRESS))

    def _connected(self, address: Address) -> None:
        self._connecting = False
        if self._fd not in self._network.sockets:
            return
        take = self._network.receivers.get(address)
        peer = take() if take else None
        if peer is None:
            self._error = errno.ECONNREFUSED
        else:
            self._address = ("127.0.0.1", 5)
            self.link = peer.link = self._network.link(peer)

    def recv(self, most: int) -> bytes:
        self._world.call("recv")
        return self._connected_link().take(most)

    def recv_into(self, buffer: Any) -> int:
        self._world.call("recv")
        data = self._connected_link().take(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def send(self, data: Any) -> int:
        dies = self._world.step("send")
        count = self._connected_link().give(bytes(data))
        if dies:
            raise self._world.crash_now()
        return count

    def shutdown(self, how: int) -> None:
        self._world.call("shutdown")

    def close(self) -> None:
        if self._world.dead or self._network.sockets.get(self._fd) is not self:
            return  # a socket of an earlier life, or closed before
        self._world.call("close")
        self.abandon()
        self._network.sockets.pop(self._fd, None)

    def detach(self) -> int:
        raise NotImplementedError

    def abandon(self) -> None:
        """Do what the system does when a socket is closed."""
        for link in self.waiting:
            link.close(in_order=False)
        if self.link is not None:
            self.link.close(in_order=not self._resets)

    def _connected_link(self) -> Link:
        if self.link is None:
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        return self.link
