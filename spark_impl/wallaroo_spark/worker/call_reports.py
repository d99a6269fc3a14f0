"""Who learns of each call of user code on a worker: the driver, or the follower of one record."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
import time
from collections.abc import Iterable

from wallaroo.metrics.following import Visit, Visits, error_of
from wallaroo_spark.wire.job import Specs, WireRun
from wallaroo_spark.wire.lineages import Order
from wallaroo_spark.wire.outbox import Messages


class CallReporter:
    """Reports calls to the driver, which looks for the call that kills workers.

    A dead process cannot report. So when workers died in a batch, the batch is run again, and each
    worker sends a datagram before and after each call (`live.call_monitor` receives them).

    Args:
        monitor: host and port of the `live.call_monitor`.
    """

    def __init__(self, monitor: tuple[str, int]) -> None:
        self._monitor = monitor
        self._worker = f"{socket.gethostname()}/{os.getpid()}"

    def begins(self, order: Order) -> None:
        """Report that a call begins."""
        self._send(order)

    def ends(self) -> None:
        """Report that it has ended."""
        self._send(None)

    def _send(self, call: Order | None) -> None:
        message = json.dumps({"worker": self._worker, "call": call}, default=bytes.hex).encode()
        # A new socket for each report: such batches are rare, and no socket stays open.
        with contextlib.suppress(OSError), socket.socket(type=socket.SOCK_DGRAM) as sender:
            sender.sendto(message, self._monitor)


class CallFollower:
    """Notes the calls that a task makes for one record, which the driver has chosen to follow.

    Args:
        sequence: the record's.

    Attributes:
        visits: the calls for that record.
    """

    def __init__(self, sequence: int) -> None:
        self.visits = Visits()
        self._sequence = sequence
        self._visit: Visit | None = None

    def begins(self, order: Order) -> None:
        """Note that a call begins."""
        lineage, node = order[0][:-1], order[1]
        if lineage[0] == self._sequence:
            self._visit = Visit(node, lineage, time.time_ns(), 0)

    def ends(self) -> None:
        """Note that it has ended; an exception of it is being handled."""
        visit, self._visit = self._visit, None
        if visit is not None:
            error = sys.exception()
            visit.ended = time.time_ns()
            visit.error = None if error is None else error_of(error)
            self.visits.add(visit)


def follower_of(
    cases: Specs, runs: Iterable[WireRun] = (), messages: Iterable[Messages] = ()
) -> CallFollower | None:
    """Return a follower, if the task has the record that is followed, or a message made from it."""
    sequence = next((case.follow for case in cases.values() if case.follow is not None), None)
    if sequence is None:
        return None
    here = any(run.first <= sequence < run.first + len(run.items) for run in runs) or any(
        lineage[0] == sequence for run in messages for lineage in run.lineages
    )
    return CallFollower(sequence) if here else None
