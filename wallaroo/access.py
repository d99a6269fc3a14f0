"""Decides which requests our pages answer: those of programs, and of a browser that shows our page.

Any page that is open in a user's browser can send requests to ours. A browser says in `Origin`
which page a request comes from, and in `Host` which name it believes to have reached. Both are
checked: `Origin` because a page of another origin could start runs and read figures, `Host` because
the owner of another name can make it point to this machine (DNS rebinding).
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Collection
from urllib.parse import urlsplit


def refusal(
    host: str, origin: str | None, bound: str, names: Collection[str] = (), remedy: str = ""
) -> str | None:
    """Return why a request is refused, or None when it is answered.

    Args:
        host: its `Host` header.
        origin: its `Origin` header, if it has one; programs send none.
        bound: the address or name that the server listens at; empty for all addresses.
        names: further names of this server, in lower case.
        remedy: how the user makes another name one of this server.
    """
    if not _ours(host, bound, names):
        return f"{host!r} is not a name of this server{remedy and f'; if it is one, {remedy}'}"
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
