"""Brings a live run's counts to its figures: after each read, and every second."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping

from wallaroo.metrics.deliveries import Deliveries
from wallaroo.topology import SinkId
from wallaroo.transport.edges import Edges
from wallaroo.transport.kafka.context import Context
from wallaroo_reference.compiled.measured import MeasuredCompiled
from wallaroo_reference.isolated.measured import MeasuredInterpreter

_LOOK = 1.0  # seconds between looks
_SHARE = 500  # counting the open windows takes at most this part of the time (1/500)


class Watch:
    """Watches a machine between its edges.

    Args:
        machine: what is watched; it has the figures.
        edges: the edges.
        made: returns how many outputs have been made by sink, if some wait before they get to the
            sink; `None`: they get there at once.
    """

    def __init__(
        self,
        machine: MeasuredCompiled | MeasuredInterpreter,
        edges: Edges,
        made: Callable[[], Mapping[SinkId, int]] | None = None,
    ) -> None:
        self._machine = machine
        self._metrics = machine.probes.registry
        self._deliveries = Deliveries(self._metrics, edges.sinks, made)
        self.came = self._deliveries.came
        self._timer: asyncio.TimerHandle | None = None
        self._look_due = self._count_due = 0.0

    def start(self) -> None:
        """Begin, in the running loop."""
        self._metrics.thread = threading.get_ident()
        self._metrics.thread_of = "wallaroo_reference"
        self._look_again()

    @property
    def follows(self) -> bool:
        """Whether single records are followed."""
        return self._machine.follower is not None

    def fed(
        self, records: int, seconds: float, context: Callable[[int], Context] | None = None
    ) -> None:
        """Note that records were processed in so many seconds, and sinks have their outputs.

        Args:
            records: how many.
            seconds: how long it took.
            context: returns the trace that a record belongs to, by its number; `None`: to none.
        """
        self._metrics.busy_seconds += seconds
        follower = self._machine.follower
        followed = None if follower is None else follower.take()
        if followed is not None and context is not None:
            followed.context = context(followed.sequence)
        self._deliveries.handed_on(records, followed)
        if time.monotonic() >= self._look_due:
            self._look()

    def replayed(self, seconds: float) -> None:
        """Note that records of an earlier run were processed in so many seconds."""
        self._metrics.busy_seconds += seconds
        self._deliveries.replayed()
        follower = self._machine.follower
        if follower is not None:
            follower.take()
        if time.monotonic() >= self._look_due:
            self._look()

    def close(self) -> None:
        """Stop looking."""
        self._deliveries.close()
        if self._timer is not None:
            self._timer.cancel()
        self._machine.probes.settle()
        self._machine.copy_figures(self._metrics)
        self._metrics.heard = None

    def _look_again(self) -> None:
        self._machine.probes.settle()
        self._look()
        self._timer = asyncio.get_running_loop().call_later(_LOOK, self._look_again)

    def _look(self) -> None:
        began = time.monotonic()
        self._metrics.heard = self._metrics.monotonic()
        self._look_due = began + _LOOK
        self._machine.copy_figures(self._metrics)
        if self._metrics.windows and began >= self._count_due:
            self._machine.count_windows(self._metrics)
            done = time.monotonic()
            self._count_due = done + _SHARE * (done - began)
