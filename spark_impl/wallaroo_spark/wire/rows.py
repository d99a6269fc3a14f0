"""Rows of blocks as Arrow batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from wallaroo_spark.wire.job import Row, unpack

ARROW_SCHEMA = pa.schema([("shard", pa.int32()), ("level", pa.int32()), ("block", pa.binary())])


def to_batch(rows: Iterable[Row]) -> pa.RecordBatch:
    """Return rows as one Arrow batch."""
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    return pa.record_batch(
        [pa.array(column, field.type) for column, field in zip(columns, ARROW_SCHEMA, strict=True)],
        schema=ARROW_SCHEMA,
    )


def from_batch(batch: pa.RecordBatch) -> Iterator[Row]:
    """Yield the rows of an Arrow batch."""
    columns: list[list[Any]] = [column.to_pylist() for column in batch.columns]
    return map(Row, *columns)


def collected(rows: Any) -> list[Any]:
    """Collect a Spark DataFrame of rows in the driver, and return the contents of its blocks."""
    # Spark's collect() copies large values several times more.
    return [unpack(block) for block in rows.toArrow()["block"].to_pylist()]
