"""Finds the call of user code in which worker processes die (dead-3).

When Spark has given up on a batch because workers died, the batch is run once more, and workers
report each call before and after they make it (`worker.call_reports`). The call that most workers
began and did not end is the one that kills them.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections import Counter
from typing import Any

from wallaroo_spark.wire.outbox import End

_LARGEST = 64 * 1024  # bytes of a datagram


class CallMonitor:
    """Listens to workers; a context manager.

    Args:
        host: the address to listen on; workers must be able to reach it.

    Attributes:
        address: host and port.
    """

    def __init__(self, host: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((host, 0))
        self.address: tuple[str, int] = self._socket.getsockname()
        self._calls: dict[str, End | None] = {}
        threading.Thread(target=self._listen, name="wallaroo-monitor", daemon=True).start()

    def __enter__(self) -> CallMonitor:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def killing_call(self) -> End | None:
        """Return the call that most workers began and did not end, as the end of the run."""
        calls = list(self._calls.values())  # at once: a late report may still come
        begun = Counter([call for call in calls if call is not None])
        if not begun:
            return None
        most = max(begun.values())
        return min(
            [call for call, times in begun.items() if times == most], key=lambda end: end.order
        )

    def _listen(self) -> None:
        with contextlib.suppress(OSError):
            while data := self._socket.recv(_LARGEST):
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    self._note(json.loads(data))

    def _note(self, report: dict[str, Any]) -> None:
        call = report["call"]
        if call is not None:
            lineage, node, sink = call
            call = End((tuple([_with_key(item) for item in lineage]), node, sink), "exit")
        self._calls[report["worker"]] = call


def _with_key(item: Any) -> Any:
    """Return an item of a lineage from its JSON form; that of a window has a key (`Fired`)."""
    return (item[0], bytes.fromhex(item[1])) if isinstance(item, list) else item
