"""Asks a running application for its figures."""

from __future__ import annotations

import http.client
import json
from typing import Any

from wallaroo.config import format_address
from wallaroo.errors import WallarooError
from wallaroo.metrics.snapshot import FORMAT
from wallaroo.text import reason

_SECONDS = 10.0
_LARGEST = 64 << 20  # bytes of an answer


class NoFiguresError(WallarooError):
    """Nobody gives figures at an address; says why."""


def figures_at(host: str, port: int, *, histograms: bool = False) -> dict[str, Any]:
    """Return the figures of the application that serves them there (`wallaroo.metrics.snapshot`).

    Args:
        host: where.
        port: where.
        histograms: with the sources' latencies whole.

    Raises:
        NoFiguresError: nobody does, or it is another version.
    """
    address = format_address(host, port)
    connection = http.client.HTTPConnection(host, port, timeout=_SECONDS)
    try:
        connection.request("GET", "/api?histograms" if histograms else "/api")
        answer = connection.getresponse()
        found = json.loads(answer.read(_LARGEST))
    except OSError as error:
        raise NoFiguresError(
            f"nobody answers at {address}: {reason(error)}. Is the application started with "
            f"--metrics {address}?"
        ) from error
    except (http.client.HTTPException, ValueError) as error:
        raise NoFiguresError(f"what answers at {address} is not a Wallaroo application") from error
    finally:
        connection.close()
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise NoFiguresError(
            f"what answers at {address} is not a Wallaroo application of this version"
        )
    return found
