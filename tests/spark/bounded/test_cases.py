"""Which cases are refused, before anything runs; no test here needs a JVM."""

import pytest
from small_steps import decode
from wallaroo_spark.bounded.traces import spec_of
from wallaroo_spark.wire.job import MOST_ATTEMPTS

import wallaroo
from wallaroo.engine import Case, TaskFault


def case(**given):
    builder = wallaroo.ApplicationBuilder("app")
    builder.new_pipeline("p", wallaroo.TCPSourceConfig("127.0.0.1", 0, decode)).done()
    return Case(builder.build(), [], **given)


def test_more_deaths_of_a_task_than_spark_survives_are_refused():
    faults = [TaskFault(attempts=MOST_ATTEMPTS)]
    assert spec_of(case(faults=faults)).faults == tuple(faults)
    with pytest.raises(
        ValueError, match=f"Spark ends a job when {MOST_ATTEMPTS + 1} attempts died"
    ):
        spec_of(case(faults=[*faults, TaskFault(attempts=MOST_ATTEMPTS + 1)]))


def test_an_unknown_option_is_named():
    assert spec_of(case(options={"segment_bytes": 7})).segment_bytes == 7
    with pytest.raises(ValueError, match="has no option 'fast'") as refused:
        spec_of(case(options={"slow": 1, "segment_bytes": 7, "fast": 1}))
    assert "segment_bytes" in str(refused.value)


def test_a_number_of_partitions_below_1_is_refused():
    assert spec_of(case()).partitions == spec_of(case(partitions=1)).partitions == 1
    with pytest.raises(ValueError, match="the number of partitions is 1 or more, not 0"):
        spec_of(case(partitions=0))
