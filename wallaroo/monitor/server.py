"""`--metrics HOST:PORT`: the figures of a running application, for browsers and programs.

    /         the live page
    /events   what the page shows, every second, as server-sent events; the first has the history
    /api      the same as JSON; with the last fifteen minutes: /api?history; with the sources'
              latencies whole: /api?histograms
    /metrics  as Prometheus reads them
    /health   200 while the process lives
    /ready    200 while the application takes input, else 503, with the reasons

It answers in threads of its own, so it works while user code keeps the engine's thread. Nothing can
be set from it: it takes GET and HEAD without a body. Connections, their number and the time that a
request may take are bounded.
"""

from __future__ import annotations

import json
import logging
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

from wallaroo.access import refusal
from wallaroo.config import format_address
from wallaroo.errors import WallarooError
from wallaroo.metrics.process import ProcessWatch
from wallaroo.metrics.registry import Registry
from wallaroo.metrics.snapshot import snapshot
from wallaroo.metrics.verdict import not_ready
from wallaroo.monitor.page import page
from wallaroo.monitor.prometheus import NEEDS, exposition
from wallaroo.text import escaped, reason

_TICK = 1.0  # seconds
_MOST_CONNECTIONS = 64
_SECONDS = 10.0  # that a request may take to come, and an answer's next part to be taken
_ALL_ADDRESSES = {"", "0.0.0.0", "::"}  # noqa: S104 - compared with, not listened to

_REMEDY = "give it in --metrics HOST:PORT, or make it the host name (of a container: --hostname)"

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_log = logging.getLogger("wallaroo.metrics")


class MetricsAddressError(WallarooError):
    """The figures cannot be served at this address; says why."""


def free_address(host: str, port: int) -> tuple[str, int]:
    """Return an address if figures can be served there.

    Raises:
        MetricsAddressError: they cannot.
    """
    try:
        _Server(host, port, None).server_close()
    except OSError as error:
        raise _refused(host, port, error) from error
    return host, port


class Monitor:
    """Serves the figures of a run, and lets them tick.

    Args:
        registry: the figures.
        host: where to listen.
        port: where to listen; 0 takes a free one.

    Attributes:
        address: where it listens.

    Raises:
        MetricsAddressError: it cannot listen there.
    """

    def __init__(self, registry: Registry, host: str, port: int) -> None:
        self.registry = registry
        self._process = ProcessWatch()
        self._changed = threading.Condition()
        self._ticks = 0
        self._event = b""
        self._closed = threading.Event()
        try:
            self._server = _Server(host, port, self)
        except OSError as error:
            self._process.close()
            raise _refused(host, port, error) from error
        bound = self._server.server_address
        self.address = (str(bound[0]), bound[1])
        self._threads = [
            threading.Thread(target=self._tick_on, name="wallaroo-metrics", daemon=True),
            threading.Thread(target=self._serve, name="wallaroo-http", daemon=True),
        ]

    @property
    def url(self) -> str:
        """The page's address."""
        return f"http://{format_address(*self.address)}/"

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End; pages that are open are told that it is over."""
        self._closed.set()
        with self._changed:
            self._changed.notify_all()
        self._server.shutdown()
        self._server.server_close()
        for thread in self._threads:
            thread.join(_TICK)
        self._process.close()

    def event(self, seen: int) -> tuple[int, bytes] | None:
        """Return the figures after tick `seen`, waiting for them, and their tick; `None`: it ends.

        The first that somebody sees have the history.
        """
        if not seen:
            return max(self._ticks, 1), _json(snapshot(self.registry, history=True))
        with self._changed:
            self._changed.wait_for(lambda: self._closed.is_set() or self._ticks > seen)
            if self._closed.is_set():
                return None
            if not self._event:
                self._event = _json(snapshot(self.registry))
            return self._ticks, self._event

    def tick(self) -> None:
        """Take the figures of another second."""
        self.registry.process = self._process.look()
        self.registry.tick()
        with self._changed:
            self._ticks += 1
            self._event = b""  # made when somebody wants it
            self._changed.notify_all()

    def _tick_on(self) -> None:
        due = time.monotonic()
        while not self._closed.wait(max(0.0, due - time.monotonic())):
            try:
                self.tick()
                self._server.drop_slow()
            except Exception:  # noqa: BLE001 - a bug of ours must end neither figures nor run
                _log.exception("the figures of this second are missing; this is a bug")
            due = max(due + _TICK, time.monotonic())

    def _serve(self) -> None:
        self._server.serve_forever(poll_interval=0.1)


def _refused(host: str, port: int, error: OSError) -> MetricsAddressError:
    return MetricsAddressError(
        f"the figures cannot be served at {format_address(host, port)}: {reason(error)}. "
        "Write another address: --metrics HOST:PORT"
    )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = _MOST_CONNECTIONS

    monitor: Monitor

    def __init__(self, host: str, port: int, monitor: Monitor | None) -> None:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = min(found, key=lambda info: info[0] != socket.AF_INET)
        self.address_family = family
        if monitor is not None:
            self.monitor = monitor
        self.bound = "" if host in _ALL_ADDRESSES else host
        self._lock = threading.Lock()
        self._open = 0
        self._reading: dict[socket.socket, float] = {}  # since when a request is awaited
        super().__init__((str(address[0]), int(address[1])), _Handler)

    def server_bind(self) -> None:
        """Bind, without asking a name server for this machine's name."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Take no more connections than there may be."""
        with self._lock:
            if self._open >= _MOST_CONNECTIONS:
                return False
            self._open += 1
            self._reading[request] = time.monotonic()
        return True

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, in its thread."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._lock:
                self._open -= 1
                self._reading.pop(request, None)

    def awaits(self, request: socket.socket, *, begun: bool) -> None:
        """Note that a connection's next request is awaited from now on, or has come."""
        with self._lock:
            if begun:
                self._reading.pop(request, None)
            else:
                self._reading[request] = time.monotonic()

    def drop_slow(self) -> None:
        """End connections whose request does not come."""
        late = time.monotonic() - _SECONDS
        with self._lock:
            slow = [sock for sock, since in self._reading.items() if since < late]
        for sock in slow:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:  # it has gone by itself
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over a reader that has gone; a bug of ours is logged."""
        error = sys.exception()
        if not isinstance(error, OSError):
            _log.error("a request could not be answered; this is a bug", exc_info=error)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout: ClassVar[float] = _SECONDS
    server_version = "wallaroo"
    sys_version = ""

    def handle_one_request(self) -> None:
        self.server.awaits(self.connection, begun=False)
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Refuse requests that would change something; what they bring is not read."""
        parsed = super().parse_request()
        self.server.awaits(self.connection, begun=True)
        if parsed and self.command not in ("GET", "HEAD"):
            self.close_connection = True
            text = b"nothing can be set here: GET only\n"
            self._send(405, "text/plain", text, allow="GET, HEAD")
            return False
        return parsed

    def do_GET(self) -> None:
        if self.headers.get("Transfer-Encoding") or self.headers.get("Content-Length", "0") != "0":
            self.close_connection = True  # what comes is not read
            self._send(413, "text/plain", b"a request has no body here\n")
            return
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        refused = refusal(host, origin, self.server.bound, remedy=_REMEDY)
        if refused is None and self._is_for_another_page():
            refused = "a page of another origin asks for it"
        if refused is not None:
            self._send(403, "text/plain", f"refused: {escaped(refused)}\n".encode())
            return
        url = urlsplit(self.path)
        answer = _ANSWERS.get(url.path)
        if answer is None:
            known = ", ".join([*_ANSWERS, "/events"])
            if url.path == "/events":
                self._stream()
            else:
                self._send(
                    404, "text/plain", f"there is no such page; there are {known}\n".encode()
                )
            return
        nonce = secrets.token_urlsafe(16)
        status, kind, content = answer(self.server.monitor, self, url.query, nonce)
        self._send(status, kind, content, nonce)

    do_HEAD = do_GET  # noqa: N815 - http.server finds it by this name

    def _is_for_another_page(self) -> bool:
        """Return whether a browser says that a page of another origin wants to have this.

        To follow a link from there is allowed: that page does not get to read it.
        """
        site = self.headers.get("Sec-Fetch-Site", "none")
        if site in ("none", "same-origin"):
            return False
        return self.headers.get("Sec-Fetch-Dest") != "document"

    def _stream(self) -> None:
        """Send the figures every second, until the reader or the run ends."""
        self.close_connection = True
        self._head(200, "text/event-stream", {})
        if self.command == "HEAD":
            return
        self.wfile.write(b"retry: 1000\n\n")
        seen = 0
        while (event := self.server.monitor.event(seen)) is not None:
            kind = b"event: history\n" if not seen else b""
            seen, content = event
            self.wfile.write(kind + b"data: " + content + b"\n\n")

    def _send(
        self, status: int, kind: str, content: bytes, nonce: str | None = None, allow: str = ""
    ) -> None:
        further = {"Content-Length": str(len(content))}
        if allow:
            further["Allow"] = allow
        if kind.startswith("text/") and "charset" not in kind:
            kind += "; charset=utf-8"
        self._head(status, kind, further, nonce)
        if self.command != "HEAD":
            self.wfile.write(content)

    def _head(
        self, status: int, kind: str, further: dict[str, str], nonce: str | None = None
    ) -> None:
        policy = "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; img-src data:"
        if nonce is not None:
            policy += f"; script-src 'nonce-{nonce}'"
        policy += "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Security-Policy", policy)
        for name, value in {**_HEADERS, **further}.items():
            self.send_header(name, value)
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log requests for debugging only: the terminal belongs to the run."""
        _log.debug("%s: %s", self.client_address[0], escaped(format % args))


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _page(monitor: Monitor, _: _Handler, query: str, nonce: str) -> tuple[int, str, bytes]:
    return 200, "text/html", page(monitor.registry.application, nonce).encode()


def _api(monitor: Monitor, _: _Handler, query: str, nonce: str) -> tuple[int, str, bytes]:
    wanted = {one.partition("=")[0] for one in query.split("&")}
    found = snapshot(
        monitor.registry, history="history" in wanted, histograms="histograms" in wanted
    )
    return 200, "application/json", _json(found)


def _metrics(monitor: Monitor, request: _Handler, query: str, nonce: str) -> tuple[int, str, bytes]:
    try:
        content, kind = exposition(monitor.registry, request.headers.get("Accept", ""))
    except ModuleNotFoundError:
        return 501, "text/plain", f"{NEEDS}\n".encode()
    return 200, kind, content


def _health(monitor: Monitor, _: _Handler, query: str, nonce: str) -> tuple[int, str, bytes]:
    return 200, "application/json", _json({"alive": True, "state": monitor.registry.state})


def _ready(monitor: Monitor, _: _Handler, query: str, nonce: str) -> tuple[int, str, bytes]:
    reasons = not_ready(monitor.registry)
    found = {"ready": not reasons, "reasons": reasons}
    return 503 if reasons else 200, "application/json", _json(found)


_Answer = Callable[[Monitor, _Handler, str, str], tuple[int, str, bytes]]

_ANSWERS: dict[str, _Answer] = {
    "/": _page,
    "/api": _api,
    "/metrics": _metrics,
    "/health": _health,
    "/ready": _ready,
}
