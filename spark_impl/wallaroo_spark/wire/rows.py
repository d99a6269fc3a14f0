"""Rows of blocks as Arrow batches."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from wallaroo_spark.wire.job import Row, unpack

ARROW_SCHEMA = pa.schema([("shard", pa.int32()), ("level", pa.int32()), ("block", pa.binary())])


def to_batch(rows: Iterable[Row]) -> pa.RecordBatch:
    """Return rows as one Arrow batch."""
    shards, levels, blocks = list(zip(*rows, strict=True)) or [(), (), ()]
    columns = [_int32(shards), _int32(levels), _binary(blocks)]
    return pa.RecordBatch.from_arrays(columns, schema=ARROW_SCHEMA)


# Made of their bytes: `pa.array` imports pandas, which takes each worker half a CPU second.


def _int32(values: Sequence[int]) -> pa.Array:
    return pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(array("i", values))])


def _binary(values: Sequence[bytes | None]) -> pa.Array:
    ends = itertools.accumulate([len(value or b"") for value in values], initial=0)
    data = pa.py_buffer(b"".join([value or b"" for value in values]))
    offsets = pa.py_buffer(array("i", ends))
    absent = values.count(None)
    mask = None
    if absent:
        there = bytearray(len(values) // 8 + 1)  # a bit for each value
        for place, value in enumerate(values):
            there[place // 8] |= (value is not None) << place % 8
        mask = pa.py_buffer(there)
    return pa.Array.from_buffers(pa.binary(), len(values), [mask, offsets, data], null_count=absent)


def from_batch(batch: pa.RecordBatch) -> Iterator[Row]:
    """Yield the rows of an Arrow batch."""
    columns: list[list[Any]] = [column.to_pylist() for column in batch.columns]
    return map(Row, *columns)


def collected(batches: Iterable[pa.RecordBatch]) -> list[Any]:
    """Return the contents of the blocks of rows that are collected in the driver."""
    # Spark's collect() copies large values several times more than Arrow batches.
    return [unpack(block) for batch in batches for block in batch.column("block").to_pylist()]
