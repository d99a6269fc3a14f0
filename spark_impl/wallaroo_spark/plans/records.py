"""Records as workers get them, one by one: those of bounded cases, and those of an input log."""

from __future__ import annotations

from wallaroo.records import Assigned, Consumed, End, Frame, Record, Tick, Value
from wallaroo.transport.logged import decoded
from wallaroo_spark.wire.job import WireKind, WireRun, pack


def run_of(record: Record, case: int, number: int, *, whole: bool = False) -> WireRun:
    """Return a record as a run of its own.

    Args:
        record: not `Unused`; a `Value` as a log holds it (`wallaroo.transport.logged.encoded`).
        case: the case's number.
        number: the record's.
        whole: see `KafkaSourceConfig.whole`.
    """
    if isinstance(record, Tick):
        return WireRun(case, "", number, [b""], record.at, WireKind.TICK)
    run = WireRun(case, record.source, number, [b""], record.at)
    match record:
        case Frame():
            return run._replace(items=[record.payload])
        case Value(value=blob):
            pickled, hindered = decoded(blob)
            if hindered is not None:
                return run._replace(items=[hindered], kind=WireKind.UNPORTABLE)
            return run._replace(items=[pickled], kind=WireKind.VALUES)
        case Consumed(record=read):
            items = [read if whole else read.value]
            return run._replace(items=items, kind=WireKind.RECORDS, partitions=(read.partition,))
        case Assigned():
            numbers = tuple([number for number, _, _ in record.partitions])
            return run._replace(kind=WireKind.ASSIGNED, partitions=numbers)
        case End(partition=partition):
            of = () if partition is None else (partition,)
            return run._replace(items=[pack(record)], kind=WireKind.END, partitions=of)
    raise AssertionError(f"a record of an unknown kind: {record}")
