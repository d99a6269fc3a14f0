"""Where the outputs of a Kafka sink go: what brokers and checkpoint say when a run begins."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from wallaroo.config import format_address
from wallaroo.kafka import KafkaSinkConfig, KafkaSourceConfig
from wallaroo.text import escaped
from wallaroo.topology import Application, SinkId
from wallaroo.transport.kafka.cluster import BrokerError, BrokersAwayError, Cluster

_PAUSE = 1.0  # seconds between attempts to reach brokers

T = TypeVar("T")

_log = logging.getLogger("wallaroo.kafka")


@dataclass(frozen=True)
class Destination:
    """Where outputs go. It can be sent to another process.

    Args:
        sink: the sink's id.
        brokers: see `Cluster`.
        options: further options of the client; never shown.
        topic: the topic's name.
        partitions: how many partitions outputs go to that name none, as of the first start
            (kafka-13).
        id: of application, checkpoint and sink, for transactional ids and positions; `None`:
            outputs are delivered at least once (kafka-15).
    """

    sink: SinkId
    brokers: str
    options: Mapping[str, object] = field(repr=False)
    topic: str
    partitions: int
    id: str | None

    @property
    def name(self) -> str:
        """The sink, for messages."""
        return f"sink {escaped(self.sink[0])}/{self.sink[1]}"

    def cluster(self) -> Cluster:
        """Return the brokers."""
        return Cluster(self.brokers, self.options, self.name)


def destination_of(
    application: Application, sink: SinkId, checkpoint: str | None, partitions: int | None
) -> Destination:
    """Return where the outputs of a Kafka sink go; it asks the brokers.

    Args:
        application: whose.
        sink: the sink's id.
        checkpoint: what tells the checkpoint from every other; `None`: the run has none.
        partitions: of the topic, if the checkpoint says it.

    Raises:
        BrokerError: the brokers do not answer or have no such topic, or exactly-once has no
            checkpoint.
        WallarooParameterError: a file of options cannot be read.
    """
    config = application.sinks[sink].config
    assert isinstance(config, KafkaSinkConfig)
    id_ = None
    if checkpoint is not None and config.delivery != "at-least-once":
        id_ = f"wallaroo-{application.name}-{checkpoint}-{sink[0]}-{sink[1]}"
    made = Destination(sink, brokers_of(config), config.kafka.read(), config.topic, 0, id_)
    there = len(made.cluster().topic(config.topic).partitions)
    if id_ is None and config.delivery == "exactly-once":
        raise BrokerError(
            f"{made.name}: exactly-once needs a checkpoint; run with --checkpoint DIR (kafka-15)"
        )
    return replace(made, partitions=config.partitions or partitions or there)


def brokers_of(config: KafkaSourceConfig | KafkaSinkConfig) -> str:
    """Return the brokers as a client takes them."""
    return ",".join([format_address(*broker) for broker in config.brokers])


def persisting(ask: Callable[[], T]) -> T:
    """Return the answer of brokers, waiting for them (kafka-12)."""
    said = False
    while True:
        try:
            return ask()
        except BrokersAwayError as error:
            if not said:
                _log.warning("%s; trying again", error)
                said = True
            time.sleep(_PAUSE)
