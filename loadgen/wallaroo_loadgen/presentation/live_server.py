"""`wallaroo load --live`: the run that goes on, for browsers and for Prometheus.

    /          the page, which asks for
    /figures   what it shows, as JSON
    /metrics   figures as Prometheus reads them

Nothing can be set from it: it answers GET only. It listens to this machine unless the user names
another address, and refuses requests that come by a name which is not its own.
"""

from __future__ import annotations

import json
import secrets
import socket
import sys
import threading
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, ClassVar, Self
from urllib.parse import urlsplit

from wallaroo.access import refusal
from wallaroo_loadgen.common.config import Address
from wallaroo_loadgen.control.conductor import Conductor
from wallaroo_loadgen.control.result import Result
from wallaroo_loadgen.control.search import Search
from wallaroo_loadgen.presentation import live
from wallaroo_loadgen.presentation.metrics import exposition

_REFRESH_SECONDS = 0.5
_ALL_ADDRESSES = {"", "0.0.0.0", "::"}  # noqa: S104 - compared with, not listened to
_IDLE_SECONDS = 10  # a connection that asks for nothing is closed

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


class LiveServer:
    """Shows the newest figures that it was given, from threads of its own.

    Args:
        address: where to listen; port 0 takes a free one.

    Raises:
        OSError: when it cannot listen there.
    """

    def __init__(self, address: Address) -> None:
        self._result: Result | None = None  # replaced as a whole: threads read it without a lock
        self._found: Search | None = None
        self._again = 0.0  # the time from which on figures are taken again
        self._server = _Server(address, self)
        host, port = self._server.server_address[:2]
        self.url = f"http://{f'[{host!s}]' if ':' in str(host) else host!s}:{port}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def watch(self, conductor: Conductor) -> None:
        """Take the figures of a run that goes on, twice a second at most.

        It takes at most a tenth of the caller's time, because the caller has reports to read.
        """
        now = time.monotonic()
        if now >= self._again:
            self._result = Result.of(conductor)
            took = time.monotonic() - now
            self._again = now + max(_REFRESH_SECONDS, 10 * took)

    def take(self, result: Result, found: Search | None = None) -> None:
        """Take the figures of a run that is over, and of the search that it belongs to."""
        if found is not None:  # a copy: the search goes on while threads read this
            found = replace(found, points=list(found.points), results=list(found.results))
        self._result, self._found = result, found

    def answer(self, path: str, accept: str, nonce: str) -> tuple[str, bytes] | None:
        """Return content type and content of a path, or None when there is no such path."""
        match path:
            case "/":
                return "text/html; charset=utf-8", live.page(nonce).encode()
            case "/figures":
                shown = live.view(self._result, self._found)
                return "application/json", json.dumps(shown).encode()
            case "/metrics":
                content, kind = exposition(lambda: self._result, accept)
                return kind, content
        return None


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: Address, owner: LiveServer) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.owner = owner
        self.bound = "" if address[0] in _ALL_ADDRESSES else address[0]
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over a browser that has gone before it had its answer."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout: ClassVar[int] = _IDLE_SECONDS
    server_version = "wallaroo"
    sys_version = ""

    def do_GET(self) -> None:
        host, origin = self.headers.get("Host", ""), self.headers.get("Origin")
        refused = refusal(host, origin, self.server.bound, remedy="give it in --live HOST:PORT")
        if refused is not None:
            self._send(403, "text/plain; charset=utf-8", f"refused: {refused}\n".encode())
            return
        nonce = secrets.token_urlsafe(16)
        found = self.server.owner.answer(
            urlsplit(self.path).path, self.headers.get("Accept", ""), nonce
        )
        if found is None:
            self._send(404, "text/plain", b"no such page\n")
        else:
            self._send(200, *found, nonce=nonce)

    def _send(self, status: int, kind: str, content: bytes, nonce: str | None = None) -> None:
        policy = "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'"
        if nonce is not None:
            policy += f"; script-src 'nonce-{nonce}'"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Security-Policy", policy)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: the terminal belongs to the run."""
