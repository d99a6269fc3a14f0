"""Appends records to the input log as fast as it takes them; in the edges' thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from wallaroo.kafka_records import KafkaRun
from wallaroo.overriding import override
from wallaroo.records import Assigned, End, Tick, Value, records_of
from wallaroo.topology import Application
from wallaroo.transport.appending import Appender
from wallaroo.transport.edges import Edges
from wallaroo.transport.interfaces import Receiver
from wallaroo.transport.stop_clock import StopClock
from wallaroo.transport.threads import LoopThread
from wallaroo_spark.live.log_feed import LogFeed
from wallaroo_spark.live.watch import Watch


class _Some(NamedTuple):
    """Records that arrived together: how many, what appends them to the log, and their source."""

    number: int
    append: Callable[[], None]
    source: str


class Ending:
    """Tells all parts of a run that it has failed; used in any thread.

    Attributes:
        problem: what was wrong first; `None`: nothing.
    """

    def __init__(self) -> None:
        self.problem: str | None = None
        self._calls: list[Callable[[], None]] = []

    def when_failed(self, call: Callable[[], None]) -> None:
        """Call `call` when the run fails, at once if it has failed; it may be called twice."""
        self._calls.append(call)
        if self.problem is not None:
            call()

    def fail(self, problem: str) -> None:
        """End the run, and drop what is on its way."""
        self.problem = self.problem or problem
        for call in self._calls:
            call()


class Intake(Receiver):
    """What stands behind the edges: gives records their arrival time, and appends them to the log.

    Args:
        application: whose records.
        feed: appends to the input log.
        loop: the thread of the edges.
        ending: notified if the log cannot store more.
        clock: returns the arrival time of a record, in nanoseconds since 1970.
        open_sources: the sources that can still give something.
        watch: gets what is logged, for figures; `None`: no figures.
        topics: of each Kafka source the topic's name.
        whole: of what these read, log the records, not their offsets alone (kafka-2).
    """

    def __init__(
        self,
        application: Application,
        feed: LogFeed,
        loop: LoopThread,
        ending: Ending,
        clock: Callable[[], int],
        open_sources: set[str],
        watch: Watch | None,
        topics: Mapping[str, str],
        *,
        whole: bool,
    ) -> None:
        self._topics = topics
        self._whole = whole
        self._watch = watch
        self._application = application
        self._feed = feed
        self._loop = loop
        self._ending = ending
        self._clock = clock
        self._open_sources = open_sources
        self._closing: list[Callable[[], None]] = []  # to be called once they are durable
        self._edges: Edges
        self._appender: Appender[_Some]
        self._stop: StopClock
        feed.room_made = partial(loop.post, self.go_on)

    def begin(self, edges: Edges, stop: StopClock) -> None:
        """Take from these edges; nothing is received before their loop starts.

        Args:
            edges: paused while no more should be read.
            stop: notified when the input has ended.
        """
        self._edges, self._stop = edges, stop
        self._appender = Appender(
            self._append,
            edges,
            full=lambda: self._feed.full,
            failed=self._ending.fail,
            all_taken=self._close_later,
        )
        if self._feed.full:
            edges.pause("log")

    @property
    def waiting(self) -> int:
        """Number of records that have been read and are not in the log."""
        return sum([some.number for some in self._appender.waiting])

    @override
    def receive(self, source: str, payloads: list[bytes]) -> None:
        append = partial(self._feed.append, source, payloads, self._clock())
        self._appender.take(_Some(len(payloads), append, source))

    @override
    def receive_records(self, records: Sequence[Value | Assigned | End]) -> None:
        self.add(records)
        ends = [record for record in records if isinstance(record, End)]
        self._open_sources -= {record.source for record in ends if record.partition is None}
        self.stop_if_all_have_ended()

    @override
    def receive_run(self, source: str, run: KafkaRun, at: int | None) -> None:
        at = self._clock() if at is None else at
        append = partial(self._feed.append_offsets, source, run.partition, run.first, run.last, at)
        if self._whole:
            records = records_of(source, run, self._topics[source], at)
            append = partial(self._feed.append_records, records)
        self._appender.take(_Some(run.last + 1 - run.first, append, source))

    @override
    def when_sequenced(self, close: Callable[[], None]) -> None:
        # What is sequenced here is on disk.
        call = partial(self._loop.post, close)
        if self._appender.waiting:
            self._closing.append(call)
        elif not self._appender.over:
            self._feed.when_durable(call)

    @override
    def sinks_have_room(self) -> None:
        """Do nothing: `Delivery` waits for the sinks itself."""

    @override
    def input_failed(self, problem: str) -> None:
        self._stop.input_ended(problem)

    @override
    def input_ended(self, problem: str | None) -> None:
        # What stdin stands in for ends (time-5).
        if problem is not None:
            self._stop.input_ended(problem)
        ended = self._edges.listened_to & self._open_sources
        if self._application.time_decides:
            self.add([End(name) for name in sorted(ended)])
        self._open_sources -= ended
        self.stop_if_all_have_ended()

    @override
    def outputs_broken(self, problem: str) -> None:
        self._ending.fail(problem)

    def stop_if_all_have_ended(self) -> None:
        """Begin a stop if no source can give anything any more."""
        if not self._open_sources:
            self._stop.input_ended(None)

    def add(self, records: Sequence[Value | Assigned | Tick | End]) -> None:
        """Append records that are not frames; what arrives together arrives at one time.

        A Kafka source says itself when it began, and when what it read to the end has ended
        (kafka-10).
        """
        if not records:
            return
        now = self._clock()
        stamped = [
            record
            if record.at and not isinstance(record, (Value, Tick)) and record.source in self._topics
            else replace(record, at=now)
            for record in records
        ]
        source = stamped[0].source if isinstance(stamped[0], Value) else ""
        self._appender.take(
            _Some(len(stamped), partial(self._feed.append_records, stamped), source)
        )

    def go_on(self) -> None:
        """Read again, as far as there is room now."""
        self._appender.room_made()

    def _append(self, some: _Some) -> None:
        some.append()
        if self._watch is not None:
            self._watch.came(some.source, some.number, self._feed.received)

    def _close_later(self) -> None:
        for close in self._closing:
            self._feed.when_durable(close)
        self._closing.clear()


_LOOK = 0.05  # most seconds between looks at the clock, which may be set


async def write_ticks(
    clock: Callable[[], int],
    due: Callable[[], int | None],
    backlog: Callable[[], int],
    take: Callable[[Tick], None],
) -> None:
    """Write ticks until cancelled.

    Args:
        clock: returns the time, in nanoseconds since 1970.
        due: returns when something is due, once all that was received is processed.
        backlog: returns the number of records that are not processed.
        take: takes a tick; from then on it is in the backlog.
    """
    while True:
        at = due()
        now = clock()
        if at is not None and at <= now and not backlog():
            take(Tick(now))
        wait = _LOOK if at is None or at <= now else min((at - now) / 1e9, _LOOK)
        await asyncio.sleep(wait)
