"""The streaming query of a live run: in a session, fed from the input log, until told to end.

Spark's threads call back for input (`live.log_feed`) and with each batch's outputs
(`live.delivery`). When workers die of a batch, it is run again to find out in which call.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from dataclasses import replace
from typing import Any

from wallaroo.errors import WallarooError
from wallaroo_spark.jvm.session import Session, borrowed
from wallaroo_spark.jvm.shipping import ship
from wallaroo_spark.live.call_monitor import CallMonitor
from wallaroo_spark.live.checkpoint import Checkpoint
from wallaroo_spark.live.delivery import Delivery
from wallaroo_spark.live.failures import explained
from wallaroo_spark.live.log_feed import LogFeed
from wallaroo_spark.live.options import SparkOptions
from wallaroo_spark.plans.feed import FeedServer
from wallaroo_spark.plans.stream import streaming_rows
from wallaroo_spark.wire.job import Report
from wallaroo_spark.wire.outbox import just_before
from wallaroo_spark.wire.rows import collected

_LOOK = 0.1  # seconds between looks whether the query still runs

_log = logging.getLogger("wallaroo.spark")


class LiveQuery:
    """A query that is not yet up.

    Args:
        levels: number of stateful operators.
        options: of the run.
        checkpoint: where Spark has its part.
        feed: the input.
        delivery: takes the outputs.

    Attributes:
        over: set to end it.
        stage: grows while Spark comes up.
        batch_seconds: how long the last batch's collection and delivery took.
    """

    def __init__(
        self,
        levels: int,
        options: SparkOptions,
        checkpoint: Checkpoint,
        feed: LogFeed,
        delivery: Delivery,
    ) -> None:
        self.over = threading.Event()
        self.stage = 0
        self.batch_seconds = 0.0
        self._levels = levels
        self._options = options
        self._checkpoint = checkpoint
        self._feed = feed
        self._delivery = delivery
        self._session: Session | None = None
        self._up = False  # the session is
        self._killed = False

    def run(self) -> None:
        """Bring Spark up, and run the query until `over` is set.

        Raises:
            WallarooError: Spark did not come up, or the query ended for whatever reason.
        """
        # A checkpoint of the user's must be nobody else's until the JVM is gone; what is temporary
        # is found by no other run.
        fds = () if self._options.checkpoint is None else (self._checkpoint.lock,)
        try:
            with (
                borrowed(self._options.settings, fds, self._started) as session,
                FeedServer(self._feed, session.directory) as server,
            ):
                self._up = True
                self._started(session)
                try:
                    self._run_or_find_killing_call(session, server.address)
                except WallarooError:
                    raise
                except Exception as error:
                    # Only as long as there is Spark does its error tell its text.
                    _log.debug("Spark failed", exc_info=error)
                    text = str(error) or type(error).__name__
                    raise WallarooError(explained(text, self._checkpoint)) from error
        except Exception:
            if not self.over.is_set():
                raise  # an error while it is being ended changes nothing

    def end(self) -> None:
        """End it soon; a session that is still coming up is not waited for."""
        self.over.set()
        if not self._up and self._session is not None:
            self._session.give_up()

    def kill(self) -> None:
        """Kill Spark's JVM."""
        self._killed = True
        if self._session is not None:
            self._session.kill()

    def _started(self, session: Session) -> None:
        self._session = session
        self.stage += 1
        if self._killed:
            session.kill()
        elif self.over.is_set() and not self._up:
            session.give_up()

    def _run_or_find_killing_call(self, session: Session, address: str) -> None:
        try:
            self._work(session, address)
        except Exception as error:
            if not _worker_died(error) or self.over.is_set() or self._killed:
                raise
            self._find_killing_call(session, address)

    def _work(self, session: Session, address: str) -> None:
        rows = streaming_rows(
            session.spark,
            address,
            levels=self._levels,
            shards=self._checkpoint.partitions,
            shipment=ship(session, session.directory),
        )
        writer = rows.writeStream.foreachBatch(self._take_batch).option(
            "checkpointLocation", str(self._checkpoint.spark)
        )
        if self._options.trigger:
            writer = writer.trigger(processingTime=f"{self._options.trigger} milliseconds")
        query: Any = writer.start()
        self.stage += 1
        while not self.over.wait(_LOOK):
            if not query.isActive:
                query.awaitTermination()  # raises what ended it
                raise WallarooError("Spark ended the query")
        with contextlib.suppress(Exception):
            query.stop()

    def _take_batch(self, rows: Any, _batch: int) -> None:
        began = time.monotonic()
        self._delivery.deliver(Report.merged(collected(rows)))
        self.batch_seconds = time.monotonic() - began
        if self._feed.case.monitor:
            self._feed.case = replace(self._feed.case, monitor=None)  # no worker died this time

    def _find_killing_call(self, session: Session, address: str) -> None:
        """Find out in which call workers die, now that Spark gave up; end there (dead-3)."""
        case = self._feed.case
        host = session.spark.sparkContext.getConf().get("spark.driver.host")
        with CallMonitor(host) as monitor:
            self._feed.case = replace(case, monitor=monitor.address)
            try:
                self._work(session, address)
            except Exception as error:
                killing = monitor.killing_call()
                if not _worker_died(error) or killing is None:
                    raise
            else:
                return  # it did not happen again
        self._delivery.killing_call = killing
        self._feed.case = replace(case, limit=just_before(killing.order))
        self._work(session, address)


def _worker_died(error: Exception) -> bool:
    text = str(error)
    return "Python worker exited unexpectedly" in text or "Python worker crashed" in text
