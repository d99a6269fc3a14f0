"""The records of an input log as its blocks hold them: runs of payloads.

A run is records of one kind, one source and one arrival time that follow each other. The payload
of a frame is the frame; that of a value is its bytes, which the caller makes and reads. A tick has
an empty one, and no source. The payload of an end::

    u8 flags: 1 a generator raised, 2 what it raised ends the run
    u16 length of the exception's class name · the name · its text, both UTF-8
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from wallaroo.records import End, Frame, Record, Tick, Value
from wallaroo.transport.blocks import Kind

_END = struct.Struct(">BH")
_RAISED, _ENDS_RUN = 1, 2
_LONGEST_NAME = 1_000  # characters of an exception's class name that are kept
_LONGEST_ERROR = 4_000  # of its text; `describe_error` keeps fewer


class Run(NamedTuple):
    """Records of one kind, one source and one arrival time that follow each other in the log.

    Args:
        source: the source's name; empty for a tick.
        first: sequence of the first.
        payloads: of a frame its payload, of a value its bytes.
        kind: what they are.
        at: arrival time, in nanoseconds since 1970.
    """

    source: str
    first: int
    payloads: list[bytes]
    kind: Kind
    at: int

    def records(self) -> list[Record]:
        """Return them one by one; the `value` of a `Value` is its bytes."""
        make = _MAKE[self.kind]
        return [make(self.source, payload, self.at) for payload in self.payloads]


Group: TypeAlias = tuple[Kind, str, int, Sequence[bytes]]
"""A run that is not in the log yet: kind, source, arrival time, payloads."""


def in_groups(records: Iterable[Record]) -> list[Group]:
    """Return records in groups; the `value` of a `Value` is bytes."""
    groups: list[Group] = []
    last = None
    payloads: list[bytes] = []
    for record in records:
        kind, source, payload = _parts(record)
        if last != (last := (kind, source, record.at)):
            payloads = []
            groups.append((*last, payloads))
        payloads.append(payload)
    return groups


def bounded(end: End) -> End:
    """Return an end as the log keeps it: of very long texts only the beginning."""
    name = end.error_type
    return replace(
        end,
        error_type=None if name is None else name[:_LONGEST_NAME],
        error=end.error[:_LONGEST_ERROR],
    )


def _parts(record: Record) -> tuple[Kind, str, bytes]:
    match record:
        case Frame(source, payload):
            return Kind.FRAME, source, payload
        case Value(source, value):
            if not isinstance(value, bytes):
                raise TypeError(
                    f"the input log takes a generator's value as bytes, not {type(value).__name__}"
                )
            return Kind.VALUE, source, value
        case Tick():
            return Kind.TICK, "", b""
        case End(source):
            return Kind.END, source, _encoded(record)


def _encoded(end: End) -> bytes:
    end = bounded(end)
    # A text may hold what UTF-8 does not: lone surrogates, of a file name that is not decodable.
    name = (end.error_type or "").encode("utf-8", "surrogatepass")
    flags = (end.error_type is not None) * _RAISED + end.ends_run * _ENDS_RUN
    return _END.pack(flags, len(name)) + name + end.error.encode("utf-8", "surrogatepass")


def _end(source: str, payload: bytes, at: int) -> End:
    flags, length = _END.unpack_from(payload)
    name = payload[_END.size : _END.size + length].decode("utf-8", "surrogatepass")
    error = payload[_END.size + length :].decode("utf-8", "surrogatepass")
    return End(source, at, name if flags & _RAISED else None, error, bool(flags & _ENDS_RUN))


_MAKE: dict[Kind, Callable[[str, bytes, int], Record]] = {
    Kind.FRAME: Frame,
    Kind.VALUE: Value,
    Kind.TICK: lambda _source, _payload, at: Tick(at),
    Kind.END: _end,
}
