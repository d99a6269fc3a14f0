"""The records of a case, as they stand in an input log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wallaroo.kafka_records import Header, KafkaRecord
from wallaroo.records import Assigned, Consumed, End, Frame, Record, Tick, Unused, Value
from wallaroo_conformance.cases.case import SOURCES, ConformanceCase, Input, SourceSpec
from wallaroo_conformance.cases.operators import value_of
from wallaroo_conformance.cases.operators.topics import TEXT_HEADER

HOLE = 3
"""Offsets of a hole, which hold nothing."""
_PARTS = 3
_AT_ONCE = 2  # topics of so many partitions end at once


def input_log_of(case: ConformanceCase) -> list[Record]:
    """Return a case's records: what a source that has ended gives is left out."""
    return [record for _, record in with_entries(case)]


def with_entries(case: ConformanceCase) -> Iterator[tuple[Input | None, Record]]:
    """Yield a case's records, each with the entry that it is made of, if there is one."""
    sources = {source.id: _Source(source) for source in case.sources}
    latest = case.inputs[0].at if case.inputs else 0
    yield from [(None, one) for source in sources.values() for one in source.begin(latest)]
    for entry in case.inputs:
        latest = max(latest, entry.at)
        if entry.what == "tick":
            yield entry, Tick(entry.at)
        else:
            yield from [(entry, one) for one in sources[entry.source].give(entry)]
    if case.ended:
        yield from [(None, one) for source in sources.values() for one in source.end(latest)]


def topic_of(source: int) -> str:
    """Return the name of a source's topic."""
    return f"IN-{source}"


class _Source:
    """A source, as far as its records have been given.

    Args:
        spec: the source.
    """

    def __init__(self, spec: SourceSpec) -> None:
        self._spec = spec
        self._name = SOURCES[spec.id]
        self._ended = False
        self._next = dict.fromkeys(range(spec.topic), 0)  # offset of each partition that goes on
        self._over: set[int] = set()  # partitions that have ended

    def begin(self, at: int) -> Iterator[Record]:
        """Yield what says which partitions of a topic are read (kafka-1)."""
        if self._next:
            yield Assigned(self._name, tuple([(number, 0, None) for number in self._next]), at)

    def give(self, entry: Input) -> Iterator[Record]:
        """Yield an entry's records, none if the source has ended."""
        if self._ended or entry.partition in self._over:
            return
        if self._spec.topic:
            yield from self._consumed(entry)
        elif entry.what == "frame":
            yield self._received(entry)
        else:
            self._ended = True
            error_type, text = _FAILURES.get(entry.what, (None, ""))
            yield End(self._name, entry.at, error_type, text, ends_run=entry.what == "exited")

    def end(self, at: int) -> Iterator[Record]:
        """Yield the end of all that goes on: of partitions one by one, or with their source.

        A bounded read of a topic writes the one, a session of `wallaroo.testing` the other.
        """
        if not self._ended:
            at_once = self._spec.topic == _AT_ONCE
            numbers = () if at_once else sorted(self._next)
            yield from [End(self._name, at, partition=number) for number in numbers]
            yield End(self._name, at)

    def _received(self, entry: Input) -> Record:
        if self._spec.generator:
            return Value(self._name, value_of(self._spec.decoder, entry.payload), entry.at)
        return Frame(self._name, entry.payload, entry.at)

    def _consumed(self, entry: Input) -> Iterator[Record]:
        """Yield what stands in a partition; one that is new is added (kafka-6)."""
        partition, name, at = entry.partition, self._name, entry.at
        if partition not in self._next:
            self._next[partition] = 0
            yield Assigned(name, ((partition, 0, None),), at)
        if entry.what == "hole":
            self._next[partition] += HOLE
            yield Unused(name, HOLE, at)
        elif entry.what in ("frame", "tombstone"):
            record = topic_record(entry, topic_of(self._spec.id), partition, self._next[partition])
            self._next[partition] += 1
            yield Consumed(name, record, at)
        else:
            del self._next[partition]
            self._over.add(partition)
            yield End(name, at, partition=partition)
            if not self._next:
                self._ended = True
                yield End(name, at)


_FAILURES = {
    "failed": ("ValueError", "the generator failed"),
    "exited": ("SystemExit", "the generator exited"),
}


def topic_record(entry: Input, topic: str, partition: int, offset: int = 0) -> KafkaRecord:
    """Return a record of a topic: key, timestamp and header are the parts of its payload."""
    parts: Sequence[bytes] = entry.payload.split(b" ")
    value = entry.payload if entry.what == "frame" else None
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    timestamp = None
    if len(parts) == _PARTS:
        key, headers = parts[0], ((TEXT_HEADER, parts[2]),)
        timestamp = int(parts[1]) if parts[1].isdigit() else None
    return KafkaRecord(value, key, headers, timestamp, topic, partition, offset)
