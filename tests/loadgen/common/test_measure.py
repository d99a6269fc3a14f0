from __future__ import annotations

import numpy as np
import pytest
from wallaroo_loadgen.common import measure
from wallaroo_loadgen.common.measure import Tally, Timeline


def test_a_batch_records_what_one_by_one_would() -> None:
    values = np.random.default_rng(1).lognormal(7, 2, size=5000).astype(np.int64)
    batch, single = measure.histogram(), measure.histogram()
    measure.record(batch, values)
    for value in values.tolist():
        single.record_value(value)
    for percentile in (0, 1, 50, 90, 99, 99.9, 100):
        found = batch.get_value_at_percentile(percentile)
        assert found == single.get_value_at_percentile(percentile)
        if percentile:  # and those of the values, to three digits
            near = np.sort(values)[round(percentile / 100 * len(values)) - 1]
            assert found == pytest.approx(near, rel=1e-3, abs=1)
    assert batch.get_total_count() == 5000


def test_what_cannot_be_counted_is_clipped_to_the_range() -> None:
    hist = measure.histogram()
    measure.record(hist, np.array([-5, 0, 10**12]))
    assert hist.get_total_count() == 3
    assert hist.get_min_value() == 0


def test_tallies_survive_their_text_and_add_up() -> None:
    total, other = Tally(1000, 5), Tally(1000, 5)
    measure.record(total.histograms["latency"], np.array([1, 10, 100]))
    measure.record(other.histograms["latency"], np.array([1000, 10_000]))
    other.timeline.count("sent", np.array([0]))
    total.merge(other.flush())
    total.merge(other.flush())  # which is empty now
    hist = measure.decode(measure.encode(total.histograms["latency"]))
    assert hist.get_total_count() == 5
    assert hist.get_min_value() == 1
    assert total.timeline.series["sent"].tolist() == [1, 0, 0, 0, 0]


def test_a_summary_is_what_the_histogram_says() -> None:
    hist = measure.histogram()
    assert measure.summary(hist)["p99"] is None
    measure.record(hist, np.random.default_rng(3).lognormal(9, 3, size=5000).astype(np.int64))
    found = measure.summary(hist)
    for percentile in measure.PERCENTILES:
        assert found[f"p{percentile:g}"] == hist.get_value_at_percentile(percentile)
    assert found["mean"] == pytest.approx(hist.get_mean_value())
    low, high, counts = measure.recorded(hist)
    assert counts.sum() == 5000
    assert [hist.get_highest_equivalent_value(value) for value in low.tolist()] == high.tolist()


def test_timelines_add_up_and_survive_json() -> None:
    one, other = Timeline(1000, 5), Timeline(1000, 5)
    one.count("sent", np.array([0, 999, 1000, 99_999]))
    other.count("sent", np.array([2500]), np.array([7]))
    other.spread("latency", np.array([0, 0, 4999]), np.array([10, 10, 1_000_000]))
    one.merge(other.flush())
    assert other.flush() == {}
    back = Timeline.from_json(one.to_json())
    assert back.series["sent"].tolist() == [2, 1, 7, 0, 1]
    assert back.maps["latency"].sum(axis=1).tolist() == [2, 0, 0, 0, 1]
