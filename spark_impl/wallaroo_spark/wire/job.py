"""What travels between operators.

Spark sees rows of three columns: ``shard``, ``level`` and ``block``. A shard is a key of Spark's
stateful operator; a block is a pickled batch of data. Each row is for one level:

- 0 and up, the level of a stateful operator: a `LevelBlock`; or an empty block, which asks for the
  entities that the shard holds and removes them;
- `FINISHED`: a `Report` for the driver, which operators pass on without reading it;
- `LEAVING`: a `Leaving`, outputs for Kafka, which leave from workers behind the last level.

A block contains the cases that it is about, with their applications: a few KB beside its messages.
So an operator needs to know nothing about the cases, and one running query can process any of them.
"""

from __future__ import annotations

import functools
import logging
import pickle
import struct
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum, StrEnum
from itertools import chain
from typing import Any, NamedTuple, TypeAlias

import pyarrow as pa

from wallaroo.engine import TaskFault
from wallaroo.metrics.figures import Harvest
from wallaroo.metrics.following import Visits
from wallaroo.transport.byte_strings import ByteStrings
from wallaroo.transport.kafka.context import Context
from wallaroo.user_code.output import Line
from wallaroo_spark.wire.lineages import Order
from wallaroo_spark.wire.outbox import End, Finished, Messages, Outputs

Track: TypeAlias = "array[int]"
"""A part's moments, in order: their fields, one after the other."""


class What(IntEnum):
    """What kind of record it was."""

    TICK = 0
    MESSAGE = 1
    END = 2
    ASSIGNED = 3


NO_PARTITION = -1
"""Stands for a partition of a topic where there is none."""

Moment: TypeAlias = tuple[int, int, int, int, int, int]
"""What a record says about time: (sequence, arrival time, `What`, source, event time, partition).

The source is its number among the application's sources, 0 for a tick; the event time may be
`wallaroo.windowing.watermarks.NO_TIME`. The partition is that of a Kafka source, or `NO_PARTITION`.
A record that assigns partitions has a moment for each; they are numbered in the place of a time.
"""

_FIELDS = 6


def moments(tracks: Iterable[Track]) -> list[Moment]:
    """Return the moments of several parts in order of their records."""
    collected: list[Moment] = []
    for track in tracks:
        numbers = iter(track)
        collected += zip(*[numbers] * _FIELDS, strict=True)
    return sorted(collected)


_SEED = 42  # Spark's, for hash partitioning
_WORD = 0xFFFFFFFF


class Address(NamedTuple):
    """A set of entities: those of one case, one group of its plan, and one partition number."""

    case: int
    group: int
    number: int


def shard_of(address: Address, shards: int) -> int:
    """Return the id of the shard that holds an address.

    The partitions of one group go to different shards, as long as there are enough; different
    cases begin at different shards.
    """
    number = address.number + 31 * address.group + 7919 * address.case
    return shard_ids(shards)[number % shards]


@functools.lru_cache(maxsize=64)
def shard_ids(shards: int) -> tuple[int, ...]:
    """Return a number for each shard such that Spark puts each into a task of its own.

    Spark partitions by ``murmur3(number) mod shards``; consecutive numbers would leave tasks empty
    and others with twice the work.
    """
    ids: dict[int, int] = {}
    number = 0
    while len(ids) < shards:
        ids.setdefault(_murmur3(number) % shards, number)
        number += 1
    return tuple([ids[shard] for shard in range(shards)])


def leaving_tasks(shards: int) -> int:
    """Return how many tasks outputs leave from: to send costs a small part of what was before."""
    return -(-shards // 4)


def _murmur3(number: int) -> int:
    """Return Spark's signed 32-bit hash of an int column's value."""
    k = number * 0xCC9E2D51 & _WORD
    k = ((k << 15 | k >> 17) & _WORD) * 0x1B873593 & _WORD
    h = _SEED ^ k
    h = ((h << 13 | h >> 19) & _WORD) * 5 + 0xE6546B64 & _WORD
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _WORD
    h = (h ^ h >> 13) * 0xC2B2AE35 & _WORD
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


ROW_SCHEMA = "shard int, level int, block binary"

FINISHED = 1 << 20
"""The level of results for the driver."""

LEAVING = FINISHED + 1
"""The level of outputs that leave from workers."""

HEAD = -1
"""The level of frames."""

SEGMENT_BYTES = 24 * 1024
"""Bytes of entities that a segment holds on average before another one is added."""


MOST_ATTEMPTS = 3
"""Attempts at a task that may die: Spark gives it one more (``spark.task.maxFailures``)."""


class Row(NamedTuple):
    """A row of Spark."""

    shard: int
    level: int
    block: bytes | None


@dataclass(frozen=True)
class CaseSpec:
    """One case as a worker needs it.

    Args:
        application: pickled.
        partitions: number of partitions of each group that is not fused; the entities'
            partition numbers are for this number.
        isolated: the mode.
        stop_on_error: a dead letter ends the run (dead-4).
        limit: calls after this one in order are not made.
        segment_bytes: see `SEGMENT_BYTES`.
        monitor: host and port of the `live.call_monitor` to report calls to; `None`: do not report.
        faults: the faults of its micro-batch (`wallaroo.engine.TaskFault`), to test recovery.
        measured: figures of its user code are wanted.
        follow: the sequence of the record whose calls are noted; `None`: no record's.
        log_level: the lowest level of user code's log records that are sent to the driver.
        topics: in a live run, by the nodes of Kafka sinks, how many partitions their topics have
            (kafka-13); their outputs leave from workers.
    """

    application: bytes
    partitions: int
    isolated: bool
    stop_on_error: bool = False
    limit: Order | None = None
    segment_bytes: int = SEGMENT_BYTES
    monitor: tuple[str, int] | None = None
    faults: tuple[TaskFault, ...] = ()
    measured: bool = False
    follow: int | None = None
    log_level: int = logging.WARNING
    topics: Mapping[int, int] = field(default_factory=dict)

    def in_batch(self, number: int) -> CaseSpec:
        """Return the same case with the faults of one micro-batch only."""
        if not self.faults:
            return self
        return replace(
            self, faults=tuple([fault for fault in self.faults if fault.batch == number])
        )


Specs = dict[int, CaseSpec]


class WireKind(StrEnum):
    """What the records of a `WireRun` are."""

    FRAMES = "frames"
    VALUES = "values"
    RECORDS = "records"
    OFFSETS = "offsets"
    ASSIGNED = "assigned"
    UNPORTABLE = "unportable"
    SKIPPED = "skipped"
    TICK = "tick"
    END = "end"


class WireRun(NamedTuple):
    """Records that follow each other in the input log.

    Args:
        case: the case's number.
        source: the records' source; `""` for a tick, which has none.
        first: the sequence of the first record.
        items: one for each record: a frame's payload; a generator's value, pickled; the text of why
            a value cannot be pickled or a record is left out; what a Kafka source's decoder needs:
            the record's value, or the record (`KafkaSourceConfig.whole`); offsets, as a `range`, of
            records that the task fetches; nothing for a tick or an assignment; the pickled record
            for an end.
        at: the records' arrival time.
        kind: what they are.
        partitions: of a Kafka source, those that the records are about.
    """

    case: int
    source: str
    first: int
    items: Any
    at: int = 0
    kind: WireKind = WireKind.FRAMES
    partitions: tuple[int, ...] = ()


Frames = list[WireRun]
"""Records in the order received, in runs; most are frames."""


def joined(runs: Iterable[WireRun]) -> Frames:
    """Return runs in their order; those that follow each other and are alike are joined."""
    frames: Frames = []
    items: list[list[Any]] = []
    following = 0
    for run in runs:
        if frames and run.first == following and _alike(frames[-1], run):
            items[-1].append(run.items)
        else:
            frames.append(run)
            items.append([run.items])
        following = run.first + len(run.items)
    return [run._replace(items=_in_one(parts)) for run, parts in zip(frames, items, strict=True)]


def _alike(last: WireRun, run: WireRun) -> bool:
    """Whether the records of both may stand in one run."""
    same = run._replace(first=last.first, items=last.items) == last
    return same and run.kind is not WireKind.OFFSETS


def _in_one(parts: Sequence[Any]) -> Any:
    """Return the items of runs that are joined."""
    if len(parts) == 1:
        return parts[0]
    payloads = [part for part in parts if isinstance(part, ByteStrings)]
    return ByteStrings.joined(payloads) if len(payloads) == len(parts) else [*chain(*parts)]


class Topic(NamedTuple):
    """Where a task fetches the records of a Kafka source.

    Args:
        name: the topic's.
        brokers: ``HOST:PORT``, several separated by commas.
        options: of the client, pairs of a name and a value. They may hold secrets, so they are in
            blocks for tasks only, which stay in memory.
        committed_only: see `wallaroo.transport.kafka.cluster.Cluster.consumer`.
        whole: `KafkaSourceConfig.whole`.
        traced: traces go on from records to their outputs.
    """

    name: str
    brokers: str
    options: tuple[tuple[str, str | int | float | bool], ...]
    committed_only: bool
    whole: bool
    traced: bool


class Fetched(NamedTuple):
    """What tasks have fetched of a Kafka source: records, their bytes, and tombstones of them."""

    records: int = 0
    size: int = 0
    tombstones: int = 0


class HeadBlock(NamedTuple):
    """Input for one task.

    Args:
        cases: the cases whose frames are here, or whose entities are asked for.
        frames: the input.
        span: the first and last offset of the micro-batch; set in one of its blocks.
        list_entities: report all entities after the micro-batch and remove them; set in one block.
        topics: those of offsets that are here, by source.
        most: bytes of values that are fetched from topics at most.
        rows: go to the operators as they are.
    """

    cases: Specs
    frames: Frames
    span: tuple[int, int] | None = None
    list_entities: bool = False
    topics: Mapping[str, Topic] = {}
    most: int = 0
    rows: Sequence[Row] = ()


class LevelBlock(NamedTuple):
    """What one shard gets.

    Args:
        cases: the cases that it is about.
        messages: by address, in runs.
        tracks: for the windows that the shard holds.
        segments: keys and values of segments that the shard holds from now on.
    """

    cases: Specs
    messages: dict[Address, list[Messages]]
    tracks: dict[Address, list[Track]]
    segments: Sequence[tuple[bytes, bytes]] = ()


class Leaving(NamedTuple):
    """Outputs for Kafka, and calls at which the run ends: what is behind the first does not leave.

    Args:
        outputs: runs, each of one partition of a sink's topic.
        ends: calls.
        contexts: headers of records, by their numbers, which go on to their outputs.
    """

    outputs: list[Outputs]
    ends: list[End]
    contexts: Mapping[int, Context]


class Sent(NamedTuple):
    """What has left for a sink.

    Args:
        outputs: number of outputs that the brokers have, now or from an earlier attempt.
        size: bytes of those that were sent now.
    """

    outputs: int = 0
    size: int = 0


class Held(NamedTuple):
    """What an address holds at the end of a batch.

    Args:
        entities: number of state entities.
        open: number of open windows.
        due: the arrival time at which time alone lets a window fire; `None`: never.
    """

    entities: int
    open: int = 0
    due: int | None = None


@dataclass
class Report:
    """What an operator sends to the driver.

    Args:
        finished: outputs, dead letters and ends, by case.
        printed: the lines that user code printed or logged.
        entities: (address, entity's id, structure, pickled state), if they were asked for.
        held: what is held, by address: of those that had messages, and of all with windows.
        span: see `HeadBlock`.
        figures: what was seen of user code.
        visits: the calls made for the record that is followed.
        worked: by host, how many records or messages its tasks processed, and in how many seconds.
        taken: by address, how many messages its entities and windows got, if figures are wanted.
        sent: what has left for Kafka sinks, by node and partition.
        fetched: by Kafka source, what tasks have fetched.
        problem: why outputs cannot leave any more; empty: they can.
    """

    finished: dict[int, Finished] = field(default_factory=dict)
    printed: list[Line] = field(default_factory=list)
    entities: list[tuple[Address, bytes, Any, bytes]] = field(default_factory=list)
    held: dict[Address, Held] = field(default_factory=dict)
    span: tuple[int, int] | None = None
    figures: list[Harvest] = field(default_factory=list)
    visits: Visits = field(default_factory=Visits)
    worked: dict[str, tuple[int, float]] = field(default_factory=dict)
    taken: dict[Address, int] = field(default_factory=dict)
    sent: dict[tuple[int, int], Sent] = field(default_factory=dict)
    fetched: dict[str, Fetched] = field(default_factory=dict)
    problem: str = ""

    def __bool__(self) -> bool:
        return self != Report()

    @classmethod
    def merged(cls, reports: Iterable[Report]) -> Report:
        """Return everything that was reported as one report."""
        total = cls()
        for report in reports:
            total.add(report)
        return total

    def add(self, other: Report) -> None:
        """Add another report to this one."""
        for case, finished in other.finished.items():
            self.finished.setdefault(case, Finished()).add(finished)
        self.printed += other.printed
        self.entities += other.entities
        self.figures += other.figures
        self.visits.merge(other.visits)
        for host, (records, seconds) in other.worked.items():
            before = self.worked.get(host, (0, 0.0))
            self.worked[host] = (before[0] + records, before[1] + seconds)
        self.held.update(other.held)
        self.taken.update(other.taken)
        self.sent.update(other.sent)
        self.problem = self.problem or other.problem
        self.span = other.span or self.span
        for source, some in other.fetched.items():
            pairs = zip(self.fetched.get(source, Fetched()), some, strict=True)
            self.fetched[source] = Fetched._make(map(sum, pairs))


_SIZE = struct.Struct(">I")
_LZ4 = pa.Codec("lz4_raw")
_SMALL = 1024  # bytes that are not worth a compression


def pack(value: Any) -> bytes:
    """Return a block: a pickle, compressed unless it is small.

    Each byte costs on its way through Java, which copies it several times, to the state store, and
    in its log. Messages are often alike, and each state has the names of its class and attributes.
    """
    blob = pickle.dumps(value, 5)
    if len(blob) < _SMALL:
        return blob
    compressed: bytes = _LZ4.compress(blob, asbytes=True)
    return _SIZE.pack(len(blob)) + compressed


def unpack(block: bytes) -> Any:
    """Return what a block holds, or any pickle."""
    if block[0] != pickle.PROTO[0]:
        (size,) = _SIZE.unpack_from(block)
        block = _LZ4.decompress(memoryview(block)[_SIZE.size :], decompressed_size=size)
    return pickle.loads(block)  # noqa: S301 - made by `pack`, and went through Spark's channels
