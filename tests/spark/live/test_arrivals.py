"""Partitions from which nothing comes are named by a run on Spark too (kafka-9)."""

from pathlib import Path

import pytest
from small_topics import counted_by_timestamps
from wallaroo_spark.live.arrivals import Arrivals
from wallaroo_spark.live.offset_log import OffsetLog

from wallaroo.metrics.registry import Registry
from wallaroo.metrics.silence import Silence
from wallaroo.records import Assigned, End
from wallaroo.transport.logged import TopicPosition

SECOND = 10**9


@pytest.mark.parametrize("again", [False, True], ids=["a new run", "a restart"])
def test_kafka_9_partitions_from_which_nothing_comes_are_named(caplog, again):
    application, log = counted_by_timestamps(), OffsetLog(Path("not needed here"))
    registry, opened = Registry(application, "spark"), [1]
    arrivals = Arrivals({"s": TopicPosition("id", {0: 0, 1: 0, 2: 0, 3: 0})} if again else {})
    silence = Silence(application, lambda: arrivals, lambda: opened[0], registry)
    silence.look()  # before anything has come
    if not again:
        log.append_records([Assigned("s", tuple((n, 0, None) for n in range(4)), SECOND, "id")])
    for second in range(1, 41):
        log.append_offsets("s", 0, second, second, second * SECOND)
        if second < 5:
            log.append_offsets("s", 1, second, second, second * SECOND)
    log.append_records([End("s", 40 * SECOND, partition=3)])
    arrivals.note(log.runs(0, log.next_sequence))
    silence.look()
    assert silence.partitions == {"s": [1, 2]}
    assert registry.sources["s"].silent == (1, 2)
    assert "windows wait for partitions 1 and 2 of source s: nothing came" in caplog.text
    opened[0] = 0
    silence.look()
    assert silence.partitions == {}
