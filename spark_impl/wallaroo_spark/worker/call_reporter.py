"""Reports each call of user code to the driver, which looks for the call that kills workers.

A dead process cannot report. So when workers died in a batch, the batch is run again, and each
worker sends a datagram before and after each call (`live.call_monitor` receives them).
"""

from __future__ import annotations

import contextlib
import json
import os
import socket

from wallaroo_spark.wire.outbox import Order


class CallReporter:
    """Reports the calls that this worker makes.

    Args:
        monitor: host and port of the `live.call_monitor`.
    """

    def __init__(self, monitor: tuple[str, int]) -> None:
        self._monitor = monitor
        self._worker = f"{socket.gethostname()}/{os.getpid()}"

    def begins(self, order: Order, pipeline: str, step: str | None) -> None:
        """Report that a call begins."""
        self._send([*order, pipeline, step])

    def ends(self) -> None:
        """Report that it has ended."""
        self._send(None)

    def _send(self, call: list[object] | None) -> None:
        message = json.dumps({"worker": self._worker, "call": call}, default=bytes.hex).encode()
        # A new socket for each report: such batches are rare, and no socket stays open.
        with contextlib.suppress(OSError), socket.socket(type=socket.SOCK_DGRAM) as sender:
            sender.sendto(message, self._monitor)
