"""When something came last from each partition of a topic, as the driver knows it (kafka-9).

Event times are known to workers alone. So what came longer ago counts as older here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from wallaroo.records import Assigned, Consumed, End
from wallaroo.times import SourceMoment
from wallaroo.transport.input_log import LoggedRun, RecordKind
from wallaroo.transport.logged import TopicPosition

_NOTHING_CAME = SourceMoment(None, None, ended=False)


class Arrivals:
    """The times of a run (`wallaroo.metrics.silence.Moment`).

    The greatest event time of a partition is here the arrival time of its last record.

    Args:
        positions: where its Kafka sources begin, by name.
    """

    def __init__(self, positions: Mapping[str, TopicPosition]) -> None:
        self.now = 0
        self.first: int | None = None
        self.sources: defaultdict[str, SourceMoment] = defaultdict(lambda: _NOTHING_CAME)
        for name, position in positions.items():
            self._set(name, dict.fromkeys(position.offsets, _NOTHING_CAME))

    def note(self, runs: Iterable[LoggedRun]) -> None:
        """Note what comes next in the log."""
        times: dict[str, dict[int, SourceMoment]] = {}
        for run in runs:
            self.now = run.at
            if self.first is None:
                self.first = run.at
            if run.source not in times:
                times[run.source] = dict(self.sources[run.source].partitions)
            own, came = times[run.source], SourceMoment(run.at, run.at, ended=False)
            if run.kind is RecordKind.OFFSETS:
                own[run.place[0]] = came
            elif run.kind in (RecordKind.ASSIGNED, RecordKind.CONSUMED, RecordKind.END):
                for record in run.records():
                    match record:
                        case Assigned():
                            for partition, _, _ in record.partitions:
                                own.setdefault(partition, _NOTHING_CAME)
                        case Consumed():
                            own[record.record.partition] = came
                        case End(partition=int(partition)):
                            own[partition] = own.get(partition, _NOTHING_CAME)._replace(ended=True)
        for source, own in times.items():
            self._set(source, own)

    def _set(self, source: str, partitions: Mapping[int, SourceMoment]) -> None:
        """Replace the times of a source's partitions, which other threads may read meanwhile."""
        self.sources[source] = _NOTHING_CAME._replace(partitions=partitions)
