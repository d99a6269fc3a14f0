"""Which call a worker process died in (dead-3).

A process that is gone says nothing. So when Spark has given up on a batch because workers died, the
batch is run again, watched: before and after each call of user code a worker sends a datagram. The
call that several workers began and none ended is where they die.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections import Counter
from typing import Any

from wallaroo_spark.wire.outbox import End, Order

Address = tuple[str, int]

_LARGEST = 64 * 1024  # bytes of a datagram


class Watch:
    """Listens to workers, in the driver; a context manager."""

    def __init__(self, host: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self.address: Address = self._socket.getsockname()
        self._calls: dict[str, End | None] = {}
        threading.Thread(target=self._listen, name="wallaroo-watch", daemon=True).start()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def deadly(self) -> End | None:
        """Return the call that the most workers began and did not end, as the end of the run."""
        begun = Counter([call for call in self._calls.values() if call is not None])
        if not begun:
            return None
        most = max(begun.values())
        return min([call for call, times in begun.items() if times == most], key=_order)

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._socket.recv(_LARGEST):
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    self._note(json.loads(data))

    def _note(self, told: dict[str, Any]) -> None:
        call = told["call"]
        if call is not None:
            lineage, position, sink, pipeline, step = call
            call = End((tuple(lineage), position, sink), "exit", pipeline, step, None)
        self._calls[told["worker"]] = call


class Teller:
    """Tells of calls, in a worker."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._worker = f"{socket.gethostname()}/{os.getpid()}"

    def begins(self, order: Order, pipeline: str, step: str | None) -> None:
        """Tell that a call begins."""
        self._tell([*order, pipeline, step])

    def ends(self) -> None:
        """Tell that it has ended."""
        self._tell(None)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def _tell(self, call: list[object] | None) -> None:
        message = json.dumps({"worker": self._worker, "call": call})
        with contextlib.suppress(OSError):
            self._socket.sendto(message.encode(), self._address)


def just_before(order: Order) -> Order:
    """Return a limit that all calls before `order` keep, and it does not."""
    lineage, position, sink = order
    return lineage, position, sink - 1


def _order(end: End) -> Order:
    return end.order
