"""The parts of a live run, made in the order in which a frame meets them.

Each part is made of finished ones. Two pairs need each other: the edges give frames to the intake,
which pauses them; and a failure that any part finds ends the query. So the intake begins, and
failures are acted on, when all parts are there, before anything is received.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from wallaroo.engine import ServeOptions
from wallaroo.records import Assigned, End
from wallaroo.topology import Application, SinkId
from wallaroo.transport.checkpoint import say_where_it_begins
from wallaroo.transport.edges import Edges
from wallaroo.transport.listener import Address
from wallaroo.transport.resumption import Stream
from wallaroo.transport.skipping import refuse_unskippable
from wallaroo.transport.stop_clock import StopClock
from wallaroo.transport.threads import LoopThread
from wallaroo_spark.jvm.java import find_java
from wallaroo_spark.jvm.pickling import pickle_application, warn_of_unportable_states
from wallaroo_spark.jvm.process import SubmittingJvm
from wallaroo_spark.live.delivery import Delivery
from wallaroo_spark.live.figures import Figures
from wallaroo_spark.live.intake import Ending, Intake
from wallaroo_spark.live.kafka_sinks import KafkaSinks
from wallaroo_spark.live.kafka_sources import begun_sources, note_fetched, topics_of
from wallaroo_spark.live.log_feed import LogFeed
from wallaroo_spark.live.options import SparkOptions
from wallaroo_spark.live.parts import LiveRun
from wallaroo_spark.live.query import LiveQuery
from wallaroo_spark.live.remote import Remote
from wallaroo_spark.live.resume import Resume, sources_to_come
from wallaroo_spark.live.storage import Storage, opened
from wallaroo_spark.live.watch import Watch
from wallaroo_spark.wire.job import CaseSpec, Topic
from wallaroo_spark.worker.plan import plan


@contextlib.contextmanager
def opened_run(
    application: Application,
    options: ServeOptions,
    own: SparkOptions,
    directory: Path,
    addresses: Mapping[str, Address] | None,
    clock: Callable[[], int],
    remote: Remote | None,
) -> Iterator[LiveRun]:
    """Open all parts of a run but Spark, and close them at the end, the last opened first.

    Args:
        application: what is run.
        options: of every engine.
        own: this engine's.
        directory: the checkpoint's.
        addresses: those to listen on, after a restart.
        clock: returns the time, in nanoseconds since 1970.
        remote: the checkpoint is at this URL.

    Raises:
        WallarooError: see `wallaroo_spark.live.serve.Server`.
    """
    warn_of_unportable_states(application)
    if not SubmittingJvm.is_there():
        find_java()
    pickled = pickle_application(application)
    with contextlib.ExitStack() as up:
        storage = up.enter_context(opened(directory, application, own, options.partitions, remote))
        if own.checkpoint is not None:
            say_where_it_begins(own.checkpoint, storage.log.next_sequence)
        refuse_unskippable(storage.log, storage.log.first_sequence, own.skip_record)
        ending, loop = Ending(), LoopThread("wallaroo-edges")
        watch = None if options.metrics is None else Watch(options.metrics)
        topics = topics_of(application, options.metrics)
        feed = _feed(application, pickled, options, own, storage, topics, ending, watch)
        up.callback(feed.close)
        intake = _intake(application, own, storage, topics, feed, loop, ending, watch, clock)
        sources = begun_sources(application, storage, options, own, feed, intake, loop, ending)
        up.callback(sources.close)
        sinks = _sinks(application, options, own, storage)
        storage.checkpoint.publish()  # before an output leaves
        feed.case = replace(feed.case, topics=sinks.topics)
        edges = Edges(
            *(application, options, loop, intake, addresses, clock),
            of_kafka=sources.sources,
            to_kafka=sinks.sinks,
            streams=_streams(storage),
            logged=storage.logged,
        )
        edges.dead_letters.run = storage.checkpoint.born.checkpoint
        due = None if storage.resume is None else storage.resume.last.due
        note = _note_of(storage, feed, edges, loop)
        delivery = Delivery(application, edges, loop, feed.records, note, due, watch, sinks)
        delivery.on_fetched = partial(note_fetched, sources, feed)
        levels = plan(application).levels
        query = LiveQuery(levels, own, storage.checkpoint, feed, delivery, watch, sinks.departure)
        stop = StopClock(
            options,
            loop,
            edges,
            lambda: (query.stage, feed.planned, feed.committed),
            lambda: run.backlog,
            counts_from_progress=True,
        )
        run = LiveRun(loop, ending, feed, intake, edges, delivery, query, stop)
        intake.begin(edges, stop)
        begun = sources.go_on(clock())
        ending.when_failed(lambda: _abandon(run))
        if options.metrics is not None:
            figures = Figures(options.metrics, application, storage.checkpoint, run)
            up.callback(figures.close)
            if sources.sources:
                options.metrics.before_tick(partial(sources.copy_figures, options.metrics))
        edges.open(lambda: _begin(storage, edges, intake, begun))  # nothing is refused after this
        up.callback(loop.stop)
        up.callback(lambda: loop.call(edges.close))
        yield run


def _feed(
    application: Application,
    pickled: bytes,
    options: ServeOptions,
    own: SparkOptions,
    storage: Storage,
    topics: Mapping[str, Topic],
    ending: Ending,
    watch: Watch | None,
) -> LogFeed:
    """Return the input log as Spark asks for it."""
    checkpoint = storage.checkpoint
    case = CaseSpec(
        pickled,
        partitions=checkpoint.partitions,
        isolated=options.isolation == "isolated",
        stop_on_error=options.on_error == "stop",
        measured=options.metrics is not None,
        log_level=logging.getLogger().getEffectiveLevel(),
    )
    return LogFeed(
        storage.log,
        case,
        tasks=checkpoint.partitions,
        batch_bytes=own.batch_bytes,
        planned=checkpoint.planned,
        failed=ending.fail,
        resume=Resume() if storage.resume is None else storage.resume.last,
        timed=application.time_decides,
        skip=own.skip_record,
        choose=(lambda _: None) if watch is None else watch.choose,
        topics=topics,
    )


def _intake(
    application: Application,
    own: SparkOptions,
    storage: Storage,
    topics: Mapping[str, Topic],
    feed: LogFeed,
    loop: LoopThread,
    ending: Ending,
    watch: Watch | None,
    clock: Callable[[], int],
) -> Intake:
    """Return what appends to the log; arrival times are 0 there where nobody will read them."""
    arrival = clock if application.time_decides or own.record or own.checkpoint else lambda: 0
    to_come = sources_to_come(storage.logged, application)
    names = {name: topic.name for name, topic in topics.items()}
    whole = own.record is not None
    return Intake(application, feed, loop, ending, arrival, to_come, watch, names, whole=whole)


def _sinks(
    application: Application, options: ServeOptions, own: SparkOptions, storage: Storage
) -> KafkaSinks:
    """Return the sinks that are topics; it waits for brokers."""
    with options.interruptible():
        return KafkaSinks(
            application,
            storage.checkpoint,
            storage.log.next_sequence,
            kept=own.checkpoint is not None,
            accept_repeats=own.accept_repeats,
        )


def _abandon(run: LiveRun) -> None:
    run.delivery.abandoned = True
    run.query.end()


def _begin(storage: Storage, edges: Edges, intake: Intake, begun: Sequence[Assigned | End]) -> None:
    if storage.log.next_sequence == storage.checkpoint.position:  # earlier runs left nothing
        edges.complete()
    intake.add(begun)


def _streams(storage: Storage) -> Mapping[SinkId, Stream]:
    """Return the streams of sinks whose peers remember."""
    if storage.resume is None:
        return {}
    return storage.resume.last.streams_at(storage.checkpoint.position)


def _note_of(
    storage: Storage, feed: LogFeed, edges: Edges, loop: LoopThread
) -> Callable[[int, int | None], None]:
    """Return what writes, before Spark commits a micro-batch, what a restart must know."""
    earlier, ends = storage.log.next_sequence, edges.stream_ends()

    def note(sequence: int, due: int | None) -> None:
        nonlocal ends
        if storage.resume is not None:
            before = ends
            if ends:
                ends = loop.call(edges.stream_ends)
            streams = loop.call(edges.streams, ends) if ends else {}
            storage.resume.note(Resume(sequence, due, feed.sources, streams, before))
        storage.checkpoint.publish()
        if ends and sequence >= earlier:  # what earlier runs may have sent is made again
            loop.call(edges.complete)

    return note
