"""The streaming query of a live run: in a session, fed from the input log, until `end` is called.

Spark's threads ask `live.log_feed` for input and give each batch's outputs to `live.delivery`. When
workers die in a batch, it is run again to find the call in which they die.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from wallaroo.errors import WallarooError
from wallaroo.metrics.registry import MOST_EXECUTORS
from wallaroo_spark.jvm.failures import too_much, worker_died
from wallaroo_spark.jvm.pyspark_private import executors, for_each_batch
from wallaroo_spark.jvm.session import Session, borrowed
from wallaroo_spark.jvm.shipping import ship
from wallaroo_spark.live.call_monitor import CallMonitor
from wallaroo_spark.live.checkpoint import Checkpoint
from wallaroo_spark.live.delivery import Delivery
from wallaroo_spark.live.failures import explaining
from wallaroo_spark.live.log_feed import LogFeed
from wallaroo_spark.live.options import SparkOptions
from wallaroo_spark.live.spark_part import cut_last
from wallaroo_spark.live.watch import Watch
from wallaroo_spark.plans.feed import FeedServer
from wallaroo_spark.plans.leaving import after_leaving
from wallaroo_spark.plans.stream import streaming_rows
from wallaroo_spark.wire.job import Report
from wallaroo_spark.wire.lineages import just_before
from wallaroo_spark.wire.rows import collected
from wallaroo_spark.worker.leaving import Departure

_LOOK = 2.0  # seconds between looks at Spark's own figures, which ask the JVM
_PATIENCE = 16.0  # seconds without an executor after which it is said

_log = logging.getLogger("wallaroo.spark")


class LiveQuery:
    """The query of a live run; `run` starts it.

    Args:
        levels: number of stateful operators.
        options: the run's options.
        checkpoint: the checkpoint, with a directory for Spark.
        feed: the input.
        delivery: delivers the outputs.
        watch: gets what Spark reports about its work, for figures; `None`: no figures.
        departure: where outputs leave to from workers.

    Attributes:
        over: set when the query should end.
        stage: grows while Spark starts.
        batch_seconds: seconds that the collection and delivery of the last batch took.
    """

    def __init__(
        self,
        levels: int,
        options: SparkOptions,
        checkpoint: Checkpoint,
        feed: LogFeed,
        delivery: Delivery,
        watch: Watch | None,
        departure: Departure,
    ) -> None:
        self._watch = watch
        self._departure = departure
        self.over = threading.Event()
        self.stage = 0
        self.batch_seconds = 0.0
        self._levels = levels
        self._options = options
        self._checkpoint = checkpoint
        self._feed = feed
        self._delivery = delivery
        self._session: Session | None = None
        self._up = False  # whether the session is up
        self._killed = False
        self._changed = threading.Event()  # the query has ended, or should end

    def run(self) -> None:
        """Start Spark, and run the query until `over` is set.

        Raises:
            WallarooError: Spark did not start, or the query ended with an error.
        """
        # The JVM inherits the lock of a user's checkpoint, which must be held until the JVM has
        # ended. A temporary checkpoint, or copy of one, needs no lock: no other run knows it.
        fds = (self._checkpoint.lock,) if isinstance(self._options.checkpoint, Path) else ()
        try:
            with (
                borrowed(self._options.settings, fds, self._started) as session,
                FeedServer(self._feed, session.directory) as server,
            ):
                self._up = True
                self._started(session)
                with explaining(self._checkpoint.directory, session.death):
                    self._run_or_find_killing_call(session, server.address)
        except Exception:
            if not self.over.is_set():
                raise  # errors after `end` was called are ignored

    def end(self) -> None:
        """End it soon, without waiting for a session that is still starting."""
        self.over.set()
        self._changed.set()
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
            if not worker_died(error) or self.over.is_set() or self._killed:
                raise
            self._find_killing_call(session, address)

    def _work(self, session: Session, address: str) -> None:
        """Run the query. A micro-batch that proves too large is cut, and the query begins again."""
        while True:
            try:
                self._query(session, address)
            except Exception as error:
                fitting = too_much(error)
                if fitting is None or self.over.is_set() or self._killed:
                    raise
            else:
                return
            before, now = cut_last(self._checkpoint.spark, *fitting)
            _log.warning(
                "a micro-batch of %d records is more than --batch-bytes allows for: the records of "
                "its topics have grown. It is cut to %d",
                before,
                now,
            )
            self._feed.cut(now)

    def _query(self, session: Session, address: str) -> None:
        shards, shipment = self._checkpoint.partitions, ship(session, session.directory)
        rows = streaming_rows(
            session.spark, address, levels=self._levels, shards=shards, shipment=shipment
        )
        if self._departure.destinations:
            rows = after_leaving(rows, shards, shipment, self._departure)
        writer = for_each_batch(rows.writeStream, self._take_batch).option(
            "checkpointLocation", self._checkpoint.spark_url
        )
        if self._options.trigger:
            writer = writer.trigger(processingTime=f"{self._options.trigger} milliseconds")
        query: Any = writer.start()
        self.stage += 1
        watch = self._watch
        if watch is not None:
            watch.running()
        threading.Thread(
            target=self._wait_for, args=(query,), name="wallaroo-query", daemon=True
        ).start()
        looks, alone = 0, not session.settings.local
        while not self.over.is_set():
            self._changed.wait(_LOOK if alone or watch is not None else None)
            if self._changed.is_set():
                self._changed.clear()
                if not self.over.is_set() and not query.isActive:
                    query.awaitTermination()  # raises what ended it
                    raise WallarooError("Spark ended the query")
                continue
            looks += 1
            there = executors(session.spark, MOST_EXECUTORS)
            alone = alone and not _has_executor(session, there, looks * _LOOK)
            if watch is not None:
                watch.progressed(query.lastProgress, there)
        self._feed.answer_at_once()  # it would keep the query from stopping
        with contextlib.suppress(Exception):
            query.stop()

    def _wait_for(self, query: Any) -> None:
        """Note that a query has ended. To ask now and then costs the driver and the JVM more."""
        with contextlib.suppress(Exception):
            query.awaitTermination()
        self._changed.set()

    def _take_batch(self, batches: Iterable[Any]) -> None:
        began = time.monotonic()
        self._delivery.deliver(Report.merged(collected(batches)))
        self.batch_seconds = time.monotonic() - began
        if self._feed.case.monitor:
            self._feed.case = replace(self._feed.case, monitor=None)  # no worker died this time

    def _find_killing_call(self, session: Session, address: str) -> None:
        """Find the call in which workers die, after Spark gave up; end the run there (dead-3)."""
        case = self._feed.case
        host = session.spark.sparkContext.getConf().get("spark.driver.host")
        with CallMonitor(host) as monitor:
            self._feed.case = replace(case, monitor=monitor.address)
            try:
                self._work(session, address)
            except Exception as error:
                killing = monitor.killing_call()
                if not worker_died(error) or killing is None:
                    raise
            else:
                return  # no worker died this time
        self._delivery.killing_call = killing
        self._feed.case = replace(case, limit=just_before(killing.order))
        self._work(session, address)


def _has_executor(session: Session, there: Sequence[Mapping[str, Any]], waited: float) -> bool:
    """Whether a cluster has given the run an executor; a warning says so when it has not."""
    if any(executor["executor"] != "driver" for executor in there):
        return True
    if _PATIENCE <= waited < _PATIENCE + _LOOK:
        _log.warning(
            "Spark's master %s has given this run no executor for %.0f s, and it waits: no worker "
            "has enough free memory and cores, or executors fail at their start. The master's page "
            "says which; --conf spark.executor.memory and spark.executor.cores ask for less",
            session.settings.master,
            waited,
        )
    return False
