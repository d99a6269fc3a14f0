"""The input log of a test: what `wallaroo.testing` is given, as records."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias, get_args

from wallaroo.config import GenSourceConfig
from wallaroo.engine import Isolation, OnError
from wallaroo.errors import WallarooParameterError
from wallaroo.generating import generate
from wallaroo.kafka import KafkaSourceConfig
from wallaroo.kafka_records import KafkaRecord
from wallaroo.records import (
    Assigned,
    Consumed,
    End,
    Frame,
    Record,
    Unused,
    Value,
    with_times_that_never_decrease,
)
from wallaroo.topology import Application

Payloads: TypeAlias = Mapping[str, Sequence[Any]] | Iterable[Record | tuple[str, Any]]
"""Payloads by source; or records and pairs (source, payload) in the order received."""

_IN_TURN: Final = 1000
"""Offsets of a partition that a bounded read takes before the next has its turn (kafka-10)."""


class Topics:
    """The topics of an application's Kafka sources, as far as a test has filled them.

    It numbers the records of each partition, and says which partitions there are.
    """

    def __init__(self, application: Application) -> None:
        self._sources = {
            name: node.config
            for name, node in application.sources.items()
            if isinstance(node.config, KafkaSourceConfig)
        }
        self._positions: dict[
            str, dict[int, int]
        ] = {}  # the next offset of each partition that is read

    def assigned(self, record: Assigned) -> Assigned:
        """Return the record that says which partitions are read; it is in the log."""
        positions = self._positions.setdefault(record.source, {})
        for partition, first, _ in record.partitions:
            positions.setdefault(partition, first)
        return record

    def read(self, records: Sequence[Consumed]) -> list[Record]:
        """Return records of one source as they stand in the log (kafka-1).

        The first ones come behind what says which partitions are read: those that the source
        lists, or those that the records are in. A partition that comes later is an added one
        (kafka-6). In front of a record stand the numbers of offsets that hold nothing.

        Raises:
            WallarooParameterError: a record is in a partition that is not read, or its offset is
                below that of another before it.
        """
        made: list[Record] = []
        for number, consumed in enumerate(records):
            positions = self._positions.get(consumed.source)
            if positions is None or consumed.record.partition not in positions:
                later = records[number:] if positions is None else [consumed]
                made.append(self.assign(consumed.source, later, consumed.at))
            made += self._placed(consumed)
        return made

    def read_to_the_end(self, assigned: Assigned, records: Sequence[Consumed]) -> list[Record]:
        """Return all records of one source as a bounded read has them in the log (kafka-10).

        Each partition ends behind its last record, and the source behind all.

        Args:
            assigned: what `assign` gave for these records.
            records: the records.

        Raises:
            WallarooParameterError: as `read`.
        """
        source, at = assigned.source, assigned.at
        waiting = {partition: deque[Consumed]() for partition, _, _ in assigned.partitions}
        for consumed in records:
            waiting[consumed.record.partition].append(replace(consumed, at=at))
        made: list[Record] = []
        ends = {partition: end or 0 for partition, _, end in assigned.partitions}
        for partition, first, end in assigned.partitions:
            if first == end:
                made.append(End(source, at, partition=partition))
        positions = self._positions[source]
        while in_turn := [
            partition for partition in ends if positions[partition] < ends[partition]
        ]:
            for partition in in_turn:
                stop = min(positions[partition] + _IN_TURN, ends[partition])
                while waiting[partition] and self._offset(waiting[partition][0]) < stop:
                    made += self._placed(waiting[partition].popleft())
                if positions[partition] < stop:
                    made.append(Unused(source, stop - positions[partition], at))
                    positions[partition] = stop
                if stop == ends[partition]:
                    made.append(End(source, at, partition=partition))
        return [*made, End(source, at)]

    def assign(
        self, source: str, records: Sequence[Consumed], at: int, *, bounded: bool = False
    ) -> Assigned:
        """Return the record that says which partitions a source reads.

        Those that it lists, or those that `records` are in; if `bounded` up to the last of them.
        """
        listed = self._sources[source].partitions
        firsts, ends = dict.fromkeys(listed or (), 0), dict.fromkeys(listed or (), 0)
        for consumed in records:
            partition, offset = consumed.record.partition, consumed.record.offset
            if listed is not None and partition not in listed:
                raise WallarooParameterError(
                    f"source {source!r} reads the partitions {', '.join(map(str, listed))}, and a "
                    f"record is in partition {partition}"
                )
            if offset < 0:
                offset = ends.get(partition, 0)
            if ends.get(partition, 0) == 0:
                firsts[partition] = offset
            ends[partition] = offset + 1
        partitions = [
            (number, firsts[number], ends[number] if bounded else None) for number in sorted(firsts)
        ]
        return self.assigned(Assigned(source, tuple(partitions), at))

    def _offset(self, consumed: Consumed) -> int:
        offset = consumed.record.offset
        return self._positions[consumed.source][consumed.record.partition] if offset < 0 else offset

    def _placed(self, consumed: Consumed) -> Iterator[Record]:
        """Yield a record with topic and offset, behind what is unused before it."""
        partition, offset = consumed.record.partition, self._offset(consumed)
        positions = self._positions[consumed.source]
        if offset < positions[partition]:
            raise WallarooParameterError(
                f"source {consumed.source!r}: a record of partition {partition} has the offset "
                f"{offset}, and one before it has {positions[partition] - 1}"
            )
        if offset > positions[partition]:
            yield Unused(consumed.source, offset - positions[partition], consumed.at)
        positions[partition] = offset + 1
        topic = consumed.record.topic or self._sources[consumed.source].topic
        yield replace(consumed, record=replace(consumed.record, topic=topic, offset=offset))


def input_log_of(application: Application, payloads: Payloads, *, end: bool) -> list[Record]:
    """Return the records that `wallaroo.testing.run` is given; see there.

    Raises:
        WallarooParameterError: the application has no such source, or a payload is not bytes.
    """
    if isinstance(payloads, (bytes, str)):
        raise WallarooParameterError(
            f"expected payloads by source, not one {type(payloads).__name__}. "
            "Write: {SOURCE: [PAYLOAD, …]}"
        )
    if isinstance(payloads, Mapping):
        for source, items in payloads.items():
            if isinstance(items, (bytes, str)):
                raise WallarooParameterError(
                    f"source {source!r}: expected a list of payloads, "
                    f"not one {type(items).__name__}"
                )
        given = [
            record_of(application, source, item) for source in payloads for item in payloads[source]
        ]
        given.sort(key=lambda record: record.at)  # stable: those of one time stay as they are
    else:
        given = [
            item if isinstance(item, Record) else record_of(application, *_pair(item))
            for item in payloads
        ]
    bounded = isinstance(payloads, Mapping)
    records = list(_with_topics(application, with_times_that_never_decrease(given), bounded))
    latest = records[-1].at if records else 0
    ended = {
        record.source for record in records if isinstance(record, End) and record.partition is None
    }
    filled = {record.source for record in records if isinstance(record, Value)} | ended
    for name, source in application.sources.items():
        if isinstance(source.config, GenSourceConfig) and name not in filled:
            for record in generate(name, source.config.generator, lambda: latest):
                # Unless told so, a source does not end; but one that has failed has (graph-4).
                if end or isinstance(record, Value) or record.error_type is not None:
                    records.append(record)
            ended.add(name)
    if end and application.time_decides:
        records += [End(name, latest) for name in application.sources if name not in ended]
    return records


def _with_topics(
    application: Application, records: Sequence[Record], bounded: bool
) -> Iterator[Record]:
    """Yield the records; those of Kafka as they stand in a log.

    Args:
        application: what is tested.
        records: as given.
        bounded: they are given by source, so a source that reads to the end has its own order.
    """
    topics = Topics(application)
    start = records[0].at if records else 0
    explicit = {record.source for record in records if isinstance(record, Assigned)}
    ended: set[str] = set()
    for name, source in application.sources.items():
        config = source.config
        if name in explicit or not isinstance(config, KafkaSourceConfig):
            continue
        read = [
            consumed
            for consumed in records
            if isinstance(consumed, Consumed) and consumed.source == name
        ]
        to_the_end = bounded and config.until is not None
        if read or to_the_end or config.partitions is not None:
            yield (assigned := topics.assign(name, read, start, bounded=to_the_end))
        if to_the_end:
            yield from topics.read_to_the_end(assigned, read)
            ended.add(name)
    for record in records:
        if isinstance(record, Assigned):
            yield topics.assigned(record)
        elif not isinstance(record, Consumed):
            yield record
        elif record.source not in ended:
            yield from topics.read([record])


def refuse_unknown(isolation: Any, on_error: Any) -> None:
    """Refuse a mode, or a way to go on after a dead letter, that does not exist.

    Raises:
        WallarooParameterError: one of them does not.
    """
    for name, value, allowed in (
        ("isolation", isolation, get_args(Isolation)),
        ("on_error", on_error, get_args(OnError)),
    ):
        if value not in allowed:
            raise WallarooParameterError(
                f"{name} is {' or '.join(map(repr, allowed))}, not {value!r:.60}"
            )


def _pair(item: Any) -> tuple[str, Any]:
    if not isinstance(item, (tuple, list)) or len(item) != 2:
        raise WallarooParameterError(
            f"expected a pair (source, payload), or a record, not {item!r:.60}. "
            "Write: [(SOURCE, PAYLOAD), …] or {SOURCE: [PAYLOAD, …]}"
        )
    source, payload = item
    return source, payload


def record_of(application: Application, source: str, item: Any) -> Record:
    """Return a payload, or a pair (nanoseconds, payload), as a record of `source`.

    For a generator source it is a value, for a Kafka source a `KafkaRecord` or its value, or a pair
    of nanoseconds and that.

    Raises:
        WallarooParameterError: the application has no such source, or it is not a payload.
    """
    if source not in application.sources:
        names = ", ".join(repr(name) for name in application.sources)
        raise WallarooParameterError(
            f"application {application.name!r} has no source {source!r}; it has {names}"
        )
    at, payload = 0, item
    if isinstance(item, tuple) and len(item) == 2:
        at, payload = item
        if type(at) is not int or at < 0:
            raise WallarooParameterError(
                f"source {source!r}: an arrival time is an int of nanoseconds, 0 or more, not "
                f"{at!r:.60}"
            )
    config = application.sources[source].config
    if isinstance(config, GenSourceConfig):
        return Value(source, payload, at)
    if isinstance(config, KafkaSourceConfig):
        record = KafkaRecord(payload) if type(payload) is bytes else payload
        if not isinstance(record, KafkaRecord):
            raise WallarooParameterError(
                f"source {source!r}: a record of Kafka is a wallaroo.KafkaRecord, or its value as "
                f"bytes, not {type(payload).__name__} {payload!r:.60}"
            )
        return Consumed(source, record, at)
    if type(payload) is not bytes:
        raise WallarooParameterError(
            f"source {source!r}: a payload is bytes, not {type(payload).__name__} {payload!r:.60}"
        )
    return Frame(source, payload, at)
