"""Cells are divided among blobs of bounded size, since SQLite takes none above 1 GB."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wallaroo_reference.checkpoints import blobs

CELLS = st.lists(st.tuples(st.binary(max_size=5), st.none() | st.binary(max_size=20)))


@given(CELLS, st.integers(1, 40))
def test_blobs_hold_the_cells_in_order_and_are_full_with_the_last_one(cells, full):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blobs, "BLOB", full)
        found = [blobs.decode(blob) for blob in blobs.divided(cells)]
    assert [cell for some in found for cell in some] == cells
    sizes = [[len(name) + len(value or b"") for name, value in some] for some in found]
    assert all(some and sum(some[:-1]) < full for some in sizes)
    assert all(sum(some) >= full for some in sizes[:-1])
