"""Runs of an input log, drawn: of every kind, with several records, and with few arrival times."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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


def _alike(
    make: Callable[..., Record], contents: st.SearchStrategy[Any]
) -> st.SearchStrategy[Group]:
    """Return groups of records that are made of contents and of one arrival time."""
    several = st.lists(contents, min_size=1, max_size=4)
    return st.builds(lambda at, some: in_groups([make(one, at) for one in some])[0], times, several)


def records_of(partition: int) -> st.SearchStrategy[KafkaRecord]:
    """Return records of a partition."""
    return st.builds(
        KafkaRecord, some_bytes, some_bytes, partition=st.just(partition), offset=offsets
    )


def _consumed(partition: int) -> st.SearchStrategy[Group]:
    return _alike(lambda record, at: Consumed("topic", record, at), records_of(partition))


_assigned = st.tuples(
    st.sampled_from(["id", "other"]),
    st.lists(
        st.tuples(partitions, offsets, st.none() | offsets),
        max_size=3,
        unique_by=lambda one: one[0],
    ).map(tuple),
)

of_edges = (
    _alike(lambda data, at: Frame("frames", data, at), st.binary(max_size=3))
    | _alike(lambda _, at: Tick(at), st.none())
    | _alike(lambda name, at: End(name, at), st.sampled_from(["frames", "made", "topic"]))
)
of_generators = _alike(lambda blob, at: Value("made", blob, at), blobs)
of_topics = (
    partitions.flatmap(_consumed)
    | _alike(lambda _, at: Unused("topic", 1, at), st.none())
    | _alike(lambda number, at: End("topic", at, partition=number), partitions)
    | _alike(lambda one, at: Assigned("topic", one[1], at, one[0]), _assigned)
    | st.builds(
        lambda number, first, length, at: offsets_group("topic", number, first, first + length, at),
        partitions,
        offsets,
        st.integers(0, 5),
        times,
    )
)


def numbered(groups: Iterable[Group]) -> list[LoggedRun]:
    """Return groups as a log gives them, from record 0 on."""
    runs: list[LoggedRun] = []
    following = 0
    for kind, source, at, payloads in groups:
        runs.append(LoggedRun(source, following, payloads, kind, at))
        following += len(payloads)
    return runs


runs = st.lists(of_edges | of_generators | of_topics, max_size=8).map(numbered)
"""Runs of a log, from record 0 on."""


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


any_numbers = st.lists(st.integers(0, 20), max_size=6)
"""Numbers of records, in any order, some more than once."""
