"""The numbers of windows, which the driver puts into lineages."""

from __future__ import annotations

from wallaroo_spark.wire.lineages import numbering
from wallaroo_spark.wire.outbox import Finished


def test_time_4_windows_of_all_shards_are_numbered_by_end_and_key():
    finished = Finished(fired={(7, -1): [(10, b"b"), (20, b"a")]})
    finished.add(Finished(fired={(7, -1): [(10, b"a"), (20, b"b")], (8, -1): [(5, b"z")]}))
    numbered = numbering(finished.fired)
    assert numbered((7, -1, (10, b"a"))) == (7, -1, 0)
    assert numbered((7, -1, (10, b"b"), 3)) == (7, -1, 1, 3)
    assert numbered((7, -1, (20, b"b"))) == (7, -1, 3)
    assert numbered((8, -1, (5, b"z"))) == (8, -1, 0)
    assert numbered((7, 0)) == (7, 0)
    assert numbered((7, 1, 2)) == (7, 1, 2)


def test_dead_3_a_window_that_killed_workers_has_the_number_of_those_before_it():
    numbered = numbering({(7, -1): [(10, b"a"), (20, b"a")]})
    assert numbered((7, -1, (20, b"b"))) == (7, -1, 2)
    assert numbered((9, -1, (20, b"b"))) == (9, -1, 0)
