"""A run from topic to topic goes on on Spark, and again on the reference (scale-1, scale-2)."""

import pytest
from live_on_spark import PATIENCE
from wallaroo_conformance.live.check import check_kafka
from wallaroo_reference.engine import ReferenceEngine

pytestmark = pytest.mark.alone


@pytest.mark.nightly("three starts of Spark; test_moved.py goes there and back each time")
def test_scale_2_each_output_is_there_once_and_the_old_checkpoint_is_refused(kafka):
    engine = ReferenceEngine()
    [law], failures = check_kafka(engine, "scale-2", kafka.address, PATIENCE, other="spark")
    assert failures == []
    assert law.status == "kept"
