"""Nexmark's queries on Spark: the answers that SQL gives."""

import pytest
from nexmark_answers import QUERIES, answers, application, events

from wallaroo.engine import Case
from wallaroo.testing.input import input_log_of

pytestmark = pytest.mark.xdist_group("spark")


def case(query, count):
    built = application(query)
    return Case(built, input_log_of(built, events(query, count), end=True), batches=(400,))


@pytest.mark.nightly("test_examples.py has such windows; SQL judges the reference's each time")
def test_the_answers_are_sql_s(spark_engine):
    traces = spark_engine.run_many([case(query, 800) for query in QUERIES.QUERIES])
    for query, trace in zip(QUERIES.QUERIES, traces, strict=True):
        [outputs] = trace.outputs.values()
        assert list(outputs) == answers(query, 800), query
        assert outputs or query == "q2", query
        assert not trace.dead_letters, query
