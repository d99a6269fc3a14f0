"""What an input log says of sources: the values of generators, and where each source goes on.

After a restart a generator goes on behind its last value, and a Kafka source behind the offsets
that were read; what has ended stays ended (graph-4, kafka-3).
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from wallaroo.copying import why_unportable
from wallaroo.json_fields import a_number, or_none, some_bytes
from wallaroo.records import Assigned, Consumed, End, Record, Unportable, Value
from wallaroo.transport.identity import CheckpointError
from wallaroo.transport.log_format import LoggedRun, RecordKind
from wallaroo.transport.skipping import Readable, SkippedPayload, skipped

_AT_ONCE = 1 << 20  # payload bytes of a log that are read at once
_RECORDS = 4096  # and records

_PICKLED, _UNPORTABLE = b"p", b"u"
"""What an encoded value begins with."""


# -- values of generators --------------------------------------------------------------------------


def encoded(value: Any) -> bytes:
    """Return a generator's value as a log holds it; if it cannot be pickled, why."""
    try:
        blob = pickle.dumps(value, 5)
        pickle.loads(blob)  # noqa: S301 - our own bytes
    except Exception as error:  # noqa: BLE001 - user code: what it makes may not be portable
        return _UNPORTABLE + why_unportable(value, error).encode("utf-8", "surrogatepass")
    return _PICKLED + blob


def decoded(blob: bytes) -> tuple[bytes, str | None]:
    """Return the pickled value that `encoded` kept, or why there is none; the other is empty."""
    if isinstance(blob, SkippedPayload):
        return b"", blob.why
    if blob.startswith(_UNPORTABLE):
        return b"", blob[1:].decode("utf-8", "surrogatepass")
    return blob[1:], None


@dataclass(frozen=True, slots=True)
class LoggedValue(Value):
    """A generator's value as a log holds it: `value` is bytes.

    Args:
        message: what a machine gets; `Unportable` if the log has only why there is nothing.
    """

    message: Any = None

    @property
    def made(self) -> Value:
        """The value for a machine."""
        return Value(self.source, self.message, self.at)


def to_log(record: Value) -> LoggedValue:
    """Return a value that a generator has made, as a log holds it."""
    blob = encoded(record.value)
    hindered = decoded(blob)[1]
    message = record.value if hindered is None else Unportable(hindered)
    return LoggedValue(record.source, blob, record.at, message)


def from_log(record: Value) -> LoggedValue:
    """Return a value that is read back from a log.

    Args:
        record: as `InputLog` returns it.

    Raises:
        CheckpointError: it cannot be read back by this code.
    """
    return LoggedValue(record.source, record.value, record.at, _read_back(record.value))


def _read_back(blob: bytes) -> Any:
    pickled, hindered = decoded(blob)
    if hindered is not None:
        return Unportable(hindered)
    try:
        return pickle.loads(pickled)  # noqa: S301 - our own log's
    except Exception as error:
        raise CheckpointError(
            "a value of a generator cannot be read back from the checkpoint: "
            f"{type(error).__name__}: {error}. Run the application that made it, or begin anew "
            "with an empty directory"
        ) from error


# -- where sources go on ---------------------------------------------------------------------------


@dataclass(frozen=True)
class TopicPosition:
    """Where a Kafka source stands: what a log and a checkpoint say of it.

    Args:
        topic: the topic's id.
        offsets: for each partition that is read, the next offset.
        at: when the source began, in nanoseconds since 1970: the arrival time of all that a
            bounded read reads (kafka-10).
        ends: for each partition of a bounded read, the offset behind its last; `None`: the
            read is not bounded.
        starts: for each of these, the offset at which the read began, from which turns count.
    """

    topic: str
    offsets: Mapping[int, int]
    at: int = 0
    ends: Mapping[int, int] | None = None
    starts: Mapping[int, int] | None = None

    @property
    def form(self) -> list[Any]:
        """The position as values of JSON."""
        return [self.topic, self.at, *map(_pairs, (self.offsets, self.ends, self.starts))]

    @classmethod
    def from_form(cls, form: Any) -> TopicPosition:
        """Return the position that `form` gave.

        Raises:
            TypeError, ValueError: it is not one.
        """
        topic, at, offsets, *bounds = form
        if type(topic) is not str or type(at) is not int:
            raise TypeError(f"{form!r:.80} is no position")
        ends, starts = [None if some is None else _offsets(some) for some in (*bounds, None)[:2]]
        return cls(topic, _offsets(offsets), at, ends, starts)

    def with_assigned(self, record: Assigned) -> TopicPosition:
        """Return the position once a log has said which partitions are read."""
        offsets = {number: first for number, first, _ in record.partitions}
        ends = {number: end for number, _, end in record.partitions if end is not None}
        bounded = ends and not self.ends  # from now on
        return TopicPosition(
            record.topic,
            {**self.offsets, **offsets},
            record.at if bounded or not self.at else self.at,
            {**(self.ends or {}), **ends} or None,
            offsets if bounded else self.starts,
        )


def _pairs(offsets: Mapping[int, int] | None) -> list[list[int]] | None:
    return None if offsets is None else [[*pair] for pair in offsets.items()]


def _offsets(form: Any) -> dict[int, int]:
    offsets: dict[int, int] = dict(form)
    if not {type(number) for pair in offsets.items() for number in pair} <= {int}:
        raise TypeError(f"{form!r:.80} are no offsets")
    return offsets


@dataclass(frozen=True)
class LoggedSource:
    """What a log has said of a source; a generator or a Kafka source goes on from there.

    Args:
        ended: it has ended.
        last: its latest value that can be read back, as the log holds it; empty if there is none.
        behind: number of its values after that one, none of which can be read back. A restart has
            them made again, to get to the next one, and leaves them out.
        position: where a Kafka source stands.
        partitions: of a Kafka source, those that have ended.
    """

    ended: bool = False
    last: bytes = b""
    behind: int = 0
    position: TopicPosition | None = None
    partitions: Mapping[int, LoggedSource] = field(default_factory=dict)

    @property
    def form(self) -> list[Any]:
        """It as values of JSON."""
        last = base64.b64encode(self.last).decode()
        position = None if self.position is None else self.position.form
        return [self.ended, last, self.behind, position, [*self.partitions]]

    @classmethod
    def from_form(
        cls, ended: Any, last: Any, behind: Any, position: Any = None, partitions: Any = ()
    ) -> LoggedSource:
        """Return the source that `form` gave.

        Raises:
            TypeError, ValueError: it is not the form of one.
        """
        return cls(
            bool(ended),
            some_bytes(last),
            a_number(behind),
            or_none(TopicPosition.from_form, position),
            {a_number(number): LoggedSource(ended=True) for number in partitions},
        )

    def value(self) -> Any:
        """Return the latest value that can be read back; `None` if there is none.

        Raises:
            CheckpointError: not by this code.
        """
        return _read_back(self.last) if self.last else None

    def after(self, record: Record) -> LoggedSource:
        """Return what is known after a further record, as the log holds it."""
        match record:
            case Value(value=blob) if decoded(blob)[1] is None:
                return replace(self, last=blob, behind=0)
            case Value():
                return replace(self, behind=self.behind + 1)
            case End(partition=None):
                return replace(self, ended=True)
            case End(partition=int(number)):
                ended = {**self.partitions, number: LoggedSource(ended=True)}
                return replace(self, partitions=ended)
            case Assigned():
                before = self.position or TopicPosition(record.topic, {})
                return replace(self, position=before.with_assigned(record))
            case Consumed(record=read):
                return self.read_to({read.partition: read.offset + 1})
        return self

    def read_to(self, offsets: Mapping[int, int]) -> LoggedSource:
        """Return what is known once partitions were read up to these offsets."""
        if not offsets:
            return self
        position = self.position or TopicPosition("", {})
        position = replace(position, offsets={**position.offsets, **offsets})
        return replace(self, position=position)


def after(
    sources: Mapping[str, LoggedSource], runs: Iterable[LoggedRun]
) -> Mapping[str, LoggedSource]:
    """Return what is known about the sources after further records."""
    updated = dict(sources)
    offsets: dict[str, dict[int, int]] = {}  # by source and partition, behind what is read
    for run in runs:
        if run.kind is RecordKind.OFFSETS:
            partition, first = run.place
            offsets.setdefault(run.source, {})[partition] = first + len(run.payloads)
        elif run.kind not in (RecordKind.FRAME, RecordKind.TICK):
            source = updated.get(run.source, LoggedSource())
            source = source.read_to(offsets.pop(run.source, {}))
            for record in run.records():
                source = source.after(record)
            updated[run.source] = source
    for name, behind in offsets.items():
        updated[name] = updated.get(name, LoggedSource()).read_to(behind)
    return updated


def at_the_end_of(
    log: Readable,
    start: int,
    sources: Mapping[str, LoggedSource],
    skip: Collection[int] = (),
) -> Mapping[str, LoggedSource]:
    """Return what is known about the sources after a whole log.

    Args:
        log: the log.
        start: number of a record.
        sources: what is known before that record.
        skip: numbers of records that are left out.

    Raises:
        InputLogError: it cannot be read.
    """
    for runs in runs_from(log, start):
        sources = after(sources, skipped(runs, skip))
    return sources


def first_offsets(log: Readable, start: int) -> dict[str, dict[int, int]]:
    """Return from where on what a log only names is read again, by source and partition (kafka-1).

    Args:
        log: the log.
        start: number of the first record whose effect is not stored.

    Raises:
        InputLogError: it cannot be read.
    """
    first: dict[str, dict[int, int]] = {}
    for runs in runs_from(log, start):
        for run in runs:
            if run.kind is RecordKind.OFFSETS:
                partition, offset = run.place
                there = first.setdefault(run.source, {})
                there[partition] = min(offset, there.get(partition, offset))
    return first


def runs_from(log: Readable, start: int) -> Iterator[Sequence[LoggedRun]]:
    """Yield the runs that a log has now, from a record on, some at a time."""
    start, last = max(start, log.first_sequence), log.next_sequence
    while start < last:
        end = min(last, log.end_within(start, max_bytes=_AT_ONCE, max_records=_RECORDS))
        yield log.runs(start, end)
        start = end
