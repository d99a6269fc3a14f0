"""Byte strings sorted by lineages: many at a time, by Arrow, without an object for each."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pyarrow as pa

from wallaroo.transport.byte_strings import ByteStrings
from wallaroo_spark.wire.lineages import Lineages


def sorted_by(lineages: Sequence[Lineages], strings: Sequence[ByteStrings]) -> ByteStrings:
    """Return byte strings in order of their lineages; equal ones stay as they are.

    Args:
        lineages: in parts, all of the same width.
        strings: in as many parts, which are as long.
    """
    import pyarrow.compute as pc  # takes 50 ms, which a first output can do without

    width = lineages[0].width
    names = [str(column) for column in range(width)]
    columns = [
        pa.concat_arrays([_numbers(pa.int64(), part.numbers[column::width]) for part in lineages])
        for column in range(width)
    ]
    places = pc.sort_indices(
        pa.RecordBatch.from_arrays(columns, names),
        sort_keys=[(name, "ascending") for name in names],
    )
    lengths = pa.concat_arrays([_numbers(pa.uint32(), part.lengths) for part in strings])
    ends = pc.cumulative_sum(lengths.cast(pa.int64()))
    offsets = pa.concat_arrays([_numbers(pa.int64(), array("q", [0])), ends]).buffers()[1]
    data = pa.py_buffer(b"".join([part.data for part in strings]))
    sorted_ = pa.Array.from_buffers(pa.large_binary(), len(lengths), [None, offsets, data])
    in_order = array("I", lengths.take(places).buffers()[1].to_pybytes())
    return ByteStrings(in_order, sorted_.take(places).buffers()[2].to_pybytes())


def _numbers(kind: pa.DataType, values: array[int]) -> pa.Array:
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
