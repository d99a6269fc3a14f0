"""The Kafka sources of a live run: planned here, in the driver, and read by tasks."""

from __future__ import annotations

from wallaroo.engine import ServeOptions
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.metrics.registry import Registry
from wallaroo.topology import Application
from wallaroo.transport.kafka.destination import brokers_of
from wallaroo.transport.kafka.sources import KafkaSources
from wallaroo.transport.logged import first_offsets
from wallaroo.transport.threads import LoopThread
from wallaroo_spark.live.intake import Ending, Intake
from wallaroo_spark.live.log_feed import LogFeed
from wallaroo_spark.live.options import SparkOptions
from wallaroo_spark.live.resume import positions_in
from wallaroo_spark.live.storage import Storage
from wallaroo_spark.wire.job import Fetched, Topic


def topics_of(application: Application, metrics: Registry | None) -> dict[str, Topic]:
    """Return where tasks fetch the records of each Kafka source.

    Args:
        application: whose sources they are.
        metrics: of the run; if somebody takes its traces, they go on to outputs.

    Raises:
        WallarooParameterError: a file of options cannot be read.
    """
    return {
        name: Topic(
            config.topic,
            brokers_of(config),
            tuple(config.kafka.read().items()),
            config.committed_only,
            config.whole,
            metrics is not None and metrics.on_followed is not None,
        )
        for name, source in application.sources.items()
        if isinstance(config := source.config, KafkaSourceConfig)
    }


def begun_sources(
    application: Application,
    storage: Storage,
    options: ServeOptions,
    own: SparkOptions,
    feed: LogFeed,
    intake: Intake,
    loop: LoopThread,
    ending: Ending,
) -> KafkaSources:
    """Return the sources, compared with what the brokers hold; it waits for brokers.

    Args:
        application: whose.
        storage: says where they stood.
        options: of every engine.
        own: this engine's. A recording holds records whole, so then they are read here (kafka-2).
        feed: says how many offsets may be planned, and looks records up.
        intake: gets their runs.
        loop: its thread.
        ending: whether the run has failed.

    Raises:
        BrokerError: something does not fit (kafka-5).
    """
    begun = positions_in(storage.logged)
    sources = KafkaSources(
        application,
        storage.logged,
        intake,
        loop.post,
        accept_gaps=own.accept_gaps,
        measured=options.metrics is not None,
        going_on=lambda: ending.problem is None,
        room=None if own.record is not None else feed.room_for_offsets,
        again=first_offsets(storage.log, storage.checkpoint.position) if begun else {},
    )
    with options.interruptible():
        sources.begin()
    feed.look_up = sources.look_up
    feed.there = {name: source.there for name, source in sources.sources.items()}
    return sources


def note_fetched(sources: KafkaSources, feed: LogFeed, source: str, some: Fetched) -> None:
    """Count what tasks have fetched of a source in a micro-batch."""
    feed.fetched(some.records, some.size)
    sources.sources[source].add_read(some.records, some.size)
