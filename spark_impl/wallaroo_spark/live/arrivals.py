"""When something came last from each partition of a topic, as the driver knows it (kafka-9).

Event times are known to workers alone. So what came longer ago counts as older here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from wallaroo.records import Assigned, Consumed, End
from wallaroo.transport.input_log import Kind, Run
from wallaroo.transport.kafka.position import Position


@dataclass
class Arrival:
    """The time of a partition (`wallaroo.metrics.silence.PartitionTime`)."""

    last_frame: int | None = None
    ended: bool = False

    @property
    def greatest(self) -> int | None:
        """Stands for the greatest event time."""
        return self.last_frame


@dataclass
class SourceArrivals:
    """The times of a source's partitions; the mapping is replaced when one is added."""

    partitions: Mapping[int, Arrival] = field(default_factory=dict)

    def of(self, partition: int) -> Arrival:
        """Return the time of a partition, which may be new."""
        if partition not in self.partitions:
            self.partitions = {**self.partitions, partition: Arrival()}
        return self.partitions[partition]


class Arrivals:
    """The times of a run (`wallaroo.metrics.silence.Moment`).

    Args:
        positions: where its Kafka sources begin, by name.
    """

    def __init__(self, positions: Mapping[str, Position]) -> None:
        self.now = 0
        self.first: int | None = None
        self.sources: defaultdict[str, SourceArrivals] = defaultdict(SourceArrivals)
        for name, position in positions.items():
            self.sources[name].partitions = {number: Arrival() for number in position.offsets}

    def note(self, runs: Iterable[Run]) -> None:
        """Note what comes next in the log."""
        for run in runs:
            self.now = run.at
            if self.first is None:
                self.first = run.at
            source = self.sources[run.source]
            if run.kind is Kind.OFFSETS:
                source.of(run.place[0]).last_frame = run.at
            elif run.kind in (Kind.ASSIGNED, Kind.CONSUMED, Kind.END):
                for record in run.records():
                    match record:
                        case Assigned():
                            for partition, _, _ in record.partitions:
                                source.of(partition)
                        case Consumed():
                            source.of(record.record.partition).last_frame = run.at
                        case End(partition=int(partition)):
                            source.of(partition).ended = True
