"""Which requests Locust's page answers: those of a browser that shows this page, and of programs.

Any page that is open in a user's browser can send requests to this one. A browser says in `Origin`
which page a request comes from, and in `Host` which name it believes to have reached. Both are
checked: `Origin` because a page of another origin could start runs and read figures, `Host` because
a name of another owner can be made to mean this machine's address (DNS rebinding).
"""

from __future__ import annotations

import argparse
import ipaddress
import socket
from collections.abc import Collection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from flask import Response, jsonify, request

from wallaroo_loadgen.with_locust.options import FieldError, check_form

if TYPE_CHECKING:  # importing Locust changes Python's sockets and threads for the whole process
    from locust.web import WebUI


def check_requests(web_ui: WebUI, options: argparse.Namespace) -> None:
    """Let a page refuse requests from elsewhere (403), and forms that set what they may not."""
    app: Any = web_ui.app  # there is one once Locust has started
    bound = "" if options.web_host == "*" else options.web_host
    names = {name.strip().lower() for name in (options.web_name or "").split(",") if name.strip()}

    def check() -> Response | None:
        refused = refusal(request.host, request.headers.get("Origin"), bound, names)
        if refused is None and request.endpoint == "locust.swarm":
            try:
                wrong = check_form(options, request.form)
            except FieldError as error:
                refused = str(error)
            else:
                return None if wrong is None else jsonify({"success": False, "message": wrong})
        if refused is None:
            return None
        return Response(f"refused: {refused}\n", 403, mimetype="text/plain")

    def protect(response: Response) -> Response:
        response.headers["X-Frame-Options"] = "SAMEORIGIN"  # no other page may show ours as its own
        return response

    app.before_request(check)
    app.after_request(protect)


def refusal(host: str, origin: str | None, bound: str, names: Collection[str] = ()) -> str | None:
    """Return why a request is refused, or None when it is answered.

    Args:
        host: its `Host` header.
        origin: its `Origin` header, if it has one; programs send none.
        bound: the address or name that the server listens at; empty for all addresses.
        names: further names of this server, in lower case.
    """
    if not _ours(host, bound, names):
        return (
            f"{host!r} is no name of this server; if it is one, start Locust with --web-name, and "
            "with --web-host to listen to more than this machine"
        )
    if origin is not None:
        came_from = _split(origin)
        if came_from not in {("http", host), ("https", host)}:
            return f"the request comes from a page of {origin!r}, which is not this one"
    return None


def _ours(host: str, bound: str, names: Collection[str]) -> bool:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:  # a bracket that does not close
        return False
    if name in names or _is_loopback(name) or (bound and name == bound.lower()):
        return True
    if _is_loopback(bound):
        return False
    return _is_address(name) or name == socket.gethostname().lower()


def _split(origin: str) -> tuple[str, str]:
    try:
        parts = urlsplit(origin)
    except ValueError:
        return "", ""
    return parts.scheme, parts.netloc


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    return name == "localhost" or (_is_address(name) and ipaddress.ip_address(name).is_loopback)
