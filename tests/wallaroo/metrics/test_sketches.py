"""Many values in bounded memory: histograms, the busiest keys, lines, latencies."""

import itertools
import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wallaroo.keys import identity, partition_number
from wallaroo.metrics.figures import Latency, PartitionFigures, Spread
from wallaroo.metrics.sketches import (
    LENGTH,
    Busiest,
    Histogram,
    Timelines,
    bounds_of,
    bucket_of,
)

VALUES = st.lists(st.integers(0, 2**40), min_size=1, max_size=200)


@given(st.integers(0, 2**63 - 1))
def test_a_bucket_holds_its_value_and_is_narrow(value):
    least, greatest = bounds_of(bucket_of(value))
    assert least <= value <= greatest
    assert greatest - least <= value / 64


def test_buckets_are_without_gaps_and_few():
    edges = [bounds_of(bucket) for bucket in range(bucket_of(2**63 - 1) + 1)]
    assert all(one[1] + 1 == other[0] for one, other in itertools.pairwise(edges))
    assert len(edges) < 3800


@given(VALUES, st.floats(0.01, 1.0))
def test_a_quantile_is_right_to_one_percent(values, share):
    histogram = Histogram()
    histogram.add(values)
    exact = sorted(values)[max(0, -(-share * len(values) // 1).__int__() - 1)]
    (found,) = histogram.quantiles([share])
    assert found == pytest.approx(exact, rel=0.01)
    assert histogram.greatest == max(values)
    assert histogram.total == sum(values)


@given(VALUES, VALUES)
def test_merged_is_as_if_all_had_been_added_to_one(one, other):
    whole, left, right = Histogram(), Histogram(), Histogram()
    whole.add([*one, *other])
    left.add(one)
    right.add(other)
    left.merge(right)
    assert (left.buckets, left.count, left.total, left.greatest) == (
        whole.buckets,
        whole.count,
        whole.total,
        whole.greatest,
    )


def test_how_many_are_not_above_a_limit():
    chance = random.Random(1)
    values = [chance.randrange(10**9) for _ in range(5000)]
    histogram = Histogram()
    histogram.add(values)
    for limit in (10**6, 10**8, 5 * 10**8, 10**9):
        exact = sum(value <= limit for value in values)
        assert histogram.at_most([limit])[0] == pytest.approx(exact, rel=0.02, abs=5)
    assert histogram.at_most([10**6, 2 * 10**9])[1] == len(values)


@given(st.lists(st.lists(st.integers(0, 60), max_size=30), max_size=30), st.integers(1, 4))
def test_counts_are_too_low_by_no_more_than_is_said(batches, processes):
    parts, exact = [Busiest(places=4) for _ in range(processes)], Counter()
    for number, batch in enumerate(batches):
        parts[number % processes].add(Counter(batch))
        exact.update(batch)
    busiest, *others = parts
    for other in others:
        busiest.merge(other)
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


def test_skew_is_the_busiest_number_over_the_mean_of_all():
    spread = Spread(4)
    assert spread.skew is None
    for number, messages in ((0, 1), (2, 5), (0, 1), (3, 1)):
        spread.add(number, messages)
    assert spread.skew == 5 / (8 / 4)  # number 1 counts too
    assert spread.busiest(2) == [(2, 5), (0, 2)]
    spread.add(10**9, 1)  # nobody has so many; memory is bounded
    assert len(spread.messages) == 3


def test_visits_are_counted_where_the_partition_function_says():
    figures = PartitionFigures(3)
    figures.add_visits({"a": 2, "b": 1, identity(("t", 1)): 4}, 10)
    assert figures.visits == sum(figures.spread.messages.values()) == 70
    assert figures.number_of("a") == partition_number("a", 3)
    assert figures.spread.messages[figures.number_of("a")] >= 20


def test_old_values_go():
    lines = Timelines()
    for second in range(LENGTH + 5):
        lines.add(second, {"a": second})
    form = lines.to_json()
    assert form["times"] == list(range(5, LENGTH + 5))
    assert form["values"]["a"] == form["times"]


def test_a_line_that_begins_later_has_no_values_before():
    lines = Timelines()
    lines.add(1, {"a": 1})
    lines.add(2, {"a": 2, "b": 5})
    lines.add(3, {"b": 6})
    assert lines.to_json()["values"] == {"a": [1, 2, None], "b": [None, 5, 6]}


def test_a_duration_counts_before_and_after_its_second_is_over():
    latency = Latency()
    latency.add(5_000, 2)
    assert latency.whole().count == 2
    assert latency.tick().count == 2
    assert latency.whole().count == 2
    latency.add(7_000, 1)
    assert (latency.whole().count, latency.recent().count) == (3, 2)
