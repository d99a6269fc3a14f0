"""What stands in a file of an input log: a header, then blocks of records, each with a checksum.

The header::

    21 bytes magic · u32 CRC-32 of what follows
    u64 sequence of the file's first record · u64 arrival time of the last record before it
    32 bytes stamp: whose the file is · 8 bytes what the run drew that wrote the file before it

A block holds records of one kind, one source and one arrival time, which one append wrote::

    u32 length of what follows the checksum · u32 CRC-32 of it
    u64 sequence of the first record · u32 number of records · u16 length of the source's name
    u8 kind · u64 arrival time
    the name, UTF-8 · u32 length of each payload · the payloads

The payload of a frame is the frame; that of a value is its bytes, which the caller makes and reads.
A tick has an empty one, and no source. The payload of an end::

    u8 flags: 1 a generator raised, 2 what it raised ends the run, 4 only a partition ends
    u16 length of the exception's class name · u32 partition · the name · its text, both UTF-8

A run of offsets of Kafka (kafka-1) is a block with as many empty payloads as it has numbers; where
records are kept whole, there are blocks of whole records and of unused numbers in its place. The
payload of the first offset of a run, of a whole record, and of an assignment::

    u32 partition · u64 offset
    u32 partition · u64 offset · i64 timestamp or -1 · u32 number of headers
        · topic, value, key, name and value of each header: u32 length, or 2³²-1 for none · bytes
    JSON: [id of the topic, [[partition, first offset, end or null], …]]

All numbers are big-endian; times are nanoseconds since 1970. A timestamp of 2⁶³ and more, which is
no event time, stands there as -1 - its milliseconds. A block is read whole or not at all, so bytes
left by a crash in the middle of a write are never taken for a record.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from itertools import chain, repeat
from typing import NamedTuple, TypeAlias, overload

from wallaroo.kafka_records import KafkaRecord
from wallaroo.overriding import override
from wallaroo.records import Assigned, Consumed, End, Frame, Record, Tick, Unused, Value
from wallaroo.times import MILLISECOND, TIME_END
from wallaroo.transport.byte_strings import ByteStrings
from wallaroo.transport.stamps import STAMP_BYTES, UNSTAMPED, Stamp, from_bytes

_MAGIC = b"wallaroo input log 1\n"
_CHECKSUM = struct.Struct(">I")
_FILE_HEAD = struct.Struct(f">QQ{STAMP_BYTES}s8s")
_OUTER = struct.Struct(">II")
_HEAD = struct.Struct(">QIHBQ")
_HEAD_BYTES = _OUTER.size + _HEAD.size
_END = struct.Struct(">BHI")
_RAISED, _ENDS_RUN, _PARTITION = 1, 2, 4
_OFFSET = struct.Struct(">IQ")
_CONSUMED = struct.Struct(">IQqI")
_LENGTH = struct.Struct(">I")
_NOTHING = b"\xff\xff\xff\xff"
_LONGEST_NAME = 1_000  # characters of an exception's class name that are kept
_LONGEST_ERROR = 4_000  # of its text; `describe_error` keeps fewer

START = len(_MAGIC) + _CHECKSUM.size + _FILE_HEAD.size
"""Bytes of a file before its first block."""
SEQUENCE_AT = _OUTER.size
"""The offset in a block of its first record's sequence."""
RECORD_BYTES = 4
"""The fewest bytes that a record takes in a block: those of its length."""

Bytes: TypeAlias = bytes | mmap.mmap


class RecordKind(IntEnum):
    """What the records of a block are; the number stands in the file."""

    FRAME = 0
    VALUE = 1
    TICK = 2
    END = 3
    CONSUMED = 4
    ASSIGNED = 5
    UNUSED = 6
    OFFSETS = 7


_KINDS = tuple(RecordKind)


class Head(NamedTuple):
    """What a block says before the source's name."""

    first: int
    records: int
    name_bytes: int
    kind: int
    at: int


class Block(NamedTuple):
    """Which records a block holds and how far it reaches in the file."""

    first: int
    records: int
    offset: int
    end: int


class DamagedBlockError(Exception):
    """A block is incomplete or its checksum is wrong; `offset` is where it begins."""

    def __init__(self, offset: int, what: str) -> None:
        super().__init__(f"{what} at byte {offset}")
        self.offset = offset


@dataclass(frozen=True)
class Offsets(Sequence[bytes]):
    """The payloads of a run of offsets: as many as it has numbers, and as small as one of them.

    Args:
        partition: of the topic.
        numbers: the offsets; none, if it is a part of a run in which there are none.
    """

    partition: int
    numbers: range

    @override
    def __len__(self) -> int:
        return len(self.numbers)

    @override
    def __iter__(self) -> Iterator[bytes]:
        return chain([self[0]] if self else [], repeat(b"", len(self) - 1))

    @overload
    def __getitem__(self, at: int) -> bytes: ...
    @overload
    def __getitem__(self, at: slice) -> Offsets: ...
    @override
    def __getitem__(self, at: int | slice) -> bytes | Offsets:
        if isinstance(at, slice):
            return Offsets(self.partition, self.numbers[at])
        number = self.numbers[at]
        return _OFFSET.pack(self.partition, number) if number == self.numbers[0] else b""


class LoggedRun(NamedTuple):
    """Records of one kind, one source and one arrival time that follow each other in the log.

    Args:
        source: the source's name; empty for a tick.
        first: sequence of the first.
        payloads: of a frame its payload, of a value its bytes; of offsets they are `Offsets`.
        kind: what they are.
        at: arrival time, in nanoseconds since 1970.
    """

    source: str
    first: int
    payloads: Sequence[bytes]
    kind: RecordKind
    at: int

    def records(self) -> list[Record]:
        """Return them one by one; the `value` of a `Value` is its bytes."""
        make = _MAKE[self.kind]
        return [make(self.source, payload, self.at) for payload in self.payloads]

    def part(self, start: int, stop: int) -> LoggedRun:
        """Return the records with ``start <= sequence < stop``; it may be empty."""
        low, high = max(start - self.first, 0), max(stop - self.first, 0)
        return self._replace(first=self.first + low, payloads=self.payloads[low:high])

    @property
    def as_ticks(self) -> LoggedRun:
        """Ticks in the place of these records."""
        return LoggedRun("", self.first, [b""] * len(self.payloads), RecordKind.TICK, self.at)

    @property
    def place(self) -> tuple[int, int]:
        """Partition and offset of the first number of a run of offsets."""
        assert isinstance(self.payloads, Offsets)
        return self.payloads.partition, self.payloads.numbers[0]


# -- the header ------------------------------------------------------------------------------------


class FileHead(NamedTuple):
    """What stands at the beginning of a file.

    Args:
        first: sequence of its first record.
        at: arrival time of the last record before it.
        stamp: whose the file is.
        run_before: what the run drew that wrote the file before it (`Stamp.run`).
    """

    first: int
    at: int = 0
    stamp: Stamp = UNSTAMPED
    run_before: str = UNSTAMPED.run

    def to_bytes(self) -> bytes:
        """Return the beginning of a file."""
        run_before = bytes.fromhex(self.run_before)
        body = _FILE_HEAD.pack(self.first, self.at, self.stamp.to_bytes(), run_before)
        return _MAGIC + _CHECKSUM.pack(zlib.crc32(body)) + body


def read_file_head(data: bytes, first: int) -> FileHead:
    """Return what stands at the beginning of a file.

    Args:
        data: `START` bytes from the file's beginning, or the whole file.
        first: the sequence that its name says.

    Raises:
        DamagedBlockError: this is not the beginning of such a file.
    """
    if len(data) >= START:
        _, at, stamp, run_before = _FILE_HEAD.unpack_from(data, START - _FILE_HEAD.size)
        head = FileHead(first, at, from_bytes(stamp), run_before.hex())
        if data[:START] == head.to_bytes():
            return head
    raise DamagedBlockError(0, "no header of an input log")


# -- blocks ----------------------------------------------------------------------------------------


def encode_block(
    first: int, kind: RecordKind, source: str, at: int, payloads: Sequence[bytes]
) -> bytes:
    """Return the block of `payloads`, the first of which has sequence `first`."""
    name = source.encode()
    lengths = struct.pack(f">{len(payloads)}I", *map(len, payloads))
    head = _HEAD.pack(first, len(payloads), len(name), kind, at)
    body = b"".join([head, name, lengths, *payloads])
    return _OUTER.pack(len(body), zlib.crc32(body)) + body


def decode_block(head: Head, body: bytes, start: int, stop: int) -> LoggedRun:
    """Return the records with ``start <= sequence < stop`` of a block that `read_block` gave."""
    lengths = _HEAD.size + head.name_bytes
    source = body[_HEAD.size : lengths].decode()
    data = lengths + 4 * head.records
    payloads: Sequence[bytes] = ByteStrings.from_table(body[lengths:data], body[data:])
    if head.kind == RecordKind.OFFSETS:
        payloads = offsets_of(payloads[0], head.records)
    run = LoggedRun(source, head.first, payloads, _KINDS[head.kind], head.at)
    whole = start <= head.first and head.first + head.records <= stop
    return run if whole else run.part(start, stop)


def read_head(fd: int, offset: int) -> tuple[Head, int]:
    """Return the head of the block at `offset`, unchecked, and where the next block begins.

    Raises:
        DamagedBlockError: the file ends before.
    """
    data = os.pread(fd, _HEAD_BYTES, offset)
    if len(data) < _HEAD_BYTES:
        raise DamagedBlockError(offset, "a block's header is cut off")
    length: int = _OUTER.unpack_from(data)[0]
    return Head(*_HEAD.unpack_from(data, _OUTER.size)), offset + _OUTER.size + length


def read_block(fd: int, offset: int, end: int) -> tuple[Head, bytes, int]:
    """Return head and body of the block at `offset`, checked, and where the next block begins.

    Args:
        fd: the file.
        offset: where the block begins.
        end: where the file's blocks end.

    Raises:
        DamagedBlockError: it is incomplete, or not what was written.
    """
    outer = os.pread(fd, _OUTER.size, offset)
    if len(outer) < _OUTER.size:
        raise DamagedBlockError(offset, "a block's header is cut off")
    length, checksum = _OUTER.unpack(outer)
    following = offset + _OUTER.size + length
    if length < _HEAD.size or following > end:
        raise DamagedBlockError(offset, "a block is cut off")
    body = os.pread(fd, length, offset + _OUTER.size)
    if len(body) < length or zlib.crc32(body) != checksum:
        raise DamagedBlockError(offset, "a block's checksum does not fit")
    head = Head(*_HEAD.unpack_from(body))
    if head.kind >= len(_KINDS):
        raise DamagedBlockError(offset, f"records of the unknown kind {head.kind}")
    return head, body, following


def read_lengths(fd: int, offset: int, head: Head) -> tuple[int, ...]:
    """Return the lengths in bytes of the payloads of the block at `offset`, unchecked."""
    table = os.pread(fd, 4 * head.records, offset + _HEAD_BYTES + head.name_bytes)
    return struct.unpack(f">{head.records}I", table)


def block_at(data: Bytes, offset: int) -> Block | None:
    """Return the block that begins at `offset`, if the lengths in its header are consistent.

    It may reach beyond the end of `data`; its checksum is not checked.
    """
    with memoryview(data)[offset:] as view:
        if len(view) < _HEAD_BYTES:
            return None
        length: int = _OUTER.unpack_from(view)[0]
        head = Head(*_HEAD.unpack_from(view, _OUTER.size))
        lengths = _HEAD_BYTES + head.name_bytes
        payloads = lengths + 4 * head.records
        if not head.records or payloads > min(len(view), _OUTER.size + length):
            return None
        end = payloads + sum(struct.unpack_from(f">{head.records}I", view, lengths))
        if end != _OUTER.size + length:
            return None
        return Block(head.first, head.records, offset, offset + end)


def is_whole(data: Bytes, block: Block) -> bool:
    """Return whether a block is complete and its checksum is right."""
    with memoryview(data) as view:
        if block.end > len(view):
            return False
        checksum: int = _OUTER.unpack_from(view, block.offset)[1]
        return zlib.crc32(view[block.offset + _OUTER.size : block.end]) == checksum


# -- records ---------------------------------------------------------------------------------------


Group: TypeAlias = tuple[RecordKind, str, int, Sequence[bytes]]
"""A run that is not in the log yet: kind, source, arrival time, payloads."""


def in_groups(records: Iterable[Record]) -> list[Group]:
    """Return records in groups; the `value` of a `Value` is bytes."""
    groups: list[Group] = []
    last = None
    payloads: list[bytes] = []
    for record in records:
        kind, source, payload = _parts(record)
        numbers = record.numbers if isinstance(record, Unused) else 1
        if last != (last := (kind, source, record.at)):
            payloads = []
            groups.append((*last, payloads))
        payloads += [payload] * numbers
    return groups


def bounded(end: End) -> End:
    """Return an end as the log keeps it: of very long texts only the beginning."""
    name = end.error_type
    return replace(
        end,
        error_type=None if name is None else name[:_LONGEST_NAME],
        error=end.error[:_LONGEST_ERROR],
    )


def _parts(record: Record) -> tuple[RecordKind, str, bytes]:
    match record:
        case Frame(source, payload):
            return RecordKind.FRAME, source, payload
        case Value(source, value):
            if not isinstance(value, bytes):
                raise TypeError(
                    f"the input log takes a generator's value as bytes, not {type(value).__name__}"
                )
            return RecordKind.VALUE, source, value
        case Tick():
            return RecordKind.TICK, "", b""
        case End(source):
            return RecordKind.END, source, _encoded(record)
        case Consumed(source, of_topic):
            return RecordKind.CONSUMED, source, _whole(of_topic)
        case Assigned(source, partitions):
            return RecordKind.ASSIGNED, source, json.dumps([record.topic, partitions]).encode()
        case Unused(source):
            return RecordKind.UNUSED, source, b""


def offsets_group(source: str, partition: int, first: int, last: int, at: int) -> Group:
    """Return a run of offsets, the records of which stay where they are (kafka-1)."""
    return RecordKind.OFFSETS, source, at, Offsets(partition, range(first, last + 1))


def offsets_of(payload: bytes, numbers: int) -> Offsets:
    """Return the payloads of a run of so many offsets, given the first payload."""
    partition, first = _OFFSET.unpack(payload)
    return Offsets(partition, range(first, first + numbers))


def _encoded(end: End) -> bytes:
    end = bounded(end)
    # A text may hold what UTF-8 does not: lone surrogates, of a file name that is not decodable.
    name = (end.error_type or "").encode("utf-8", "surrogatepass")
    flags = (end.error_type is not None) * _RAISED + end.ends_run * _ENDS_RUN
    flags += (end.partition is not None) * _PARTITION
    return (
        _END.pack(flags, len(name), end.partition or 0)
        + name
        + end.error.encode("utf-8", "surrogatepass")
    )


def _end(source: str, payload: bytes, at: int) -> End:
    flags, length, number = _END.unpack_from(payload)
    name = payload[_END.size : _END.size + length].decode("utf-8", "surrogatepass")
    error = payload[_END.size + length :].decode("utf-8", "surrogatepass")
    partition = number if flags & _PARTITION else None
    raised = name if flags & _RAISED else None
    return End(source, at, raised, error, bool(flags & _ENDS_RUN), partition)


def _whole(record: KafkaRecord) -> bytes:
    head = _CONSUMED.pack(
        record.partition, record.offset, _packed(record.timestamp), len(record.headers)
    )
    parts = [record.topic.encode(), record.value, record.key]
    for name, value in record.headers:
        parts += [name.encode(), value]
    return head + b"".join(
        [_NOTHING if part is None else _LENGTH.pack(len(part)) + part for part in parts]
    )


def _packed(timestamp: int | None) -> int:
    """Return a timestamp as 64 bits: one beyond their nanoseconds in milliseconds, below -1."""
    if timestamp is None:
        return -1
    return timestamp if timestamp < TIME_END else -1 - timestamp // MILLISECOND


def _unpacked(time: int) -> int | None:
    if time < -1:
        return (-1 - time) * MILLISECOND
    return None if time == -1 else time


def _consumed(source: str, payload: bytes, at: int) -> Consumed:
    partition, offset, time, headers = _CONSUMED.unpack_from(payload)
    parts: list[bytes | None] = []
    position = _CONSUMED.size
    for _ in range(3 + 2 * headers):
        begin = position + _LENGTH.size
        if payload[position:begin] == _NOTHING:
            position = begin
            parts.append(None)
        else:
            position = begin + _LENGTH.unpack_from(payload, position)[0]
            parts.append(payload[begin:position])
    topic, value, key, *rest = parts
    names = [(name or b"").decode() for name in rest[::2]]
    record = KafkaRecord(
        value,
        key,
        tuple(zip(names, rest[1::2], strict=True)),
        _unpacked(time),
        (topic or b"").decode(),
        partition,
        offset,
    )
    return Consumed(source, record, at)


def _assigned(source: str, payload: bytes, at: int) -> Assigned:
    topic, partitions = json.loads(payload)
    return Assigned(source, tuple([tuple(place) for place in partitions]), at, topic)


def _no_record(source: str, _payload: bytes, _at: int) -> Record:
    raise TypeError(f"the records of {source} stand in its topic, and not in the log")


_MAKE: dict[RecordKind, Callable[[str, bytes, int], Record]] = {
    RecordKind.FRAME: Frame,
    RecordKind.VALUE: Value,
    RecordKind.TICK: lambda _source, _payload, at: Tick(at),
    RecordKind.END: _end,
    RecordKind.CONSUMED: _consumed,
    RecordKind.ASSIGNED: _assigned,
    RecordKind.UNUSED: lambda source, _payload, at: Unused(source, 1, at),
    RecordKind.OFFSETS: _no_record,
}
