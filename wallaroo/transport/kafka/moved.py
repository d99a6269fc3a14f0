"""Outputs to Kafka go on with a checkpoint that was made of another one, for another engine.

Each engine commits positions of its own kind. So the new checkpoint has another number and commits
under that, and a mark at the brokers shuts the old one out: whoever takes its transactional id over
sees the mark, and is refused (scale-2).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from wallaroo.kafka import KafkaSinkConfig
from wallaroo.topology import Application, SinkId
from wallaroo.transport.kafka.destination import Destination, destination_of, persisting
from wallaroo.transport.kafka.producing import MOVED, Committed, OutputProducer, Place


def exactly_once(application: Application | None) -> list[SinkId]:
    """Return the sinks of Kafka whose outputs a checkpoint delivers exactly once."""
    sinks = {} if application is None else application.sinks
    return [
        id_
        for id_, sink in sinks.items()
        if isinstance(sink.config, KafkaSinkConfig) and sink.config.delivery != "at-least-once"
    ]


def shut_out_old(
    application: Application, checkpoint: str, topics: Mapping[SinkId, int], client: str
) -> None:
    """Refuse every later run of a checkpoint; it blocks until the brokers have the mark.

    Args:
        application: whose.
        checkpoint: the checkpoint's number.
        topics: of each sink, the partitions of its topic at the first start.
        client: what an engine adds to the transactional id of the first partition's client.

    Raises:
        WallarooError: the brokers refuse, or another one was made of the checkpoint before.
    """
    for sink in exactly_once(application):
        ask = partial(destination_of, application, sink, checkpoint, topics.get(sink))
        persisting(partial(_mark, persisting(ask), client))


def _mark(there: Destination, client: str) -> None:
    assert there.id is not None
    producer = OutputProducer(there, client)
    position = producer.take_over(Place(there.id, 0)) or Committed(0)
    producer.deliver_once([], position._replace(note=MOVED))
