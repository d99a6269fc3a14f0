"""A server of pages over HTTP that can only be read: for browsers and for programs.

It answers in threads of its own. It takes GET and HEAD without a body, from this machine's own
pages and from programs (`wallaroo.access`). Connections, their number and the time that a request
may take are bounded. What it sends may run no script but those with the request's nonce.

    server = PageServer("127.0.0.1", 0, {"/": lambda request: text_answer("hello")})
    server.start()
    print(server.url)
    server.close()
"""

from __future__ import annotations

import json
import logging
import secrets
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from wallaroo.access import refusal
from wallaroo.config import format_address
from wallaroo.text import escaped

_MOST_CONNECTIONS = 64
_FOR_PROBES = 16  # connections more, which are answered for probes only
_BUGS_EVERY = 60.0  # seconds between two lines of the log that say that a request failed
_SECONDS = 10.0  # that a request may take to come, and an answer's next part to be taken
_ALL_ADDRESSES = {"", "0.0.0.0", "::"}  # noqa: S104 - compared with, not listened to

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_POLICY = (
    "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_log = logging.getLogger("wallaroo.metrics")


class Request(NamedTuple):
    """What is asked for.

    Args:
        query: what stands behind the path's question mark.
        accept: the `Accept` header.
        nonce: the scripts of the answer run if they have this nonce.
    """

    query: str
    accept: str
    nonce: str


class Answer(NamedTuple):
    """An answer: its status, its content type and its content."""

    status: int
    kind: str
    content: bytes


Page: TypeAlias = Callable[[Request], Answer | Iterator[bytes]]
"""Answers a request in a thread of its own; an iterator's items are sent as server-sent events."""


def json_answer(value: object, status: int = 200) -> Answer:
    """Return an answer in JSON."""
    return Answer(status, "application/json", json.dumps(value, separators=(",", ":")).encode())


def text_answer(text: str, status: int = 200) -> Answer:
    """Return an answer that is a line of text."""
    return Answer(status, "text/plain", f"{text}\n".encode())


class PageServer(ThreadingHTTPServer):
    """Serves pages.

    Args:
        host: where to listen; empty for all addresses.
        port: where to listen; 0 takes a free one.
        pages: by their paths.
        remedy: how a user makes another name one of this server, for refusals.
        probes: the paths that are answered when all connections but those kept for them are taken.

    Attributes:
        address: where it listens.

    Raises:
        OSError: it cannot listen there.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = _MOST_CONNECTIONS + _FOR_PROBES

    def __init__(
        self,
        host: str,
        port: int,
        pages: Mapping[str, Page],
        remedy: str = "",
        probes: Collection[str] = (),
    ) -> None:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, _, _, _, address = min(found, key=lambda info: info[0] != socket.AF_INET)
        self.address_family = family
        self.pages = pages
        self.remedy = remedy
        self.probes = probes
        self.bound = "" if host in _ALL_ADDRESSES else host
        self._lock = threading.Lock()
        self._open = 0
        self._kept: set[socket.socket] = set()  # that are answered for probes only
        self._bug_logged = -_BUGS_EVERY
        self._reading: dict[socket.socket, float] = {}  # since when a request is awaited
        super().__init__((str(address[0]), int(address[1])), _Handler)
        bound = self.server_address
        self.address = (str(bound[0]), bound[1])
        self._thread = threading.Thread(
            target=self.serve_forever, args=(0.1,), name="wallaroo-http", daemon=True
        )

    @property
    def url(self) -> str:
        """The address of the page ``/``."""
        return f"http://{format_address(*self.address)}/"

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def close(self) -> None:
        """End, without waiting for answers that are being sent; it must have been started."""
        self.shutdown()
        self.server_close()
        self._thread.join()

    def server_bind(self) -> None:
        """Bind, without asking a name server for this machine's name."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]

    def verify_request(self, request: Any, client_address: Any) -> bool:
        """Take no more connections than there may be."""
        with self._lock:
            kept = self._open >= _MOST_CONNECTIONS
            if kept and (not self.probes or self._open >= _MOST_CONNECTIONS + _FOR_PROBES):
                return False
            if kept:
                self._kept.add(request)
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
                self._kept.discard(request)

    def has_room_for(self, path: str, request: socket.socket) -> bool:
        """Return whether a connection may have this page."""
        with self._lock:
            return request not in self._kept or path in self.probes

    def awaits(self, request: socket.socket, *, begun: bool) -> None:
        """Note that a connection's next request is awaited from now on, or has come."""
        with self._lock:
            if begun:
                self._reading.pop(request, None)
            else:
                self._reading[request] = time.monotonic()

    def service_actions(self) -> None:
        """End connections whose request does not come; called several times a second."""
        late = time.monotonic() - _SECONDS
        with self._lock:
            slow = [sock for sock, since in self._reading.items() if since < late]
        for sock in slow:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:  # it has gone by itself
                continue

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over a reader that has gone; a bug of ours is logged, a line a minute at most."""
        error = sys.exception()
        if error is None or isinstance(error, OSError):
            return
        _log.debug("a request could not be answered", exc_info=error)
        with self._lock:
            now = time.monotonic()
            if now - self._bug_logged < _BUGS_EVERY:
                return
            self._bug_logged = now
        *_, last = traceback.extract_tb(error.__traceback__)
        what = escaped(f"{type(error).__name__}: {error}")[:200]
        place = f"{last.filename}:{last.lineno}"
        _log.error("a request could not be answered; this is a bug: %s, at %s", what, place)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
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
            refused = text_answer("nothing can be set here: GET only", 405)
            self._send(refused, Allow="GET, HEAD")
            return False
        return parsed

    def do_GET(self) -> None:
        if self.headers.get("Transfer-Encoding") or self.headers.get("Content-Length", "0") != "0":
            self.close_connection = True  # what comes is not read
            self._send(text_answer("a request has no body here", 413))
            return
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        refused = refusal(host, origin, self.server.bound, remedy=self.server.remedy)
        if refused is None and self._is_for_another_page():
            refused = "a page of another origin asks for it"
        if refused is not None:
            self._send(text_answer(f"refused: {escaped(refused)}", 403))
            return
        try:
            url = urlsplit(self.path)
        except ValueError:  # a bracket that does not close
            self._send(text_answer("this is no address of a page", 400))
            return
        if not self.server.has_room_for(url.path, self.connection):
            self.close_connection = True
            probes = ", ".join(self.server.probes)
            self._send(text_answer(f"too many connections; only {probes} are answered", 503))
            return
        page = self.server.pages.get(url.path)
        if page is None:
            there = ", ".join(self.server.pages)
            self._send(text_answer(f"there is no such page; there are {there}", 404))
            return
        request = Request(url.query, self.headers.get("Accept", ""), secrets.token_urlsafe(16))
        answer = page(request)
        if isinstance(answer, Answer):
            self._send(answer, request.nonce)
        else:
            self._stream(answer)

    do_HEAD = do_GET  # noqa: N815 - http.server finds it by this name

    def _is_for_another_page(self) -> bool:
        """Return whether a browser says that a page of another origin wants to have this.

        To follow a link from there is allowed: that page does not get to read it.
        """
        site = self.headers.get("Sec-Fetch-Site", "none")
        if site in ("none", "same-origin"):
            return False
        return self.headers.get("Sec-Fetch-Dest") != "document"

    def _stream(self, events: Iterator[bytes]) -> None:
        """Send events as they come, until the reader has gone or they end."""
        self.close_connection = True
        self._head(200, "text/event-stream", None, {})
        if self.command == "HEAD":
            return
        self.wfile.write(b"retry: 1000\n\n")
        for event in events:
            self.wfile.write(event)

    def _send(self, answer: Answer, nonce: str | None = None, **further: str) -> None:
        kind = answer.kind
        if kind.startswith("text/") and "charset" not in kind:
            kind += "; charset=utf-8"
        further["Content-Length"] = str(len(answer.content))
        self._head(answer.status, kind, nonce, further)
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    def _head(self, status: int, kind: str, nonce: str | None, further: dict[str, str]) -> None:
        policy = _POLICY if nonce is None else f"{_POLICY}; script-src 'nonce-{nonce}'"
        headers = {"Content-Type": kind, "Content-Security-Policy": policy, **_HEADERS, **further}
        if self.close_connection:
            headers["Connection"] = "close"
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log requests for debugging only: the terminal belongs to the run."""
        _log.debug("%s: %s", self.client_address[0], escaped(format % args))
