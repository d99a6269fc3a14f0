"""TCP in: frames of many connections, given to one `Receiver`.

It receives all the frames that one read completed, in the order of the bytes (frame-1, frame-5). A
refused header closes its connection and no other (frame-3). An incomplete frame at a connection's
end is dropped and counted (frame-4).

An orderly close tells a sender that everything it sent before is sequenced. Every other end is a
reset, also when the whole process ends (frame-4). This and other options are set on the listening
socket and inherited, so every connection has them from its first moment.

The listener keeps one incomplete frame per connection and nothing else. An engine that cannot take
more calls `pause`, and TCP's flow control slows the senders down.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import logging
import math
import resource
import socket
from collections.abc import Mapping, Sequence
from typing import IO, Any, TypeAlias

from wallaroo.config import GenSourceConfig, TCPSourceConfig, format_address
from wallaroo.engine import MAX_CONNECTIONS
from wallaroo.errors import UnsupportedTopology, WallarooError
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.overriding import override
from wallaroo.text import escaped, reason
from wallaroo.topology import Source as SourceNode
from wallaroo.transport.connection import Connection, Connections, linger
from wallaroo.transport.interfaces import Receiver, Source
from wallaroo.transport.threads import in_child

Address: TypeAlias = tuple[str, int]

_WITHOUT_ACCEPTING = 0.5  # seconds to wait when there are no file descriptors left
_BACKLOG = 1024  # connections that may wait to be accepted
_KEEPALIVE = (  # a sender whose machine is gone is noticed after about two minutes
    ("TCP_KEEPIDLE", 60),  # seconds without a byte until the first probe
    ("TCP_KEEPALIVE", 60),  # the same on macOS
    ("TCP_KEEPINTVL", 15),  # seconds between probes
    ("TCP_KEEPCNT", 4),  # probes without an answer
)
_KEPT_FILES = 64  # open files reserved for other uses; half of the limit if that is less

_log = logging.getLogger("wallaroo.listener")


class ListenError(WallarooError):
    """The engine cannot listen on a source's address; says which and why."""


def listening_sources(sources: Mapping[str, SourceNode]) -> dict[str, TCPSourceConfig]:
    """Return the configurations of the sources that listen: not of generators and of Kafka.

    Raises:
        UnsupportedTopology: a source is of another kind.
    """
    configs: dict[str, TCPSourceConfig] = {}
    for name, source in sources.items():
        if isinstance(source.config, (GenSourceConfig, KafkaSourceConfig)):
            continue
        if not isinstance(source.config, TCPSourceConfig):
            kind = type(source.config).__name__
            raise UnsupportedTopology("build-2", name, f"there is no listener for a {kind}")
        configs[name] = source.config
    return configs


class Listener(Source):
    """Listens on the addresses of sources: bound when it is made, accepting once it is started.

    Call all methods in the thread of the loop it is started in (other threads use
    `LoopThread.call`); the counts may be read in any thread.

    Args:
        sources: the sources by name.
        receiver: gets the frames. It also says when a sender that has half-closed may be told that
            all is taken (frame-4); if it never does, the connection is reset at the end.
        addresses: addresses to listen on instead of the configured ones, for a restart.
        max_connections: connections at the same time, of all sources together; others are reset,
            logged and counted. The limit of open files may allow fewer.
        idle_timeout: seconds without a byte after which a connection is closed; `None`: never.

    Attributes:
        addresses: where each source listens.
        connections: those that are open, and what was received over each source's.
        refused: number of refused connections per source.

    Raises:
        ListenError: it cannot listen on one of the addresses; then it listens on none.
    """

    def __init__(
        self,
        sources: Mapping[str, TCPSourceConfig],
        receiver: Receiver,
        *,
        addresses: Mapping[str, Address] | None = None,
        max_connections: int = MAX_CONNECTIONS,
        idle_timeout: float | None = None,
    ) -> None:
        self.addresses: dict[str, Address] = {}
        self.connections = Connections(sources, receiver, idle_timeout)
        self.refused = dict.fromkeys(sources, 0)
        self._sources = sources
        self._sockets: dict[str, socket.socket] = {}
        self._opening: dict[asyncio.Task[Any], None] = {}
        self._limit = _ConnectionLimit(max_connections)
        try:
            for name, source in sources.items():
                host, port = (addresses or {}).get(name, (source.host, source.port))
                sock = self._sockets[name] = _bound(name, host, port)
                self.addresses[name] = sock.getsockname()[:2]
        except BaseException:
            self._stop_listening()
            raise

    @property
    @override
    def received(self) -> Mapping[str, int]:
        return self.connections.received

    def announce(self, stream: IO[str]) -> None:
        """Print ``source NAME listening on HOST:PORT`` for each source."""
        for name, address in self.addresses.items():
            # One write per line: print makes two, and another thread's log could come between them.
            stream.write(f"source {escaped(name)} listening on {format_address(*address)}\n")
        stream.flush()

    @override
    def start(self) -> None:
        for name in self._sockets:
            self._start_accepting(name)
        self.connections.sweep()

    @override
    def pause(self) -> None:
        self.connections.pause(paused=True)

    @override
    def resume(self) -> None:
        if self.connections.paused:
            self.connections.pause(paused=False)

    @override
    async def stop(self) -> None:
        # Bytes in the system's buffers count as received, because TCP has acknowledged them. They
        # are still received, later if it is paused.
        loop = asyncio.get_running_loop()
        for name, sock in self._sockets.items():
            loop.remove_reader(sock.fileno())
            self._accept(name, sock)
        self._stop_listening()
        if self._opening:
            await asyncio.gather(*self._opening, return_exceptions=True)
        await self.connections.finish()

    @override
    def close(self) -> None:
        loop = asyncio.get_running_loop()
        for sock in self._sockets.values():
            loop.remove_reader(sock.fileno())
        self._stop_listening()
        for task in self._opening:
            task.cancel()
        self.connections.abort()

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
                self.connections.troubles.log(
                    logging.ERROR, ("accept", name), text, name, reason(error)
                )
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
        self.connections.troubles.log(
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
        await loop.connect_accepted_socket(lambda: Connection(self.connections, name, config), sock)

    def _stop_listening(self) -> None:
        self.connections.stop_sweeping()
        for sock in self._sockets.values():
            sock.close()
        self._sockets.clear()


class _ConnectionLimit:
    """How many connections may be open at the same time.

    Args:
        most: what was asked for; the limit of open files may allow fewer.

    Attributes:
        most: the limit.
        reason: why it is this number, for a log.
    """

    def __init__(self, most: int) -> None:
        self.most = min(most, _room_for_connections())
        self.reason = (
            "the most it takes (--max-connections)"
            if self.most == most
            else "as many as the limit of open files leaves room for (ulimit -n)"
        )
        self._open: list[socket.socket] = []  # some may be closed by now

    def admit(self, sock: socket.socket) -> bool:
        """Count a connection until its socket is closed; `False` if there is no room for it."""
        if len(self._open) >= self.most:
            self._open = [other for other in self._open if other.fileno() >= 0]
        if len(self._open) >= self.most:
            return False
        self._open.append(sock)
        return True


def _room_for_connections() -> float:
    """Return how many connections the limit of open files allows."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limit == resource.RLIM_INFINITY:
        return math.inf
    return max(1, limit - min(_KEPT_FILES, limit // 2))


def _bound(source: str, host: str, port: int) -> socket.socket:
    try:
        return _listening(host, port)
    except OSError as error:
        raise ListenError(
            f"source {source} cannot listen on {format_address(host, port)}: {reason(error)}"
        ) from error


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens, does not block, and is closed in a forked child.

    Raises:
        OSError: the system refuses to listen on that address.
    """
    family, kind, protocol, _, address = _resolved(host, port)[0]
    sock = socket.socket(family, kind, protocol)
    in_child(sock.close)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        linger(sock, reset=True)
        keep_alive(sock)
        sock.bind(address)
        sock.listen(_BACKLOG)  # last: connections inherit the options set before this
    except BaseException:
        sock.close()
        raise
    return sock


def keep_alive(sock: socket.socket) -> None:
    """Have the system notice when the other side's machine is gone."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _resolved(host: str, port: int) -> Sequence[Any]:
    """Return the host's addresses, IPv4 first: what is printed is one address."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return sorted(found, key=lambda info: info[0] != socket.AF_INET)
