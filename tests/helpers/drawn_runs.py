"""Runs of an input log, drawn: of every kind, with several records, and with few arrival times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from hypothesis import strategies as st

from wallaroo.kafka_records import KafkaRecord
from wallaroo.records import Assigned, Consumed, End, Frame, Record, Tick, Unused, Value
from wallaroo.transport.log_format import (
    Group,
    LoggedRun,
    Offsets,
    RecordKind,
    in_groups,
    offsets_group,
)
from wallaroo.transport.logged import encoded

UNREADABLE = encoded(lambda: 0)
"""A generator's value that cannot be pickled: a log has only why."""

some_bytes = st.none() | st.binary(max_size=3)
times = st.integers(1, 2)
partitions = st.integers(0, 2)
offsets = st.integers(0, 9)
blobs = st.just(UNREADABLE) | st.integers(0, 99).map(encoded)


Groups = st.SearchStrategy[list[Group]]


def _some(make: Callable[..., Record], contents: st.SearchStrategy[Any]) -> Groups:
    """Return groups of records that are made of contents and of one arrival time."""
    several = st.lists(contents, min_size=1, max_size=4)
    return st.builds(lambda at, some: in_groups([make(one, at) for one in some]), times, several)


def records_of(partition: int) -> st.SearchStrategy[KafkaRecord]:
    """Return records of a partition."""
    return st.builds(
        KafkaRecord, some_bytes, some_bytes, partition=st.just(partition), offset=offsets
    )


def _kept_whole(record: KafkaRecord | None, at: int) -> Record:
    return Unused("topic", 1, at) if record is None else Consumed("topic", record, at)


assignments = st.tuples(
    st.sampled_from(["id", "other"]),
    st.lists(
        st.tuples(partitions, offsets, st.none() | offsets),
        max_size=3,
        unique_by=lambda one: one[0],
    ).map(tuple),
)

frames = _some(lambda data, at: Frame("frames", data, at), st.binary(max_size=3))
values = _some(lambda blob, at: Value("made", blob, at), blobs)
kept_whole = partitions.flatmap(lambda number: _some(_kept_whole, st.none() | records_of(number)))
named = st.builds(
    lambda number, first, more, at: [offsets_group("topic", number, first, first + more, at)],
    partitions,
    offsets,
    st.integers(0, 5),
    times,
)
ticks = _some(lambda _, at: Tick(at), st.none())
ends = _some(lambda name, at: End(name, at), st.sampled_from(["frames", "made", "topic"]))
ends_of_partitions = _some(lambda number, at: End("topic", at, partition=number), partitions)
assigned = _some(lambda one, at: Assigned("topic", one[1], at, one[0]), assignments)
every_kind = frames | values | kept_whole | named | ticks | ends | ends_of_partitions | assigned


def in_a_log(groups: Groups) -> st.SearchStrategy[list[LoggedRun]]:
    """Return runs as a log gives them, from record 0 on."""
    return st.lists(groups, min_size=2, max_size=6).map(_numbered)


def _numbered(some: list[list[Group]]) -> list[LoggedRun]:
    runs: list[LoggedRun] = []
    following = 0
    for kind, source, at, payloads in chain(*some):
        runs.append(LoggedRun(source, following, payloads, kind, at))
        following += len(payloads)
    return runs


class One(NamedTuple):
    """A record of a log; of an offset, `content` is its partition and itself."""

    number: int
    source: str
    kind: RecordKind
    at: int
    content: Any


def one_by_one(runs: Iterable[LoggedRun]) -> Iterator[One]:
    """Yield what runs hold, record by record."""
    for run in runs:
        contents: Iterable[Any] = run.payloads
        if isinstance(run.payloads, Offsets):
            contents = [(run.payloads.partition, offset) for offset in run.payloads.numbers]
        for number, content in enumerate(contents, run.first):
            yield One(number, run.source, run.kind, run.at, content)


any_numbers = st.lists(st.integers(0, 9), min_size=2, max_size=8)
"""Numbers of records, in any order, some more than once."""
