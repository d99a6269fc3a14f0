"""The busiest keys are found among any number of keys, in bounded memory."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from wallaroo.metrics.sketches import Busiest


@given(st.lists(st.lists(st.integers(0, 60), max_size=30), max_size=30))
def test_counts_are_too_low_by_no_more_than_is_said(batches):
    busiest, exact = Busiest(places=4), Counter()
    for batch in batches:
        busiest.add(Counter(batch))
        exact.update(batch)
    found = dict(busiest.top(100))
    assert busiest.visits == exact.total()
    assert busiest.error <= exact.total() / 4
    for key, count in exact.items():
        assert count - busiest.error <= found.get(key, 0) <= count


def test_memory_does_not_grow_with_the_number_of_keys():
    busiest = Busiest(places=20)
    for number in range(3000):
        busiest.add({"hot": 1, number: 1, -number - 1: 1})
    assert len(busiest.top(10**6)) <= 4 * 20 + 3
    assert busiest.top(1)[0][0] == "hot"
