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
from wallaroo.topology import SinkId
from wallaroo.transport.kafka.destination import destination_of, persisting
from wallaroo.transport.kafka.sink import KafkaSink
from wallaroo.transport.kafka.sources import KafkaSources


@dataclass(frozen=True)
class KeptOutputs:
    """What a checkpoint says of the outputs to Kafka.

    Args:
        id: what tells the checkpoint from every other; `None`: the run has none.
        position: number of the record behind those whose effects the stored state has.
        delivered: number of outputs of each sink before the position.
        end: number of the log's next record.
        partitions: of each sink's topic, at its first start (kafka-13).
    """

    id: str | None = None
    delivered: Mapping[SinkId, int] = field(default_factory=dict)
    partitions: Mapping[SinkId, int] = field(default_factory=dict)
    position: int = 0
    end: int = 0


class KafkaEdges(KafkaSources):
    """The Kafka sources and sinks of an application.

    Attributes:
        sinks: by id, once `prepare` has made them.
        partitions: of each sink's topic, likewise.
    """

    sinks: dict[SinkId, KafkaSink]
    partitions: dict[SinkId, int]

    def prepare(
        self,
        kept: KeptOutputs,
        *,
        interval: float,
        accept_repeats: bool,
        on_room: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        """Compare what the brokers hold with the checkpoint, and shut out earlier runs; it blocks.

        Args:
            kept: what the checkpoint says.
            interval: seconds that a transaction stays open.
            accept_repeats: go on where brokers have forgotten a sink's position (kafka-16).
            on_room: called when a sink was full and has room again.
            failed: called with an error's text if a sink cannot deliver any more.

        Raises:
            BrokerError: something does not fit.
        """
        self.begin()

        def prepared(id_: SinkId) -> KafkaSink:
            there = destination_of(self.application, id_, kept.id, kept.partitions.get(id_))
            sink = KafkaSink(
                there, interval=interval, post=self.post, on_room=on_room, failed=failed
            )
            begun = id_ in kept.partitions and kept.end > kept.position
            begun = begun or kept.delivered.get(id_, 0) > 0
            sink.prepare(kept.end, needs_position=begun and not accept_repeats)
            return sink

        self.sinks = {
            id_: persisting(partial(prepared, id_))
            for id_, sink in self.application.sinks.items()
            if isinstance(sink.config, KafkaSinkConfig)
        }
        self.partitions = {id_: sink.there.partitions for id_, sink in self.sinks.items()}

    @override
    def copy_figures(self, metrics: Registry) -> None:
        super().copy_figures(metrics)
        for id_, sink in self.sinks.items():
            metrics.sinks[id_].committed = sink.committed
