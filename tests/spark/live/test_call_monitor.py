"""The call that kills workers is found by what they report; no Spark is needed to report it."""

from __future__ import annotations

import pytest
from receiving import eventually
from wallaroo_spark.live.call_monitor import CallMonitor
from wallaroo_spark.wire.lineages import NO_SINK, Lineage, order_of
from wallaroo_spark.worker.call_reports import CallReporter


@pytest.mark.parametrize(
    "lineage", [(7,), (7, 0, 2), (7, -1, (20, b"s\0\0\0\1k")), (7, -1, (20, b"\xff\0"), 3)], ids=str
)
def test_dead_3_the_call_that_began_and_did_not_end(lineage: Lineage) -> None:
    killing = order_of(lineage, 4, NO_SINK)
    with CallMonitor("127.0.0.1") as monitor:
        reporter = CallReporter(monitor.address)
        reporter.begins(order_of((6,), 4, NO_SINK))
        reporter.ends()
        reporter.begins(killing)
        eventually(lambda: (end := monitor.killing_call()) is not None and end.order == killing)
        found = monitor.killing_call()
    assert found is not None
    assert found.order == killing
