"""The parts of a live run, together: what serves it, and what shows its figures, gets them."""

from __future__ import annotations

from dataclasses import dataclass

from wallaroo.transport.edges import Edges
from wallaroo.transport.stop_clock import StopClock
from wallaroo.transport.threads import LoopThread
from wallaroo_spark.live.delivery import Delivery
from wallaroo_spark.live.intake import Ending, Intake
from wallaroo_spark.live.log_feed import LogFeed
from wallaroo_spark.live.query import LiveQuery


@dataclass(frozen=True)
class LiveRun:
    """The parts of a live run.

    Args:
        loop: the thread of the edges.
        ending: tells all parts that the run has failed.
        feed: the input log, as Spark asks for it.
        intake: appends what the edges receive to the log.
        edges: sources, sinks and dead letters.
        delivery: gives the outputs of a micro-batch to the edges.
        query: Spark's part.
        stop: when the run has to stop.
    """

    loop: LoopThread
    ending: Ending
    feed: LogFeed
    intake: Intake
    edges: Edges
    delivery: Delivery
    query: LiveQuery
    stop: StopClock

    @property
    def backlog(self) -> int:
        """Number of records received and not delivered; in any thread."""
        processed = max(self.delivery.processed, self.feed.committed)
        return self.feed.received - processed + self.intake.waiting
