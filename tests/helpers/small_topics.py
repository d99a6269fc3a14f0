"""Windows over a topic, by the time of its records."""

from __future__ import annotations

from typing import Any

from small_steps import record
from small_windows import Total

import wallaroo
from wallaroo.topology import Application

SECOND = 10**9


def counted_by_timestamps(partitions: int = 4, **options: Any) -> Application:
    """Count the records of each ten seconds of a topic, by their own time, into another topic."""
    config = wallaroo.KafkaSourceConfig(
        "in", "h:1", record, event_time=wallaroo.kafka_timestamp, **options
    )
    step = wallaroo.range_windows(10 * SECOND).over(Total)
    sink = wallaroo.KafkaSinkConfig("out", "h:1", in_decimal, partitions=partitions)
    counted = wallaroo.source("s", config).to(step).to_sink(sink)
    return wallaroo.build_application("counted", counted)


@wallaroo.encoder
def in_decimal(message):
    return str(message)
