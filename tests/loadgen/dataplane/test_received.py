from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from wallaroo_loadgen.dataplane.analysis import ReceivedNumbers


@given(st.lists(st.lists(st.integers(0, 60), max_size=20), max_size=12))
def test_it_counts_like_a_set(batches: list[list[int]]) -> None:
    seen = ReceivedNumbers(limit=64)
    known: set[int] = set()
    total = 0
    for batch in batches:
        places = seen.add(np.array(batch, dtype=np.int64))
        expected = []
        for place, number in enumerate(batch):
            if number not in known:
                known.add(number)
                expected.append(place)
        total += len(batch)
        assert places.tolist() == expected
    assert seen.distinct == len(known)
    assert seen.repeated == total - len(known)


def test_a_window_that_moves_keeps_what_is_missing() -> None:
    seen = ReceivedNumbers(limit=1 << 16)
    for first in range(0, 50_000, 1000):
        numbers = np.arange(first, first + 1000)
        seen.add(numbers[numbers != 17])
    assert seen.distinct == 49_999
    assert seen.add(np.array([17, 17, 18])).tolist() == [0]
    assert (seen.distinct, seen.repeated) == (50_000, 2)


def test_memory_is_bounded_when_an_output_never_comes() -> None:
    seen = ReceivedNumbers(limit=4096)
    for first in range(1, 100_001, 1000):
        seen.add(np.arange(first, first + 1000))
    assert seen.distinct == 100_000
    assert seen._flags.nbytes == 4096
    assert seen.add(np.array([0])).tolist() == []


def test_order_is_noticed() -> None:
    seen = ReceivedNumbers()
    seen.add(np.array([0, 2, 1, 3]))
    seen.add(np.array([5, 4]))
    assert seen.reordered == 2
