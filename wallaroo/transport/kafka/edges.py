"""The Kafka sources and sinks of a run: what they find at the brokers, and what a checkpoint says.

`KafkaEdges` is made and prepared before a run listens anywhere: so what does not fit is refused
before anything takes effect (kafka-5, kafka-16).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from wallaroo.kafka import KafkaSinkConfig
from wallaroo.metrics.registry import Registry
from wallaroo.overriding import override
from wallaroo.topology import Application, SinkId
from wallaroo.transport.interfaces import Receiver
from wallaroo.transport.kafka.destination import destination_of, persisting
from wallaroo.transport.kafka.position import Position
from wallaroo.transport.kafka.sink import KafkaSink, Transactions
from wallaroo.transport.kafka.sources import KafkaSources
from wallaroo.transport.threads import Post


@dataclass(frozen=True)
class Kept:
    """What a checkpoint says of Kafka.

    Args:
        id: what tells the checkpoint from every other; `None`: the run has none.
        positions: of each source that has begun.
        position: number of the record behind those whose effects the stored state has.
        delivered: number of outputs of each sink before the position.
        end: number of the log's next record.
        partitions: of each sink's topic, at its first start (kafka-13).
    """

    id: str | None = None
    positions: Mapping[str, Position] = field(default_factory=dict)
    delivered: Mapping[SinkId, int] = field(default_factory=dict)
    partitions: Mapping[SinkId, int] = field(default_factory=dict)
    position: int = 0
    end: int = 0


class KafkaEdges(KafkaSources):
    """The Kafka sources and sinks of an application.

    Args:
        application: whose.
        kept: what the checkpoint says.
        receiver: the engine's part.
        post: calls a function in the loop's thread.
        interval: seconds that a transaction stays open.
        accept_gaps: go on where brokers have deleted what was not read yet (kafka-5).
        accept_repeats: go on where brokers have forgotten a sink's position (kafka-16).
        measured: let the sources find out how far behind they are.
        going_on: whether to wait further for what a log names; it is asked often.

    Attributes:
        sinks: by id, once `prepare` has made them.
        partitions: of each sink's topic.

    Raises:
        ExtraMissingError: confluent-kafka is not installed.
        WallarooParameterError: a file of options cannot be read.
    """

    def __init__(
        self,
        application: Application,
        kept: Kept,
        receiver: Receiver,
        post: Post,
        *,
        interval: float,
        accept_gaps: bool,
        accept_repeats: bool,
        measured: bool,
        going_on: Callable[[], bool],
    ) -> None:
        super().__init__(
            application,
            kept.positions,
            receiver,
            post,
            accept_gaps=accept_gaps,
            measured=measured,
            going_on=going_on,
        )
        self.sinks: dict[SinkId, KafkaSink] = {}
        self.partitions: dict[SinkId, int] = {}
        self._application = application
        self._kept = kept
        self._post = post
        self._interval = interval
        self._accept_repeats = accept_repeats

    def prepare(self, on_room: Callable[[], None], failed: Callable[[str], None]) -> None:
        """Compare what the brokers hold with the checkpoint, and shut out earlier runs; it blocks.

        Args:
            on_room: called when a sink was full and has room again.
            failed: called with an error's text if a sink cannot deliver any more.

        Raises:
            BrokerError: something does not fit.
        """
        self.begin()
        for id_, sink in self._application.sinks.items():
            if isinstance(sink.config, KafkaSinkConfig):
                self.sinks[id_] = persisting(partial(self._sink, id_, on_room, failed))

    @override
    def copy_figures(self, metrics: Registry) -> None:
        super().copy_figures(metrics)
        for id_, sink in self.sinks.items():
            metrics.sinks[id_].committed = sink.committed

    def _sink(
        self, id_: SinkId, on_room: Callable[[], None], failed: Callable[[str], None]
    ) -> KafkaSink:
        kept, transactions = self._kept, None
        there = destination_of(self._application, id_, kept.id, kept.partitions.get(id_))
        self.partitions[id_] = there.partitions
        if there.id is not None:
            begun = id_ in kept.partitions and kept.end > kept.position
            transactions = Transactions(
                there.id,
                self._interval,
                begun or kept.delivered.get(id_, 0) > 0,
                kept.end,
                self._accept_repeats,
            )
        sink = KafkaSink(
            id_,
            there.cluster(),
            there.topic,
            there.partitions,
            transactions,
            post=self._post,
            on_room=on_room,
            failed=failed,
        )
        sink.prepare()
        return sink
