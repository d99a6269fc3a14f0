"""Latencies: all of them count at once, and once."""

from __future__ import annotations

from wallaroo.metrics.figures import Latency


def test_a_duration_counts_before_and_after_its_second_is_over():
    latency = Latency()
    latency.add(5_000, 2)
    assert latency.whole().count == 2
    assert latency.tick().count == 2
    assert latency.whole().count == 2
    latency.add(7_000, 1)
    assert (latency.whole().count, latency.recent().count) == (3, 2)
