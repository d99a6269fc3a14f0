"""Rows as Arrow batches: what goes in comes out, and no worker imports pandas for it."""

from __future__ import annotations

import subprocess
import sys

import pytest
from wallaroo_spark.wire.job import Row
from wallaroo_spark.wire.rows import ARROW_SCHEMA, from_batch, to_batch

LARGEST = 2**31 - 1


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [Row(0, 0, b"")],
        [Row(0, 0, None)],
        [Row(-LARGEST - 1, LARGEST, b"a\0"), Row(1, -1, None), Row(2, 0, b"")],
        [Row(number, 1, b"x" * number if number % 3 else None) for number in range(17)],
    ],
)
def test_a_batch_gives_the_rows_it_was_made_of(rows):
    batch = to_batch(iter(rows))
    batch.validate(full=True)
    assert batch.schema == ARROW_SCHEMA
    assert list(from_batch(batch)) == rows


def test_a_worker_needs_no_pandas_for_it():
    script = """
import sys
from wallaroo_spark.wire.job import Row
from wallaroo_spark.wire.rows import from_batch, to_batch
assert list(from_batch(to_batch([Row(0, 1, b"a")]))) == [Row(0, 1, b"a")]
assert "pandas" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)
